"""Plots: what is drawn is what was counted."""

from __future__ import annotations

import re

from kwire.analyze.findings import TimeFormat
from kwire.analyze.overtime import BINS, DECADE, TimeSlots
from kwire.render.report.plots import FINE, Plots, shown_bins, spark


def _plots(slots: int) -> Plots:
    zeros, none = [0] * slots, [[0] * BINS] * slots
    return Plots(TimeSlots(slots, 0, 1000, zeros, zeros, zeros, {}, none, none), TimeFormat(0))


def _area(path: str) -> int:
    """Cells of the rectangles of a path."""
    return sum(int(width) for width in re.findall(r"h(\d+)v1", path))


def test_bars_are_stacked_up_to_the_highest() -> None:
    low, high = [1, 0, 2, 0], [1, 0, 2, 4]
    made = _plots(4).bars("Bytes", "some", [("a", "c0", low), ("b", "c1", high)], "4 B")
    paths = re.findall(r'class="f-(\w+)" d="([^"]*)"', made)
    assert paths == [("c0", "M0 100V75h1V100zM2 100V50h1V100z"), ("c1", "M0 75V50h1V75zM2 50V0h1V50zM3 100V0h1V100z")]
    assert 'aria-label="Bytes: some"' in made


def test_every_cell_of_a_density_is_drawn_once() -> None:
    counts = [[0] * BINS for _ in range(5)]
    counts[0][3], counts[1][3], counts[1][30], counts[4][47] = 1, 1, 9, 2
    low, high = shown_bins(counts)
    assert (low, high) == (0, 2 * DECADE)
    made = _plots(5).density("Latency", "of all", counts, low, high)
    assert sum(_area(path) for path in re.findall(r'class="h\d" d="([^"]*)"', made)) == 4
    assert made.count('class="hint"') == 3
    assert f'viewBox="0 0 5 {2 * DECADE // FINE}"' in made


def test_the_line_of_the_slowest_runs_above_the_cells_of_their_bins() -> None:
    counts = [[0] * BINS for _ in range(2)]
    counts[0][FINE], counts[1][FINE + 1] = 5, 5
    made = _plots(2).density("Latency", "of all", counts, 0, DECADE)
    rows = DECADE // FINE
    assert f'd="M0 {rows - 1}h1V{rows - 2}h1"' in made
    assert f'd="M0 {rows - 1}h1v1h-1zM1 {rows - 2}h1v1h-1z"' in made


def test_nothing_is_a_plot_too() -> None:
    assert shown_bins([[0] * BINS] * 3) == (0, DECADE)
    assert "<svg" in spark([], "nothing")
