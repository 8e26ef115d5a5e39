"""Captures of any format from a path to connections; files that are no captures; damage anywhere."""

from __future__ import annotations

import gzip
import io
import random
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.capture.connection import Connection
from kwire.capture.connections import Connections
from kwire.capture.files import Capture, note_kind, open_capture, packet_notes
from kwire.capture.ip import Network
from kwire.capture.packets import Columns
from kwire.capture.save import PcapngWriter
from kwire.capture.source import Source
from kwire.capture.tcp import ConnectionFilter, read_segments
from kwire.errors import CaptureError

REQUESTS, RESPONSES = random.Random(1).randbytes(900), random.Random(2).randbytes(3000)
PROPERTY = settings(max_examples=100, deadline=None, derandomize=True)


def connection(make: Any) -> list[bytes]:
    """The packets of one connection, from SYN to FIN."""
    out = [make.segment(0, 99, flags="S"), make.segment(1, 499, flags="SA")]
    for number in range(10):
        out.append(make.segment(0, 100 + 90 * number, REQUESTS[90 * number : 90 * number + 90]))
        out.append(make.segment(1, 500 + 300 * number, RESPONSES[300 * number : 300 * number + 300]))
    out += [make.segment(0, 1000, flags="FA"), make.segment(1, 3500, flags="FA")]
    return [make.ether(packet) for packet in out]


def pcap(make: Any) -> bytes:
    raw: bytes = make.pcap([(number * 1000, packet) for number, packet in enumerate(connection(make))])
    return raw


def pcapng(make: Any) -> bytes:
    file = io.BytesIO()
    writer = PcapngWriter(file)
    for number, packet in enumerate(connection(make)):
        writer.write(number * 1000, packet, len(packet), 1)
    return file.getvalue()


FORMATS: list[Callable[[Any], bytes]] = [pcap, pcapng]
PACKERS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, zstd.compress]


def connections_of(capture: Capture) -> list[Connection]:
    """Each once, all that it holds in its streams."""
    network, connections, seen = Network(), Connections(), {}
    for block in capture.blocks():
        for packets in (block, network.take_whole()):
            if packets is not None:
                data = Columns(packets.buffer)
                segments = read_segments(packets, network.read(packets, data), data, ConnectionFilter())
                seen.update({id(found): found for found in connections.feed(segments)})
    seen.update({id(found): found for found in connections.finish()})
    return list(seen.values())


def saved(folder: Path, raw: bytes, name: str = "some.cap") -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("window", [1 << 20, 1000, 30])
def test_a_capture_of_any_format_gives_its_connection(
    tmp_path: Path, make: Any, form: Callable[[Any], bytes], packer: Callable[[bytes], bytes], window: int
) -> None:
    capture = Capture(Source(saved(tmp_path, packer(form(make))), window=window))
    (found,) = connections_of(capture)
    assert [make.data(stream) for stream in found.streams] == [REQUESTS, RESPONSES]
    assert (found.ends, found.opener, found.closed, found.segments) == (make.ends, 0, True, 24)
    assert (capture.name, capture.packets, capture.notes, capture.dropped) == ("some.cap", 24, [], 0)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("step", [1, 50])
def test_stdin_may_come_in_small_pieces(
    monkeypatch: pytest.MonkeyPatch, make: Any, form: Callable[[Any], bytes], step: int
) -> None:
    class Pipe(io.BytesIO):
        def readinto(self, into: Any) -> int:
            return super().readinto(memoryview(into)[:step])

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(form(make)))))
    capture = open_capture("-")
    (found,) = connections_of(capture)
    assert [make.data(stream) for stream in found.streams] == [REQUESTS, RESPONSES]
    assert (capture.name, capture.packets) == ("stdin", 24)


@pytest.mark.parametrize("form", FORMATS)
def test_a_capture_that_grows_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, form: Callable[[Any], bytes]
) -> None:
    raw, path = form(make), saved(tmp_path, b"")
    rest = io.BytesIO(raw)

    def grow(_: float) -> None:
        with path.open("ab") as file:
            file.write(rest.read(37))

    monkeypatch.setattr("kwire.capture.source.time.sleep", grow)
    capture = open_capture(path, follow=True)
    numbers: list[int] = []
    for block in capture.blocks():
        numbers += block.number.tolist()
        if len(numbers) == 24:
            break
    assert (numbers, capture.notes) == (list(range(1, 25)), [])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(bytes(99), mtime=0)[:5], "the compressed file is damaged or cut: Compressed file ended before "
         "the end-of-stream marker was reached"),
        (b"\xd4", "neither pcap nor pcapng: it begins with d4; kwire decode reads bytes that are no capture"),
        (b"\xd4\xc3\xb2\xa1abc", "a pcap header takes 24 bytes, there are 7"),
        (b"no capture", "neither pcap nor pcapng: it begins with 6e 6f 20 63; kwire decode reads bytes that are no "
         "capture"),
        (b"GET / HTTP/1.1\r\n\r\n", "neither pcap nor pcapng: it begins with 47 45 54 20; it looks like HTTP request"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0" + bytes(20), "the section at byte 0 has no byte-order magic"),
    ],
)  # fmt: skip
def test_what_is_no_capture_is_said_to_be_none(tmp_path: Path, raw: bytes, reason: str) -> None:
    with pytest.raises(CaptureError) as caught:
        list(open_capture(saved(tmp_path, raw)).blocks())
    assert str(caught.value) == f"some.cap: {reason}"


def test_the_beginning_of_a_pcapng_file_is_a_cut_capture(tmp_path: Path) -> None:
    capture = open_capture(saved(tmp_path, b"\x0a\x0d\x0d\x0a\x1c\0"))
    assert list(capture.blocks()) == []
    assert capture.notes == ["the file ends in the middle of a block, which begins at byte 0"]


def test_folders_and_missing_files_are_errors_of_the_system(tmp_path: Path) -> None:
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "none", FileNotFoundError)):
        with pytest.raises(error):
            open_capture(path)


def test_before_it_is_read_a_capture_has_no_notes(tmp_path: Path, make: Any) -> None:
    capture = open_capture(saved(tmp_path, pcap(make)))
    assert (capture.notes, capture.dropped, capture.packets) == ([], 0, 0)


@pytest.mark.parametrize("packer", PACKERS[1:])
def test_a_cut_compressed_capture_gives_what_it_has_and_says_so(
    tmp_path: Path, make: Any, packer: Callable[[bytes], bytes]
) -> None:
    whole = pcap(make)
    raw = packer(whole[:3000]) + packer(whole[3000:])
    capture = open_capture(saved(tmp_path, raw[: len(raw) - 9]))
    (found,) = connections_of(capture)
    for stream, sent in zip(found.streams, (REQUESTS, RESPONSES), strict=True):
        assert sent.startswith(make.data(stream)[:600])
        assert len(make.data(stream)) >= 400
    assert capture.notes[-1].startswith("the compressed file is damaged or cut: Compressed file ended")


def test_links_that_are_not_read_are_told() -> None:
    said = packet_notes({"of link type 105, which is not read": 1200, "came through VXLAN": 1})
    assert said == ["1,200 packets of link type 105, which is not read", "1 packet came through VXLAN"]
    assert [note_kind(note) for note in said] == ["not read", "tunnel"]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures") / "scratch.cap"


def holds(make: Any, path: Path, raw: bytes, window: int) -> None:
    """Reading raises nothing but CaptureError, and what is delivered goes on from position to position."""
    path.write_bytes(raw)
    capture = Capture(Source(path, window=window))
    try:
        found = connections_of(capture)
    except CaptureError:
        return
    for connection in found:
        assert connection.finished
        for stream in connection.streams:
            assert make.in_order(stream)
            assert sum(piece.missing for piece in stream.pieces) == stream.missing
            assert sum(len(piece.data) for piece in stream.pieces) + stream.missing == stream.position
            numbers = [number for piece in stream.pieces for number in piece.numbers]
            assert all(1 <= number <= capture.packets for number in numbers)
    assert all(isinstance(note, str) for note in islice(capture.notes, 10))


@pytest.mark.slow
@PROPERTY
@given(st.data())
def test_mutated_captures_raise_nothing(scratch: Path, make: Any, data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(FORMATS))(make))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(raw) - 1))
        change = data.draw(st.sampled_from(["byte", "drop", "insert", "copy", "cut", "ones"]))
        size = data.draw(st.integers(1, 60))
        if change == "byte":
            raw[place] = data.draw(st.integers(0, 255))
        elif change == "drop":
            del raw[place : min(place + size, len(raw) - 40)]
        elif change == "insert":
            raw[place:place] = data.draw(st.binary(max_size=60))
        elif change == "copy":
            raw[place:place] = raw[max(place - size, 0) : place]
        elif change == "cut":
            del raw[max(len(raw) - size, 40) :]
        else:
            raw[place : place + 4] = b"\xff" * 4
    packed = data.draw(st.sampled_from([bytes(raw), gzip.compress(raw), zstd.compress(raw)]))
    holds(make, scratch, packed, data.draw(st.sampled_from([30, 1000, 1 << 20])))


@pytest.mark.slow
@PROPERTY
@given(st.data())
def test_packets_mutated_in_a_whole_capture_raise_nothing(scratch: Path, make: Any, data: st.DataObject) -> None:
    packets = [bytearray(packet) for packet in connection(make)]
    for _ in range(data.draw(st.integers(1, 12))):
        packet = packets[data.draw(st.integers(0, 23))]
        packet[data.draw(st.integers(12, 60)) % len(packet)] = data.draw(st.integers(0, 255))
    times = data.draw(st.lists(st.integers(0, 10**13), min_size=24, max_size=24))
    snaplen = data.draw(st.sampled_from([60, 100, 1 << 16]))
    raw = make.pcap(zip(times, map(bytes, packets), strict=True), snaplen=snaplen)
    holds(make, scratch, raw, data.draw(st.sampled_from([30, 1000, 1 << 20])))


@PROPERTY
@given(st.binary(max_size=600), st.sampled_from([b"", *FORMATS]), st.sampled_from([1, 0, 101, 113, 276]))
def test_random_bytes_raise_nothing(scratch: Path, make: Any, raw: bytes, head: Any, link: int) -> None:
    begin = b"" if not head else head(make)[:24] if head is pcap else head(make)[:76]
    holds(make, scratch, begin + raw, 1000)
    holds(make, scratch, make.pcap([(1, raw), (2, raw[:60])], link=link), 1000)
