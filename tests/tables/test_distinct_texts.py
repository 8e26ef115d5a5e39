"""Distinct texts among places of a buffer."""

from __future__ import annotations

import numpy as np
import pytest

from kwire.tables.distinct_texts import distinct

BUFFER = b"abcab\xff"


@pytest.mark.parametrize(
    ("starts", "lengths", "valid", "texts", "which"),
    [
        ([], [], None, [], []),
        ([0, 3, 2], [2, 2, 1], None, [b"ab", b"c"], [0, 0, 1]),
        ([5, 0, 5], [1, 0, 1], None, [b"\xff", b""], [0, 1, 0]),
        ([0, 1, 2], [1, 1, 0], [True, False, True], [b"a", b""], [0, -1, 1]),
        ([0, 0], [0, 0], [False, False], [], [-1, -1]),
    ],
    ids=["none", "twice the same", "no UTF-8 and empty", "null among others", "all null"],
)
def test_texts_and_where_they_are(
    starts: list[int], lengths: list[int], valid: list[bool] | None, texts: list[bytes], which: list[int]
) -> None:
    mask = None if valid is None else np.array(valid, bool)
    found, places = distinct(BUFFER, np.array(starts, np.int64), np.array(lengths, np.int64), mask)
    assert found == texts
    assert places.tolist() == which
