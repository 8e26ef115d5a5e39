"""The capture of what a broker sees: packets that are right in every number, and exchanges that come out again."""

from __future__ import annotations

import stat
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest

import kwire
from kwire.broker.recorder import MOST, Recorder, checksum
from kwire.capture.files import open_capture
from kwire.outputs import Output


class Packets:
    """Keeps what would be written."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def write(self, time: int, data: bytes, length: int, link: int) -> None:
        assert (time, length, link) == (5, len(data), 101)
        self.found.append(data)


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Recorder(Output(tmp_path / "c.pcapng"), lambda: 5)
    made.open()
    monkeypatch.setattr(made, "_writer", Packets())
    yield made
    made.close()


@pytest.mark.parametrize(
    ("ends", "head"), [((("10.0.0.1", 1234), ("10.0.0.2", 9092)), 20), ((("::1", 1234, 0, 0), ("::1", 9092, 0, 0)), 40)]
)
def test_packets_are_right_in_every_number(recorder: Any, ends: tuple[Any, Any], head: int) -> None:
    stream = recorder.begin(*ends)
    stream.client(b"ab")
    stream.broker(bytes(MOST + 1))
    stream.end()
    stream.end()
    packets = recorder._writer.found
    seen = []
    for packet in packets:
        source, target, sequence, acked, _, flags = unpack_from(">HHIIBB", packet, head)
        seen.append((source == 1234, target == 9092, sequence, acked, flags, len(packet) - head - 20))
        addresses = packet[12:20] if head == 20 else packet[8:40]
        pseudo = addresses + (len(packet) - head).to_bytes(4) + b"\0\0\0\6"
        assert checksum(pseudo + packet[head:]) == 0
        assert head == 40 or checksum(packet[:20]) == 0
    assert seen == [
        (True, True, 1000, 0, 2, 0),
        (False, False, 1500, 1001, 18, 0),
        (True, True, 1001, 1501, 16, 0),
        (True, True, 1001, 1501, 24, 2),
        (False, False, 1501, 1003, 24, MOST),
        (False, False, 1501 + MOST, 1003, 24, 1),
        (True, True, 1003, 1502 + MOST, 17, 0),
        (False, False, 1502 + MOST, 1004, 17, 0),
        (True, True, 1004, 1503 + MOST, 16, 0),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xFFFF),
        (bytes(2), 0xFFFF),
        (b"\xff\xff", 0),
        (b"\x01", 0xFEFF),
        (bytes.fromhex("0001f203f4f5f6f7"), 0x220D),  # RFC 1071, section 3
    ],
)
def test_the_internet_checksum(data: bytes, expected: int) -> None:
    assert checksum(data) == expected


def test_a_capture_is_readable_while_it_grows_and_after_it_is_closed(
    socketless: Any, sized: Any, tmp_path: Path
) -> None:
    path = tmp_path / "c.pcapng"
    recorder = Recorder(Output(path))
    recorder.open()
    stream = recorder.begin(("127.0.0.1", 40000), ("127.0.0.1", 9092))
    asked = socketless.frame("Metadata", 12, {"Topics": None})
    stream.client(sized(asked))
    stream.broker(socketless.raw(asked)[0].data)
    (exchange,) = kwire.read(path)
    assert exchange.request is not None
    assert exchange.response is not None
    assert (exchange.client_id, exchange.response.quality) == ("test", "ok")
    stream.end()
    recorder.close()
    stream.client(b"late")
    assert len(list(kwire.read(path))) == 1


def test_an_address_that_is_gone_is_no_failure(recorder: Any) -> None:
    recorder.begin(None, ("127.0.0.1", 9092)).end()
    assert len(recorder._writer.found) == 6


@pytest.mark.parametrize(("name", "magic"), [("c.pcapng", "0a0d0d0a"), ("c.pcap", "4d3cb2a1"), ("c", "0a0d0d0a")])
def test_the_file_begins_when_it_is_opened_and_not_before(name: str, magic: str, tmp_path: Path) -> None:
    path = tmp_path / name
    recorder = Recorder(Output(path))
    assert not path.exists()
    recorder.open()
    assert path.read_bytes()[:4].hex() == magic
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    recorder.close()


def test_packets_that_came_before_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    recorder = Recorder(Output(path), lambda: 5)
    stream = recorder.begin(("127.0.0.1", 40000), ("127.0.0.1", 9092))
    recorder.open()
    stream.end()
    recorder.close()
    (block,) = open_capture(path).blocks()
    assert (len(block), set(block.time.tolist())) == (6, {5})


def test_one_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    Recorder(Output(tmp_path / "c.pcapng")).close()
    assert list(tmp_path.iterdir()) == []


def test_a_capture_ends_where_it_is_full_and_says_so_once(tmp_path: Path) -> None:
    path, said = tmp_path / "c.pcapng", []
    recorder = Recorder(Output(path), lambda: 5, limit=20_000)
    recorder.full = lambda: said.append("full")
    recorder.open()
    stream = recorder.begin(("10.0.0.1", 1234), ("10.0.0.2", 9092))
    for _ in range(100):
        stream.client(bytes(1_000))
    stream.end()
    recorder.close()
    assert said == ["full"]
    assert 18_000 < path.stat().st_size <= 20_500
    assert path.read_bytes()[:4] == b"\n\r\r\n"
