"""The usual interval: a median that takes little room, and is said of regular intervals only."""

from __future__ import annotations

import pytest

from kwire.analyze.intervals import MOST, Intervals


def of(*found: int) -> Intervals:
    intervals = Intervals()
    for one in found:
        intervals.add(one)
    return intervals


@pytest.mark.parametrize(
    ("found", "usual"),
    [((), None), ((7,), 7), ((3, 9), None), ((9, 10), 9), ((1000, 1002, 9500, 1001), 1001), ((5, 5, 1, 5000, 5), 5)],
)
def test_a_silent_stretch_does_not_move_it(found: tuple[int, ...], usual: int | None) -> None:
    assert of(*found).usual == usual


def test_of_very_many_a_sample_is_kept_from_the_whole_time() -> None:
    intervals = of(*range(100_000))
    assert len(intervals.kept) <= MOST
    assert intervals.kept[0] == 0
    assert intervals.middle == pytest.approx((25_000, 75_000), rel=0.02)
    assert {b - a for a, b in zip(intervals.kept, intervals.kept[1:], strict=False)} == {intervals.step}


def test_intervals_of_two_kinds_have_no_usual_one() -> None:
    assert of(*[2] * 10, *[500] * 10).usual is None
    assert of(*[2] * 10, *[500] * 10).middle == (2, 500)
    assert of(*[500] * 18, 2, 2).usual == 500
