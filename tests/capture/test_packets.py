"""Packets as columns, and big-endian numbers read at many places at once."""

from __future__ import annotations

import numpy as np
import pytest

from kwire.capture.packets import Columns, Packets

DATA = bytes(range(0xF0, 0x100)) + bytes(range(4))


def places(*offsets: int) -> np.ndarray:
    return np.array(offsets, np.int64)


@pytest.mark.parametrize(("name", "width"), [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)])
def test_numbers_are_big_endian_at_any_offset(name: str, width: int) -> None:
    offsets = range(len(DATA) - width + 1)
    expected = [int.from_bytes(DATA[offset : offset + width], "big") for offset in offsets]
    assert getattr(Columns(DATA), name)(places(*offsets)).tolist() == expected
    assert getattr(Columns(memoryview(DATA)), name)(places(*offsets)).tolist() == expected


def test_columns_are_signed_and_wide_except_those_of_64_bits() -> None:
    data = Columns(DATA)
    assert {data.u8(places(0)).dtype, data.u16(places(0)).dtype, data.u32(places(0)).dtype} == {np.dtype(np.int64)}
    assert data.u64(places(0)).dtype == np.uint64


@pytest.mark.parametrize(("name", "last"), [("u8", 3), ("u16", 0x0203), ("u32", 0x00010203)])
def test_offsets_beyond_the_end_read_what_stands_at_the_end(name: str, last: int) -> None:
    assert getattr(Columns(DATA), name)(places(len(DATA), 10**12)).tolist() == [last, last]


@pytest.mark.parametrize("size", range(9))
def test_short_buffers_read_as_if_zeros_followed(size: int) -> None:
    data = Columns(DATA[:size])
    assert data.size == size
    assert int(data.u64(places(0))[0]) == int.from_bytes(DATA[:size].ljust(8, b"\0"), "big")


def test_at_chooses_by_mask_and_by_index() -> None:
    count = np.arange(4)
    packets = Packets(memoryview(DATA), count + 1, count * 10, count, count, count + 5, count * 0 + 1)
    by_mask, by_index = packets.at(np.array([False, True, False, True])), packets.at(np.array([3, 0]))
    assert (len(packets), len(by_mask), len(by_index)) == (4, 2, 2)
    assert by_mask.number.tolist() == [2, 4]
    assert by_index.number.tolist() == [4, 1]
    assert by_index.time.tolist() == [30, 0]
    assert by_index.length.tolist() == [8, 5]
    assert by_mask.buffer is packets.buffer
