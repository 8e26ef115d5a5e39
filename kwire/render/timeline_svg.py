"""The charts of timeline.py as an SVG picture, and as an HTML page with the verdicts above them.

Neither needs anything from elsewhere; colors follow the reader's dark or light. What a mark is, its title tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from kwire.analyze.findings import TimeFormat
from kwire.render.colors import COLORS, FONT, GROUND, palette
from kwire.render.groups import LANES, ROWS, STYLES, Judged, all_well
from kwire.render.html.frame import Facts
from kwire.render.html.frame import page as framed
from kwire.render.html.markup import LINE, Markup, element, joined
from kwire.render.lines import clean, cut
from kwire.render.timeline import Chart, Lane, chart_of

HEAD, FOOT = 74, 22  # pixels above the lanes of a chart and beneath them
LETTER = 7.3  # a character's width at 12 pixels
MOST_TICKS = 2000  # of a lane

MARKS = {"joins": "good", "leaves": "note", "out": "error", "error": "error"}


class Shape(NamedTuple):
    """Pixels. left and right of the time; lane: the height of one; above: where a lane's name stands above it, by how
    much, else 0; parts: of the time, each with its moment; ticks: at most, of a lane."""

    width: int
    left: int
    right: int
    lane: int
    above: int
    parts: int
    style: str
    ticks: int = MOST_TICKS


WIDE = Shape(1080, 190, 24, 28, 0, 8, "wide")
NARROW = Shape(380, 12, 16, 42, 17, 3, "narrow")  # of a phone


def picture(judged: Judged, clock: TimeFormat, everything: bool) -> str:
    """All charts, one beneath the other."""
    charts = _charts(judged, clock, everything)
    height = sum(_height(chart, WIDE) for chart in charts) + 40
    parts = [
        _head(WIDE.width, height, "kwire groups"),
        f"<style>\n{_schemes()}</style>",
        '<rect class="ground" width="100%" height="100%"/>',
    ]
    top = 0
    for chart in charts:
        parts += _chart(chart, top, WIDE)
        top += _height(chart, WIDE)
    if charts:
        parts += _legend(top + 14, WIDE)
    return "\n".join([*parts, "</svg>"])


def page(judged: Judged, clock: TimeFormat, everything: bool, facts: Facts = ()) -> str:
    """The verdicts, then the charts. facts: what stands at the top."""
    items = [
        element("li", element("b", one.severity, class_=STYLES[one.severity]), " ", element("b", history.name), " ",
                one.what, _beneath("the broker says: ", one.words), _beneath("→ ", one.advice),
                _beneath("frames ", ", ".join(dict.fromkeys(str(ref) for ref in one.evidence)), "dim"))
        for history, _, found in judged for one in found if everything or one.severity != "note"
    ]  # fmt: skip
    said, style = all_well(judged) if judged else ("no groups", "")
    well = element("p", said, class_=style or None)
    charts = [figure(chart, shape) for chart in _charts(judged, clock, everything) for shape in (WIDE, NARROW)]
    body = joined([element("ul", *items, class_="bare") if items else well, *charts], LINE)
    return framed("kwire groups", body, facts=facts, style=page_style())


def figure(chart: Chart, shape: Shape, ticks: int = MOST_TICKS) -> Markup:
    """One chart, for a page that has page_style(): it shows the wide one or the narrow one. ticks: of a lane."""
    rows = 1 if shape.above == 0 else 3
    height = _height(chart, shape) + 4 + 16 * rows
    parts = [_head(shape.width, height, f"{cut(clean(chart.title), 300)}: members over time")]
    parts += _chart(chart, 0, shape._replace(ticks=ticks))
    parts += [*_legend(height - 16 * rows + 8, shape), "</svg>"]
    return element("figure", Markup("\n".join(parts)), class_=shape.style)


def page_style() -> str:
    """CSS of charts in a page: colors are the page's."""
    return FIXED + _rules({name: f"var(--{name or 'text'})" for name in COLORS}, "var(--ground)")


def _beneath(label: str, text: str, style: str | None = None) -> Markup | None:
    return joined([Markup("<br>"), element("span", label, text, class_=style)]) if text else None


def _charts(judged: Judged, clock: TimeFormat, everything: bool) -> list[Chart]:
    chosen = judged if everything else judged[:ROWS]
    found = (chart_of(history, clock, None if everything else LANES) for history, _, _ in chosen)
    return [chart for chart in found if chart is not None]


def _head(width: int, height: int, title: str) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>\n<title>{escape(title)}</title>'


def _height(chart: Chart, shape: Shape) -> int:
    return HEAD + shape.lane * len(chart.lanes) + FOOT + (16 if chart.hidden else 0)


def _chart(chart: Chart, top: int, shape: Shape) -> Iterator[str]:
    bottom = top + HEAD + shape.lane * len(chart.lanes)
    yield f'<text class="title big" x="16" y="{top + 26}">{_text(chart.title)}</text>'
    span = chart.end - chart.start
    for part in range(shape.parts + 1):
        moment = chart.start + span * part // shape.parts
        x = _x(chart, shape, moment)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{top + HEAD - 8}" y2="{bottom}"/>'
        outer = "start" if part == 0 else "end"  # where there is no room beside the time
        anchor = outer if part in (0, shape.parts) and shape.above else "middle"
        yield f'<text class="dim" text-anchor="{anchor}" x="{x}" y="{top + 44}">{chart.clock(moment)}</text>'
    free = 0.0
    for band in chart.bands:
        x, end = _x(chart, shape, band.start), _x(chart, shape, band.end)
        title = f"<title>{_text(band.text)}</title>"
        place = f'x="{x}" y="{top + HEAD - 8}" width="{max(end - x, 2):.1f}" height="{bottom - top - HEAD + 8}"'
        yield f'<rect class="band" {place}>{title}</rect>'
        number = "…" if band.number < 0 else str(band.number)
        if x >= free:
            yield f'<text class="value" x="{x}" y="{top + HEAD - 13}">{number}{title}</text>'
            free = x + LETTER * len(number) + 4
    for at, lane in enumerate(chart.lanes):
        yield from _lane(chart, lane, top + HEAD + shape.lane * at + (shape.lane + shape.above) // 2, shape)
    if chart.hidden:
        yield f'<text class="dim" x="16" y="{bottom + 14}">… {chart.hidden:,} more members (--all)</text>'


def _lane(chart: Chart, lane: Lane, y: int, shape: Shape) -> Iterator[str]:
    name = clean(lane.label)
    most = int(((shape.width if shape.above else shape.left) - 30) / LETTER)
    shown = name if len(name) <= most else name[: most - 1] + "…"
    place = f'x="{min(shape.left, 16)}" y="{y + 4 - shape.above}"'
    yield f"<text {place}>{escape(shown)}<title>{escape(cut(name, 200))}</title></text>"
    for start, end in lane.spells:
        x = _x(chart, shape, start)
        width = max(_x(chart, shape, end) - x, 2)
        yield f'<rect class="spell" x="{x}" y="{y - 2}" width="{width:.1f}" height="4" rx="2"/>'
    step = max(-(-len(lane.beats) // shape.ticks), 1)
    ticks = "".join(f"M{_x(chart, shape, moment)} {y - 7}v14" for moment, _ in lane.beats[::step])
    if ticks:
        yield f'<path class="beat" d="{ticks}"/>'
    for mark in lane.marks:
        x, title = _x(chart, shape, mark.time), f"<title>{_text(mark.text)}</title>"
        style = MARKS[mark.kind]
        if mark.kind == "out":
            path = f"M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10"
            yield f'<path class="out" d="{path}">{title}</path>'
        elif mark.kind == "error":
            yield f'<path class="{style}" d="M{x} {y - 9}l5 9h-10z">{title}</path>'
        else:
            yield f'<circle class="{style}" cx="{x}" cy="{y}" r="4">{title}</circle>'


def _legend(y: int, shape: Shape) -> Iterator[str]:
    """What the marks are: a line, or on a phone one for every two."""
    words = [("good", "| heartbeat"), ("value", "▮ rebalance"), ("good", "● joined"), ("note", "● left"),
             ("error", "✕ evicted or replaced"), ("error", "▲ error")]  # fmt: skip
    each = 2 if shape.above else len(words)
    for row in range(0, len(words), each):
        spans = "".join(
            f'<tspan class="{style}" dx="{14 if at else 0}">{word}</tspan>'
            for at, (style, word) in enumerate(words[row : row + each])
        )
        yield f'<text x="{min(shape.left, 16)}" y="{y + 16 * row // each}">{spans}</text>'


def _x(chart: Chart, shape: Shape, moment: int) -> float:
    share = (moment - chart.start) / (chart.end - chart.start)
    return round(shape.left + min(max(share, 0.0), 1.0) * (shape.width - shape.left - shape.right), 1)


def _text(text: str) -> str:
    return escape(cut(clean(text), 300))


FIXED = (
    f"svg text {{ font: 12px {FONT} }}\nsvg .big {{ font-size: 15px; font-weight: bold }}\n.band {{ opacity: .3 }}\n"
    ".grid { opacity: .25 }\n.beat { stroke-width: 1 }\n.out { stroke-width: 2.5; fill: none }\n"
)


def _schemes() -> str:
    """CSS of a picture alone: dark, and light where the reader's system says so."""
    dark, light = (_rules(palette(index), GROUND[index]) for index in (0, 1))
    return f"{FIXED}{dark}\n@media (prefers-color-scheme: light) {{\n{light}\n}}\n"


def _rules(color: Mapping[str, str], ground: str) -> str:
    """CSS with these colors."""
    rules = [f".ground {{ fill: {ground} }}", f"svg text {{ fill: {color['']} }}"]
    for name in ("title", "dim", "value", "good", "note", "error"):
        rules.append(f"svg .{name} {{ fill: {color[name]} }}")
    rules.append(f".beat {{ stroke: {color['good']}; fill: {color['good']} }}")
    rules.append(f".spell {{ fill: {color['dim']} }}")
    rules.append(f".grid {{ stroke: {color['dim']} }}")
    rules.append(f".band {{ fill: {color['value']} }}")
    rules.append(f".out {{ stroke: {color['error']} }}")
    return "\n".join(rules)
