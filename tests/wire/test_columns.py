"""Numbers at any offsets of a buffer, all at once."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import ROOT

from kwire.wire.columns import Columns, places_of, repeat, tally

DATA = bytes(range(0xF0, 0x100)) + b"\x01\x02\x03"


@pytest.mark.parametrize(("reader", "width"), [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)])
@pytest.mark.parametrize("form", [bytes, memoryview])
def test_every_offset_is_read_unsigned_and_big_endian(reader: str, width: int, form: type) -> None:
    offsets = np.arange(len(DATA) - width + 1)
    found = getattr(Columns(form(DATA)), reader)(offsets)
    assert found.tolist() == [int.from_bytes(DATA[at : at + width], "big") for at in offsets]
    assert found.dtype == (np.uint64 if width == 8 else np.int64)


@pytest.mark.parametrize(("reader", "width"), [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8)])
def test_offsets_beyond_the_end_read_what_stands_at_the_end(reader: str, width: int) -> None:
    found = getattr(Columns(DATA), reader)(np.array([len(DATA), 10**9, len(DATA) - width]))
    assert found.tolist() == [int.from_bytes(DATA[-width:], "big")] * 3


@pytest.mark.parametrize("size", range(9))
def test_a_buffer_shorter_than_a_number_is_filled_up_with_zeros(size: int) -> None:
    columns = Columns(b"\xab" * size)
    assert columns.size == size
    assert columns.u64(np.array([0])).tolist() == [int.from_bytes((b"\xab" * size).ljust(8, b"\0"), "big")]


def test_offsets_may_repeat_and_stand_in_any_order() -> None:
    assert Columns(DATA).u16(np.array([3, 0, 3])).tolist() == [0xF3F4, 0xF0F1, 0xF3F4]
    assert Columns(DATA).u8(np.array([], np.int64)).tolist() == []


def test_counts_of_64_bits_repeat() -> None:
    assert repeat([1, 2, 3], np.array([2, 0, 1], np.int64)).tolist() == [1, 1, 3]


def test_repeat_and_tally_stand_for_what_refuses_long_numbers_where_words_are_short() -> None:
    """np.repeat and np.bincount want the machine's own words; a browser's (Pyodide) have 32 bits."""
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "kwire").rglob("*.py")
        if re.search(r"np\.(repeat|bincount)\(", path.read_text())
    ]
    assert found == ["kwire/wire/columns.py"]
    assert repeat([7, 8], np.array([2, 1], np.int64)).tolist() == [7, 7, 8]
    assert tally(np.array([1, 1, 3], np.int64), size=5).tolist() == [0, 2, 0, 1, 0]
    assert tally(np.array([0, 1, 1], np.int64), [1, 2, 3]).tolist() == [1, 5]


def test_places_of_each_value() -> None:
    values = np.array([2, 0, 2, 3, 0, 2])
    assert [found.tolist() for found in places_of(values, 5)] == [[1, 4], [], [0, 2, 5], [3], []]
    assert places_of(np.zeros(0, np.int64), 0) == []
    many = np.array([70_000, 5, 70_000 % 65_536])
    found = places_of(many, 70_001)
    assert (found[70_000].tolist(), found[5].tolist(), found[70_000 % 65_536].tolist()) == ([0], [1], [2])
