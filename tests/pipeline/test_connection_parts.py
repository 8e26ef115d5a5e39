"""What one split leaves to the next: requests that no answer can name."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import Call

SHORT = b"\0\0\0\4kwir"  # a frame too short for a header


@pytest.mark.parametrize("which", [3, 7, 9, 15])
def test_requests_without_a_header_that_are_open_at_the_end_of_a_split(
    which: int, tmp_path: Path, unpacked: Call, packets_of: Call, save: Call, expected: Call,
    cut: Call,
) -> None:  # fmt: skip
    packets = list(packets_of(unpacked("kafkajs.pcap")))
    time, data, *rest = packets[which]
    at = 14 + 20 + 4 * (data[46] >> 4)  # Ethernet, IPv4, TCP
    shorts, left = divmod(len(data) - at - 8, 8)
    last = (4 + left).to_bytes(4, "big") + b"x" * (4 + left)
    packets[which] = (time, data[:at] + SHORT * shorts + last, *rest)
    path = save(tmp_path / "a.pcap", packets)
    for size in (700, 1500, 6000):
        assert cut([path], ["messages"], size)[0] == expected([path], ["messages"])
