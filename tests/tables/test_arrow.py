"""Texts as Arrow arrays: from where they lie, mended where they are no UTF-8."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kwire.tables import arrow
from kwire.tables.arrow import slices

BUFFER = b"one\xfftwo\xc3\xa9"


def test_texts_are_gathered_from_where_they_lie() -> None:
    starts, lengths = np.array([4, 0, 7, 0]), np.array([3, 3, 2, 0])
    found = slices(BUFFER, starts, lengths, np.array([True, True, True, False]), pa.string())
    found.validate(full=True)
    assert found.to_pylist() == ["two", "one", "\xe9", None]
    assert slices(BUFFER, starts, lengths, None, pa.binary()).to_pylist() == [b"two", b"one", b"\xc3\xa9", b""]


def test_text_that_is_no_utf8_is_mended() -> None:
    assert slices(BUFFER, np.array([0, 3]), np.array([4, 1]), None, pa.string()).to_pylist() == ["one\ufffd", "\ufffd"]


def test_no_texts() -> None:
    none = np.zeros(0, np.int64)
    assert slices(b"", none, none, None, pa.string()).to_pylist() == []


def test_bytes_of_one_size() -> None:
    assert slices(BUFFER, np.array([0, 4]), np.array([3, 3]), None, pa.binary(3)).to_pylist() == [b"one", b"two"]


def test_more_bytes_than_offsets_reach_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "LIMIT", 5)
    starts, lengths = np.array([0, 0]), np.array([3, 3])
    assert slices(b"abc", starts[:1], lengths[:1], None, pa.string()).to_pylist() == ["abc"]
    with pytest.raises(OverflowError, match="6 bytes in a column; an array takes 5"):
        slices(b"abc", starts, lengths, None, pa.string())
