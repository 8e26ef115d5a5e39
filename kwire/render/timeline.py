"""A group's life as lanes: a member a lane, heartbeats as ticks, rebalances as bands, errors as marks. In characters
here; timeline_svg.py draws the same chart."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.analyze.findings import TimeFormat, error_label, lasted
from kwire.analyze.history import History
from kwire.render.lines import Line, clean
from kwire.schema import codes

LABEL = 24  # columns of a member's name, at most
LEGEND = "┴ heartbeats  ▒ rebalance  > joins  < leaves  × evicted or replaced  ! error"


@dataclass(frozen=True, slots=True)
class Mark:
    """Something at a moment, ns. kind: joins, leaves, out, error."""

    time: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A member: when it was in the group, ns; heartbeats as moments with counts."""

    label: str
    spells: tuple[tuple[int, int], ...]
    beats: tuple[tuple[int, int], ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """A rebalance, from its cause until all members could work; number: the generation or epoch that it made."""

    start: int
    end: int
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """From start to end, ns; hidden: lanes left out; noun: what the bands' numbers count."""

    title: str
    clock: TimeFormat
    start: int
    end: int
    lanes: tuple[Lane, ...]
    bands: tuple[Band, ...]
    hidden: int = 0
    noun: str = "generation"


def chart_of(history: History, clock: TimeFormat, most: int | None) -> Chart | None:
    """The chart of a group; at most so many lanes, the most eventful ones. None without members."""
    seats = list(history.seats.all.values())
    if not seats:
        return None
    start, end = history.first, history.last
    outs: dict[str, list[Mark]] = {}
    for generation in history.generations:
        for cause in generation.causes:
            if cause.kind in ("joined", "back"):
                words = f"{'came back' if cause.kind == 'back' else 'joined'} at {clock(cause.time)}"
                outs.setdefault(cause.label, []).append(Mark(cause.time, "joins", words))
        for cause in generation.endings:
            kind = "leaves" if cause.kind in ("left", "removed", "silent") else "out"
            outs.setdefault(cause.label, []).append(Mark(cause.time, kind, f"{cause.kind} at {clock(cause.time)}"))
            end = max(end, cause.time)
    if most is not None and len(seats) > most:
        kept = sorted(seats, key=lambda seat: (-len(seat.errors), -len(seat.spells), -seat.beats.count))[:most]
        seats = [seat for seat in seats if seat in kept]
    lanes = []
    for seat in seats:
        spells = tuple((first or start, end if last is None else last) for first, last in seat.spells)
        marks = [
            Mark(time, "error", f"{error_label(code)} at {clock(time)}")
            for time, code in seat.errors
            if code != codes.REBALANCE_IN_PROGRESS
        ]
        lanes.append(Lane(seat.label, spells, tuple(seat.ticks.moments()), (*marks, *outs.get(seat.label, ()))))
    noun = "generation" if history.kinds["classic"] else "epoch"
    bands = []
    for one in history.generations:
        if one.adopted:
            continue
        done = max(one.done or one.formed or one.began, one.began)
        took = f", {lasted(one.took)}" if one.took is not None else ""
        bands.append(Band(one.began, done, one.number, f"{noun} {one.number} from {clock(one.began)}{took}"))
    if history.forming is not None and history.forming.joins:
        bands.append(Band(history.forming.began, end, -1, f"not over; since {clock(history.forming.began)}"))
    hidden = len(history.seats.all) - len(seats)
    return Chart(history.name, clock, start, max(end, start + 1), tuple(lanes), tuple(bands), hidden, noun)


def timeline_lines(chart: Chart, width: int) -> list[Line]:
    """The chart in characters."""
    label = min(max([len(clean(lane.label)) for lane in chart.lanes] + [len("generation")]), LABEL)
    columns = max(width - label - 2, 20)
    lines = [_axis(chart, label, columns), _numbers(chart, label, columns)]
    cells = [_column(chart, columns, band.start, band.end) for band in chart.bands]
    for lane in chart.lanes:
        lines.append(_lane(chart, lane, cells, label, columns))
    if chart.hidden:
        lines.append([(f"{'':<{label}}  … {chart.hidden:,} more members (--all)", "dim")])
    step = lasted((chart.end - chart.start) // columns)
    legend = f"{LEGEND}; a column is {step}"
    lines.append([(legend if len(legend) <= width else LEGEND[: width - 1], "dim")])
    return lines


def _column(chart: Chart, columns: int, start: int, end: int) -> tuple[int, int]:
    span = chart.end - chart.start
    first = (start - chart.start) * columns // span
    last = (end - chart.start) * columns // span
    return min(max(first, 0), columns - 1), min(max(last, 0), columns - 1)


def _axis(chart: Chart, label: int, columns: int) -> Line:
    """Times over their columns."""
    cells = [" "] * columns
    parts = max(columns // 14, 1)
    for part in range(parts + 1):
        moment = chart.start + (chart.end - chart.start) * part // parts
        text = chart.clock(moment)[: -2 if chart.end - chart.start > 2_000_000_000 else None]
        at = min(columns * part // parts, columns - len(text))
        if all(cell == " " for cell in cells[max(at - 1, 0) : at + len(text)]):
            cells[at : at + len(text)] = text
    return [(f"{'':<{label}}  ", ""), ("".join(cells), "offset")]


def _numbers(chart: Chart, label: int, columns: int) -> Line:
    """Generations where they begin."""
    cells = [" "] * columns
    free = 0
    for band in chart.bands:
        at, _ = _column(chart, columns, band.start, band.end)
        text = "…" if band.number < 0 else str(band.number)
        if at >= free and at + len(text) <= columns:
            cells[at : at + len(text)] = text
            free = at + len(text) + 1
    return [(f"{chart.noun:<{label}}  ", "dim"), ("".join(cells), "title")]


GLYPHS = {"joins": (">", "good"), "leaves": ("<", "note"), "out": ("×", "error"), "error": ("!", "error")}


def _lane(chart: Chart, lane: Lane, bands: list[tuple[int, int]], label: int, columns: int) -> Line:
    cells: list[tuple[str, str]] = [(" ", "")] * columns
    for start, end in lane.spells:
        first, last = _column(chart, columns, start, end)
        cells[first : last + 1] = [("─", "dim")] * (last + 1 - first)
    for moment, _ in lane.beats:
        at, _ = _column(chart, columns, moment, moment)
        cells[at] = ("┴", "good")
    for first, last in bands:
        for at in range(first, last + 1):
            if cells[at][0] != " ":
                cells[at] = ("▒", "value")
    for kind in ("joins", "leaves", "error", "out"):
        for mark in lane.marks:
            if mark.kind == kind:
                at, _ = _column(chart, columns, mark.time, mark.time)
                cells[at] = GLYPHS[kind]
    text = clean(lane.label)
    text = text if len(text) <= label else text[: label - 1] + "…"
    line: Line = [(f"{text:<{label}}  ", "name")]
    for char, style in cells:
        if len(line) > 1 and line[-1][1] == style:
            line[-1] = (line[-1][0] + char, style)
        else:
            line.append((char, style))
    return line
