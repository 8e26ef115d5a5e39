"""Packets by file: numbers counted through, and what captures go by."""

from __future__ import annotations

import pytest

from kwire.capture.packet_numbers import PacketFiles, labels, reference


def test_numbers_are_those_within_a_file() -> None:
    places = PacketFiles(several=True)
    for name, before in (("a", 0), ("a", 0), ("b", 10), ("c", 10), ("d", 25)):
        places.begin(name, before)
    assert [places.of(number) for number in (1, 10, 11, 25, 26)] == [("a", 1), ("a", 10), ("c", 1), ("c", 15), ("d", 1)]
    assert places.text(26) == "d:1"


def test_of_a_single_capture_a_number_is_enough() -> None:
    places = PacketFiles()
    places.begin("a", 0)
    assert (places.text(7), PacketFiles().of(7), PacketFiles(several=True).text(7)) == ("7", ("", 7), "7")
    assert reference("a", 7, True) == "a:7"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a.pcap"], ["a.pcap"]),
        (["/x/a.pcap", "/y/b.pcap"], ["a.pcap", "b.pcap"]),
        (["/x/a.pcap", "/y/a.pcap", "b.pcap"], ["x/a.pcap", "y/a.pcap", "b.pcap"]),
        (["/v/x/a.pcap", "/w/x/a.pcap"], ["v/x/a.pcap", "w/x/a.pcap"]),
        (["a.pcap", "x/a.pcap"], ["a.pcap", "x/a.pcap"]),
        (["-"], ["stdin"]),
    ],
)
def test_what_captures_go_by(paths: list[str], names: list[str]) -> None:
    assert list(labels(paths).values()) == names
