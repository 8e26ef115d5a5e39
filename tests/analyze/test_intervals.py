"""The usual interval: a median that takes little room."""

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
    [((), None), ((7,), 7), ((3, 9), 3), ((1000, 1002, 9500, 1001), 1001), ((5, 5, 1, 5000, 5), 5)],
)
def test_a_silent_stretch_does_not_move_it(found: tuple[int, ...], usual: int | None) -> None:
    assert of(*found).usual == usual


def test_of_very_many_a_sample_is_kept_from_the_whole_time() -> None:
    intervals = of(*range(100_000))
    assert len(intervals.kept) <= MOST
    assert intervals.kept[0] == 0
    assert intervals.usual is not None
    assert intervals.usual == pytest.approx(50_000, rel=0.01)
    assert {b - a for a, b in zip(intervals.kept, intervals.kept[1:], strict=False)} == {intervals.step}
