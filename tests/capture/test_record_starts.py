"""The starts of records that are found many at once are those of a walk one by one, or the first of them."""

from __future__ import annotations

import random
import struct

import pytest

from kwire.capture.pcap import PcapReader
from kwire.capture.record_starts import MAX_PACKET, RECORD, record_starts

TIME = 1_700_000_000


def _records(sizes: list[int], order: str = "<", body: bytes = b"") -> bytes:
    """Records of these sizes, filled with random bytes, or with those of body."""
    random.seed(7)
    parts = []
    for turn, size in enumerate(sizes):
        data = (body * (size // len(body) + 1))[:size] if body else random.randbytes(size)
        parts.append(struct.pack(order + "IIII", TIME + turn // 1000, turn % 1000, size, size) + data)
    return b"".join(parts)


def _singly(data: bytes, order: str) -> list[int]:
    starts, pos = [], 0
    while pos <= len(data) - RECORD:
        (captured,) = struct.unpack_from(order + "I", data, pos + 8)
        if captured > MAX_PACKET or pos + RECORD + captured > len(data):
            break
        starts.append(pos)
        pos += RECORD + captured
    return starts


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("sizes", [[60] * 3000, [54, 1514] * 1500, [66, 66, 66, 90, 400, 54] * 500, [0] * 3000])
def test_all_records_are_found(sizes: list[int], order: str) -> None:
    data = _records(sizes, order)
    starts, following = record_starts(memoryview(data), 0, order, lane=16)
    assert starts.tolist() == _singly(data, order)
    assert following == len(data)


def test_few_records_are_not_worth_it() -> None:
    starts, following = record_starts(memoryview(_records([60] * 100)), 0, "<")
    assert (starts.tolist(), following) == ([], 0)
    starts, following = record_starts(memoryview(b""), 0, "<")
    assert (starts.tolist(), following) == ([], 0)


def test_sizes_that_change_within_the_window() -> None:
    data = _records([60] * 2000 + [65_000] * 20 + [60] * 2000)
    starts, following = record_starts(memoryview(data), 0, "<", lane=16)
    assert starts.tolist() == _singly(data, "<")[: len(starts)]
    assert len(starts) >= 2000
    assert following == int(starts[-1]) + RECORD + struct.unpack_from("<I", data, int(starts[-1]) + 8)[0]


@pytest.mark.parametrize("claim", [MAX_PACKET + 1, 0xFFFFFFFF, 5000])
def test_it_ends_before_damage(claim: int) -> None:
    data = bytearray(_records([60] * 3000))
    struct.pack_into("<I", data, 1000 * 76 + 8, claim)
    starts, _ = record_starts(memoryview(bytes(data)), 0, "<", lane=16)
    expected = _singly(bytes(data), "<")
    assert starts.tolist() == expected[: len(starts)]
    assert len(starts) >= 990


def test_records_within_records_are_not_taken() -> None:
    inner = _records([20] * 30)
    data = _records([1080] * 400, body=inner)
    starts, _ = record_starts(memoryview(data), 0, "<", lane=16)
    assert starts.tolist() == _singly(data, "<")[: len(starts)]


def test_bytes_that_are_no_records() -> None:
    random.seed(3)
    for size in (10, 1000, 200_000):
        data = random.randbytes(size)
        starts, following = record_starts(memoryview(data), 0, "<", lane=16)
        assert starts.tolist() == _singly(data, "<")[: len(starts)]
        assert following <= size
    starts, _ = record_starts(memoryview(bytes(200_000)), 0, "<", lane=16)
    assert starts.tolist() == _singly(bytes(200_000), "<")[: len(starts)]


@pytest.mark.parametrize("cut", [0, 1, 15, 16, 40, 75])
@pytest.mark.parametrize("final", [True, False])
def test_a_reader_says_what_it_says_of_one_by_one(cut: int, final: bool) -> None:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    count = 3000
    data = header + _records([60] * count)
    data = data[: len(data) - cut]
    reader = PcapReader(data[:24], "many.pcap")
    blocks, used = reader.read(memoryview(data), final)
    packets = next(blocks)
    whole = count if cut == 0 else count - 1
    there = whole + (final and 0 < cut < 61)
    assert len(packets) == there
    assert packets.number.tolist() == list(range(1, there + 1))
    assert packets.start.tolist() == [24 + turn * 76 + RECORD for turn in range(there)]
    assert used == (len(data) if final else 24 + whole * 76)
    if final and 0 < cut < 61:
        assert reader.notes == [f"packet 3,000 is cut: the file ends {cut} byte{'s' * (cut > 1)} early"]
