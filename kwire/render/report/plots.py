"""Plots of a report as SVG: bars and densities over time. Letters stand beside them as HTML, so that they stay readable
when the picture gets narrow; every plot has a line that says it in words, and one table says all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from kwire.analyze.findings import TimeFormat
from kwire.analyze.overtime import BINS, DECADE, TimeSlots, edge, percentile
from kwire.render.exchanges import took
from kwire.render.html.markup import Content, Markup, element, joined

PARTS = 180  # slots of a plot, at most
LEVELS, FINE = 6, 4  # of a density: its shades, and how many bins are one row
TICKS = 5  # times beneath a plot
Density = Sequence[Sequence[int]]


class Plots:
    """Plots over the same time."""

    def __init__(self, over: TimeSlots, clock: TimeFormat) -> None:
        self.over, self.clock = over, clock

    def bars(self, title: str, said: str, series: Sequence[tuple[str, str, Sequence[int]]], top: str) -> Markup:
        """Bars, stacked. series: a name, a style and a value for each slot; top: the highest value as text."""
        highest = max(map(sum, zip(*(values for _, _, values in series), strict=True)), default=0) or 1
        below, paths = [0] * self.over.count, []
        for _, style, values in series:
            path = "".join(
                f"M{at} {100 - low * 100 / highest:.4g}V{100 - (low + value) * 100 / highest:.4g}"
                f"h1V{100 - low * 100 / highest:.4g}z"
                for at, (low, value) in enumerate(zip(below, values, strict=True)) if value
            )  # fmt: skip
            paths.append(element("path", class_=f"f-{style}", d=path))
            below = [low + value for low, value in zip(below, values, strict=True)]
        named = series if len(series) > 1 else ()
        legend = [element("span", name, class_=f"key k-{style}") for name, style, _ in named]
        return self._figure(title, said, _picture(self.over.count, 100, f"{title}: {said}", paths), [top, "0"], legend)

    def density(self, title: str, said: str, counts: Density, low: int, high: int) -> Markup:
        """A density: for each slot how many are in each bin of latencies; low and high: the bins shown, both edges of
        decades."""
        rows = (high - low) // FINE
        shown = [[sum(slot[at : at + FINE]) for at in range(low + 1, high + 1, FINE)] for slot in counts]
        for slot, cells in zip(counts, shown, strict=True):
            cells[0] += sum(slot[: low + 1])
        most = max((max(cells) for cells in shown), default=0) or 1
        levels = [[math.ceil(math.log(count + 1) / math.log(most + 1) * LEVELS) for count in cells] for cells in shown]
        paths = []
        for one in range(1, LEVELS + 1):
            path = "".join(_runs([cells[row] == one for cells in levels], rows - 1 - row) for row in range(rows))
            if path:
                paths.append(element("path", class_=f"h{one}", d=path))
        slowest = [percentile(slot, 0.99) for slot in counts]
        paths.append(element("path", class_="p99", d=_steps(slowest, low, rows, DECADE // FINE)))
        paths += [self._hint(at, rows, slot) for at, slot in enumerate(counts) if any(slot)]
        labels = [took(edge(at)) for at in range(high, low - 1, -DECADE)]
        legend = [element("span", "few", class_="key k-h1"), element("span", "many", class_="key k-h6"),
                  element("span", "p99", class_="key k-p99")]  # fmt: skip
        picture = _picture(self.over.count, rows, f"{title}: {said}", paths)
        return self._figure(title, said, picture, labels, legend)

    def _hint(self, at: int, rows: int, counts: Sequence[int]) -> Markup:
        """What the pointer is told over a slot."""
        words = f"{self.time(at)}: {sum(counts):,} answers, half within {_took(counts, 0.5)}"
        title = element("title", f"{words}, 99% within {_took(counts, 0.99)}")
        return element("rect", title, class_="hint", x=at, width=1, height=rows)

    def time(self, at: int) -> str:
        """When a slot begins."""
        return self.clock(self.over.start + at * self.over.length)

    def _figure(
        self, title: str, said: str, picture: Markup, labels: Sequence[str], legend: Sequence[Markup]
    ) -> Markup:
        last = max(self.over.count - 1, 1)
        times = [self.time(last * tick // (TICKS - 1)) for tick in range(TICKS)]
        return element(
            "figure",
            element("figcaption", element("b", title), " ", said, " " if legend else "", *legend),
            element("div", element("div", *(element("span", one) for one in labels), class_="y", aria_hidden="true"),
                    picture, element("div", *(element("span", f"{one} s") for one in times), class_="x",
                                     aria_hidden="true"), class_="plot"),
        )  # fmt: skip


def shown_bins(*densities: Density) -> tuple[int, int]:
    """From which bin to which, behind it, there is anything, in whole decades."""
    used = [at for density in densities for slot in density for at, count in enumerate(slot) if count]
    low = max(min(used, default=0) - 1, 0) // DECADE * DECADE
    high = min(-(-(max(used, default=0) + 1) // DECADE) * DECADE, BINS - 1)
    return low, max(high, low + DECADE)


def spark(counts: Sequence[int], said: str, style: str = "c0") -> Markup:
    """A small picture of counts over time."""
    highest = max(max(counts, default=0), 1)
    path = "".join(f"M{at} 20V{20 - 19 * count / highest:.3g}h1V20z" for at, count in enumerate(counts) if count)
    return _picture(max(len(counts), 1), 20, said, [element("path", class_=f"f-{style}", d=path)], "spark")


def _picture(width: int, height: int, said: str, content: Sequence[Content], style: str | None = None) -> Markup:
    return element(
        "svg", joined(content), viewBox=f"0 0 {max(width, 1)} {height}", preserveAspectRatio="none", role="img",
        aria_label=said, class_=style,
    )  # fmt: skip


def _runs(there: Sequence[bool], y: int) -> str:
    """Cells of a row that are side by side as one rectangle."""
    out, at = [], 0
    for filled, cells in groupby(there):
        width = len(list(cells))
        if filled:
            out.append(f"M{at} {y}h{width}v1h-{width}z")
        at += width
    return "".join(out)


def _steps(values: Sequence[int | None], low: int, rows: int, decade: int) -> str:
    """A line at the upper edges of bins, broken where there is nothing."""
    out, before = [], False
    lowest = edge(low)
    for at, value in enumerate(values):
        if value is None:
            before = False
            continue
        y = min(max(rows - math.ceil(math.log10(value / lowest) * decade - 0.01), 0), rows)
        out.append(f"{'V' if before else f'M{at} '}{y}h1")
        before = True
    return "".join(out)


def _took(counts: Sequence[int], share: float) -> str:
    value = percentile(counts, share)
    return "" if value is None else took(value)
