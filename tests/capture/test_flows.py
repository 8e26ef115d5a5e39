"""Segments are sorted as if all keys were compared, however many come out of order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kwire.capture.flows import _ordered
from kwire.capture.tcp import _numbered


@pytest.mark.parametrize("flows", [1, 3, 70_000])
@pytest.mark.parametrize("swaps", [0, 1, 50, 3_000])
def test_order_is_by_flow_then_bare_then_place(flows: int, swaps: int) -> None:
    chance = random.Random(flows + swaps)
    flow = np.array([chance.randrange(flows) for _ in range(5_000)], np.intp)
    place = np.arange(5_000) // 3  # some alike
    bare = np.array([chance.random() < 0.1 for _ in range(5_000)])
    for _ in range(swaps):
        first, second = chance.randrange(5_000), chance.randrange(5_000)
        place[[first, second]] = place[[second, first]]
    expected = np.lexsort((place, ~bare, flow))
    assert (_ordered(flow, flows, bare, place) == expected).all()


def test_order_of_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert len(_ordered(none.astype(np.intp), 0, none.astype(bool), none)) == 0


@pytest.mark.parametrize(
    "values",
    [
        [7, 7, 7],
        [5 << 32, 3 << 32, 5 << 32, 9 << 48, 3 << 32],
        [5 << 32 | 1, 5 << 32 | 2, 5 << 32 | 1, 6 << 32],  # the upper half is alike
        [5 << 32 | 1, 5 << 32 | 2],
        [],
    ],
)
def test_numbers_of_values(values: list[int]) -> None:
    mixed = np.array(values, np.uint64)
    first, found = _numbered(mixed)
    assert mixed[first][found].tolist() == values
    assert sorted(first.tolist()) == sorted({values.index(value) for value in values})
