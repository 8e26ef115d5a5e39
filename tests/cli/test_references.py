"""Packet references: what every command prints of a ring buffer's packets is what kwire decode --frame takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

from kwire.capture.files import open_capture
from kwire.capture.save import PcapWriter
from kwire.cli.references import Packet, PacketReference, captures_of, settled
from kwire.errors import Exit
from kwire.session.reading import Reading

FOLDER = Path(__file__).parents[2] / "fixtures" / "captures"
STOPPED, MTU = FOLDER / "evict-stopped.pcap.gz", FOLDER / "mtu1500.pcap.gz"


def ring(source: Path, folder: Path, files: int) -> list[str]:
    """The capture as a ring buffer would have written it."""
    folder.mkdir(exist_ok=True)
    packets = [
        (int(block.time[at]), bytes(block.buffer[(low := int(block.start[at])) : low + int(block.captured[at])]),
         int(block.length[at]), int(block.link[at]))
        for block in open_capture(source).blocks() for at in range(len(block))
    ]  # fmt: skip
    each = -(-len(packets) // files)
    paths = []
    for number in range(files):
        path = folder / f"ring_{number}.pcap"
        with path.open("wb") as file:
            writer = PcapWriter(file)
            for packet in packets[number * each : (number + 1) * each]:
                writer.write(*packet)
        paths.append(str(path))
    return paths


@pytest.fixture
def stopped(tmp_path: Path) -> list[str]:
    return ring(STOPPED, tmp_path, 3)


def references(text: str) -> list[str]:
    return re.findall(r"ring_\d\.pcap:\d+", text)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_what_groups_prints_is_decoded(form: str, stopped: list[str], kwire: Any) -> None:
    whole = kwire("groups", str(STOPPED), "--format", form)
    ran = kwire("groups", *stopped, "--format", form)
    assert ran.status == whole.status
    if form == "json":
        evidence = [ref for group in json.loads(ran.text)["groups"] for one in group["findings"]
                    for ref in one["evidence"]]  # fmt: skip
        told = [f"{ref['capture']}:{ref['frame']}" for ref in evidence]
        names = [ref["message"] for ref in evidence]
    else:
        told = references(ran.text)
        names = []
        assert not re.search(r"frames? \d", ran.text)
    assert len({one.partition(":")[0] for one in told}) > 1
    for number, one in enumerate(told[:8]):
        found = kwire("decode", *stopped, "--frame", one, "--format", "json")
        row = json.loads(found.text.split("\n}\n")[0] + "}")
        assert one in row["packets"]
        assert not names or names[number].startswith(row["api"]) or found.text.count('"capture"') > 1


@pytest.mark.parametrize("command", ["trace", "read"])
def test_what_other_commands_print_is_decoded(command: str, stopped: list[str], kwire: Any) -> None:
    ran = kwire(command, *stopped, *(("-x", "--errors") if command == "read" else ()))
    told = references(ran.text)
    assert len({one.partition(":")[0] for one in told}) > 1
    for one in told[:5]:
        assert kwire("decode", *stopped, "--frame", one).status == Exit.OK


def test_a_ring_reads_as_the_whole(stopped: list[str], kwire: Any) -> None:
    said = re.sub(r"ring_\d\.pcap:\d+", "N", kwire("groups", *stopped, columns=5000).text)
    whole = re.sub(r"(?<=frame )\d+|(?<=frames )[\d, ]+", "N", kwire("groups", str(STOPPED), columns=5000).text)
    assert re.sub(r"N(, N)*", "N", said) == re.sub(r"N(, N)*", "N", whole)


def test_several_packets_are_all_shown(kwire: Any) -> None:
    capture = str(STOPPED)
    both = kwire("decode", capture, "--frame", "306", "--frame", "185")
    one, other = kwire("decode", capture, "--frame", "185"), kwire("decode", capture, "--frame", "306")
    assert both.text == f"{one.text}\n{other.text}"
    some = kwire("decode", capture, "--frame", "306", "--frame", "1")
    assert (some.text, some.status) == (other.text, Exit.USAGE)
    assert some.err.startswith("kwire: no Kafka frame in packet 1, a SYN from ")


def test_a_frame_that_goes_on_in_the_next_file(tmp_path: Path, kwire: Any) -> None:
    long = max(
        (m for x in Reading([MTU]).exchanges() for m in (x.request, x.response) if m), key=lambda m: len(m.marks)
    )
    paths = ring(MTU, tmp_path, 7)
    each = max(sum(map(len, open_capture(path).blocks())) for path in paths)
    packets = [f"ring_{(number - 1) // each}.pcap:{(number - 1) % each + 1}" for _, number in long.marks]
    assert len({one.partition(":")[0] for one in packets}) > 1
    ran = kwire("decode", *paths, "--frame", packets[-1], "--format", "json")
    assert json.loads(ran.text)["packets"] == packets
    text = kwire("decode", *paths, "--frame", packets[0], "--elements", "1", columns=200).text
    assert f"packets {packets[0]} to {packets[-1]} · " in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("--frame", "50"),
            "--frame 50: of several captures it is FILE:N, as ring_0.pcap:50 or ring_1.pcap:50 or ring_2.pcap:50",
        ),
        (("--frame", "other.pcap:50"), "--frame other.pcap:50: none of the captures is other.pcap (ring_0.pcap, "),
        (("--frame", "ring_0.pcap:0"), "0 is not in the range x>=1."),
        (("--frame", "ring_0.pcap:x"), "ring_0.pcap:x is no packet; a packet is N, or FILE:N"),
        ((), "one FILE; of several captures --frame FILE:N or --connection says what to decode"),
    ],
)
def test_what_is_no_reference(arguments: tuple[str, ...], complaint: str, stopped: list[str], kwire: Any) -> None:
    ran = kwire("decode", *stopped, *arguments)
    assert complaint in " ".join(ran.err.split())
    assert ran.status == Exit.USAGE


def test_a_reference_may_name_the_capture_alone(stopped: list[str], kwire: Any) -> None:
    named = kwire("decode", "--frame", f"{stopped[1]}:5", "--frame", f"{stopped[1]}:9")
    assert named.text == kwire("decode", stopped[1], "--frame", "5", "--frame", "9").text
    assert named.text


def test_captures_of_the_same_name_are_told_apart(tmp_path: Path, kwire: Any) -> None:
    paths = [*ring(STOPPED, tmp_path / "a", 1), *ring(MTU, tmp_path / "b", 1)]
    text = kwire("groups", *paths).text
    assert "a/ring_0.pcap:" in re.sub(r"\s", "", text)
    assert kwire("decode", *paths, "--frame", "a/ring_0.pcap:306").status == Exit.OK
    ran = kwire("decode", *paths, "--frame", "ring_0.pcap:306")
    assert "several captures are ring_0.pcap" in " ".join(ran.err.split())


def test_references_are_settled_by_name_path_or_the_end_of_it() -> None:
    names = {"x/a/ring.pcap": "a/ring.pcap", "x/b/ring.pcap": "b/ring.pcap"}
    for given in ("a/ring.pcap", "x/a/ring.pcap"):
        assert settled([PacketReference(given, 3)], names) == [PacketReference("a/ring.pcap", 3)]
    assert settled([PacketReference("", 3)], {"x.pcap": "x.pcap"}) == [PacketReference("x.pcap", 3)]
    with pytest.raises(click.UsageError):
        settled([PacketReference("ring.pcap", 3)], names)


def test_captures_are_those_named_else_those_of_the_references_else_stdin() -> None:
    wanted = [PacketReference("a", 1), PacketReference("b", 2), PacketReference("a", 3)]
    assert captures_of(["x"], wanted) == ["x"]
    assert captures_of([], wanted) == ["a", "b"]
    assert captures_of([], [PacketReference("", 1)]) == ["-"]


def test_a_reference_is_text_again() -> None:
    for text in ("17", "ring.pcap:17", "C:dir:17"):
        assert str(Packet().convert(text, None, None)) == text
