"""pcap: byte orders, units of time, records over windows, cut and damaged files."""

from __future__ import annotations

import random
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from kwire.capture.packets import Packets
from kwire.capture.pcap import HEADER, PcapReader, find_record
from kwire.capture.record_starts import MAX_PACKET, RECORD
from kwire.counted import counted
from kwire.errors import CaptureError

TIME = 1_700_000_000_123_456_789
DATA = [random.Random(number).randbytes(20 + 7 * number) for number in range(12)]
PACKETS = [(TIME + 1_000_003 * number, data) for number, data in enumerate(DATA)]
ORDERS, UNITS = pytest.mark.parametrize("order", "<>"), pytest.mark.parametrize("unit", [1, 1000])


def at(number: int) -> int:
    """Where the record of PACKETS[number] begins."""
    return HEADER + sum(RECORD + len(data) for data in DATA[:number])


def read(raw: bytes, step: int = 1 << 30) -> tuple[list[tuple[int, int, bytes]], PcapReader]:
    """Number, time and bytes of each packet; the file comes step bytes at a time."""
    reader = PcapReader(raw[:HEADER], "some.pcap")
    rows, view, rest = [], raw[: max(step, HEADER)], raw[max(step, HEADER) :]
    while True:
        blocks, used = reader.read(memoryview(view), not rest)
        for block in blocks:
            rows += rows_of(block)
        view = view[used:] + rest[:step]
        if not rest:
            return rows, reader
        rest = rest[step:]


def rows_of(block: Packets) -> list[tuple[int, int, bytes]]:
    places = zip(block.number.tolist(), block.time.tolist(), block.start.tolist(), block.captured.tolist(), strict=True)
    return [(number, time, bytes(block.buffer[start : start + size])) for number, time, start, size in places]


def expected(unit: int = 1, lost: tuple[int, ...] = ()) -> list[tuple[int, int, bytes]]:
    kept = [pair for number, pair in enumerate(PACKETS) if number not in lost]
    return [(number, time // unit * unit, data) for number, (time, data) in enumerate(kept, 1)]


@ORDERS
@UNITS
@pytest.mark.parametrize("step", [1 << 30, 100, 17, 1])
def test_every_order_and_unit_over_any_windows(make: Any, order: str, unit: int, step: int) -> None:
    rows, reader = read(make.pcap(PACKETS, order, unit), step)
    assert rows == expected(unit)
    assert (reader.notes, reader.secrets, reader.dropped) == ([], [], 0)


def test_the_header_tells_link_and_snaplen(make: Any) -> None:
    raw = make.pcap(PACKETS, link=0xF0000000 | 113, snaplen=64)  # the high bits say how long the checksum is
    reader = PcapReader(raw[:HEADER], "some.pcap")
    assert (reader.link, reader.snaplen) == (113, 64)
    (block,) = reader.read(memoryview(raw), True)[0]
    assert block.link.tolist() == [113] * 12
    assert block.length.tolist() == [len(data) for data in DATA]
    assert block.captured.tolist() == [min(len(data), 64) for data in DATA]


def test_a_length_below_what_was_captured_is_raised_to_it(make: Any) -> None:
    raw = make.pcap([])[:HEADER] + pack("<IIII", 1, 2, 4, 1) + b"abcd"
    (block,) = PcapReader(raw[:HEADER], "x").read(memoryview(raw), True)[0]
    assert (block.captured.tolist(), block.length.tolist()) == ([4], [4])


@pytest.mark.parametrize("size", [4, 8, HEADER - 1])
def test_a_header_cut_short_is_an_error(make: Any, size: int) -> None:
    with pytest.raises(CaptureError, match=rf"^some\.pcap: a pcap header takes 24 bytes, there are {size}$"):
        PcapReader(make.pcap([])[:size], "some.pcap")


def test_a_file_without_packets_is_fine(make: Any) -> None:
    assert read(make.pcap([]))[0] == []
    assert read(make.pcap([]))[1].notes == []


@pytest.mark.parametrize("step", [1 << 30, 100, 1])
def test_the_last_record_may_be_cut_anywhere(make: Any, step: int) -> None:
    raw = make.pcap(PACKETS, unit=1)
    for size in range(at(11), len(raw)):
        rows, reader = read(raw[:size], step)
        kept = size - at(11) - RECORD
        if kept >= 0:
            assert rows == [*expected()[:11], (12, PACKETS[11][0], DATA[11][:kept])]
            assert reader.notes == [f"packet 12 is cut: the file ends {counted(len(raw) - size, 'byte')} early"]
        else:
            assert rows == expected()[:11]
            behind = f"{kept + RECORD} bytes behind the last one"
            assert reader.notes == [f"the file ends in the middle of a packet header, {behind}"] * (kept > -RECORD)


@ORDERS
@pytest.mark.parametrize("step", [1 << 30, 333, 60, 1])
@pytest.mark.parametrize("damaged", [0, 1, 5, 10])
def test_a_damaged_record_is_skipped(make: Any, order: str, step: int, damaged: int) -> None:
    raw = bytearray(make.pcap(PACKETS, order, 1))
    raw[at(damaged) + 8 : at(damaged) + 12] = b"\xff" * 4
    rows, reader = read(bytes(raw), step)
    assert rows == expected(lost=(damaged,))
    skipped = RECORD + len(DATA[damaged])
    assert reader.notes == [f"damaged at byte {at(damaged):,}: {skipped} bytes skipped"]


@pytest.mark.parametrize("step", [1 << 30, 50])
def test_bytes_that_do_not_belong_are_skipped(make: Any, step: int) -> None:
    raw, rubbish = make.pcap(PACKETS, unit=1), b"\xff" * 77
    rows, reader = read(raw[: at(3)] + rubbish + raw[at(3) : at(9)] + rubbish + raw[at(9) :], step)
    assert rows == expected()
    assert reader.notes == [f"damaged at byte {place:,}: 77 bytes skipped" for place in (at(3), at(9) + 77)]


@pytest.mark.parametrize(("days", "kept"), [(-8, 0), (-1, 6), (1, 6), (8, 0)])
@pytest.mark.parametrize("step", [1 << 30, 60])
def test_behind_damage_records_are_believed_that_are_near_in_time(make: Any, days: int, kept: int, step: int) -> None:
    when, inner, damage = TIME // make.second + days * 86400, b"\xee" * 30, b"\xff" * 77
    others = (pack("<IIII", when, 0, 30, 30) + inner) * 6
    raw = make.pcap(PACKETS, unit=1)
    rows, _ = read(raw[: at(3)] + damage + others + damage + raw[at(3) :], step)
    assert [row[2] for row in rows] == DATA[:3] + [inner] * kept + DATA[3:]


def test_a_capture_may_take_longer_than_a_week(make: Any) -> None:
    weekly = [(TIME + number * 6 * 86400 * make.second, data) for number, data in enumerate(DATA)]
    raw = make.pcap(weekly, unit=1)
    rows, _ = read(raw[: at(3)] + make.pcap(weekly[9:10] * 9, unit=1)[HEADER:] + b"\xff" * 77 + raw[at(10) :])
    assert [row[2] for row in rows] == DATA[:3] + DATA[9:10] * 9 + DATA[10:]


def test_damage_up_to_the_end_is_said(make: Any) -> None:
    raw = make.pcap(PACKETS, unit=1)[: at(4)] + b"\xff" * 100
    rows, reader = read(raw)
    assert rows == expected()[:4]
    assert reader.notes[0] == f"damaged at byte {at(4)}: 85 bytes skipped"
    assert reader.notes[1:] == ["the file ends in the middle of a packet header, 15 bytes behind the last one"]


def test_a_place_is_believed_when_a_chain_follows(make: Any) -> None:
    raw = make.pcap(PACKETS, unit=1)
    view = memoryview(b"\xff" * 50 + raw[at(6) :])
    seconds = TIME // make.second
    assert find_record(view, 0, "<", seconds) == 50
    assert find_record(view, 0, "<", 0) == 50
    assert find_record(view, 51, "<", seconds) == 50 + at(7) - at(6)
    assert find_record(view, 0, "<", seconds - 8 * 86400) is None
    assert find_record(view, 0, ">", seconds) is None
    assert find_record(view, len(view) - 15, "<", seconds) is None
    assert find_record(memoryview(b""), 0, "<", 0) is None
    assert find_record(memoryview(bytes(300)), 0, "<", 0) is None  # zeros are no packets


def test_a_chain_that_breaks_is_not_believed() -> None:
    def header(seconds: int, size: int) -> bytes:
        return pack("<IIII", seconds, 0, size, size) + b"\xee" * size

    now = TIME // 1_000_000_000
    good = header(now, 20) * 6
    broken = header(now, 20) * 2 + header(now + 10**8, 20) + b"\xff" * 40
    huge = header(now, 20) + pack("<IIII", now, 0, MAX_PACKET, MAX_PACKET) + b"\xff" * 40
    for bad in (broken, huge):
        assert find_record(memoryview(bad + good), 0, "<", now) == len(bad)
        assert find_record(memoryview(bad), 0, "<", now) is None


def test_scapy_writes_what_is_read(tmp_path: Path) -> None:
    packets = [Ether() / IP() / TCP(dport=9092) / data for data in DATA]
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number / 8
    for nano in (False, True):
        for endianness in "<>":
            path = tmp_path / "scapy.pcap"
            wrpcap(str(path), packets, nano=nano, endianness=endianness)
            rows, _ = read(path.read_bytes())
            assert rows == [
                (number + 1, 1_700_000_000_000_000_000 + number * 125_000_000, bytes(packet))
                for number, packet in enumerate(packets)
            ]


def test_random_bytes_behind_the_header_raise_nothing(make: Any) -> None:
    rng = random.Random(3)
    for size in range(0, 400, 7):
        rows, _ = read(make.pcap([]) + rng.randbytes(size))
        assert sum(len(data) + RECORD for _, _, data in rows) <= size
