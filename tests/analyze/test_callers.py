"""Who asks, and how often."""

from __future__ import annotations

import numpy as np

from kwire.analyze.callers import Caller, Pace, grouped

SECOND = 1_000_000_000


def test_a_pace() -> None:
    pace = Pace(SECOND)
    pace.add(np.arange(0, 10 * SECOND, SECOND // 2))
    pace.add(np.full(7, 12 * SECOND))
    assert (pace.count, pace.first, pace.last, pace.span) == (27, 0, 12 * SECOND, 12 * SECOND)
    assert (pace.most, pace.most_at) == (7, 12 * SECOND)
    assert pace.per_second == 26 / 12


def test_a_pace_of_nothing() -> None:
    assert Pace(SECOND).per_second == 0


def test_a_pace_keeps_few_stretches() -> None:
    pace = Pace(SECOND)
    for second in range(1000):
        pace.add(np.array([second * SECOND, second * SECOND + 5]))
    assert (pace.count, pace.most, len(pace._open) <= 65) == (2000, 2, True)


def test_grouped() -> None:
    assert [(key, places.tolist()) for key, places in grouped(np.array([3, 1, 3, 1, 2]))] == [
        (1, [1, 3]), (2, [4]), (3, [0, 2]),
    ]  # fmt: skip
    assert list(grouped(np.array([], np.int64))) == []


def test_a_caller_without_a_client_id() -> None:
    caller = Caller("", "10.0.0.7", "10.0.0.2:9092")
    assert (caller.about, caller.label) == ({"address": "10.0.0.7"}, "a client at 10.0.0.7")
