"""The charts of timeline.py as an SVG picture, and as an HTML page with the verdicts above them.

Neither needs anything from elsewhere; colors follow the reader's dark or light. What a mark is, its title tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kwire.analyze.findings import Clock
from kwire.render.export import COLORS, FONT, GROUND
from kwire.render.groups import LANES, ROWS, STYLES, Judged
from kwire.render.lines import clean
from kwire.render.timeline import Chart, Lane, chart_of

WIDTH, LEFT, RIGHT, LANE, HEAD, FOOT = 1080, 190, 24, 28, 74, 22  # pixels
LETTER = 7.3  # a character's width at 12 pixels
MOST_TICKS = 2000  # of a lane
MARKS = {"joins": "good", "leaves": "note", "out": "error", "error": "error"}


def picture(judged: Judged, clock: Clock, everything: bool) -> str:
    """All charts, one beneath the other."""
    charts = _charts(judged, clock, everything)
    height = sum(_height(chart) for chart in charts) + 40
    parts = [
        _head(WIDTH, height, "kwire groups"),
        f"<style>\n{_rules()}</style>",
        '<rect class="ground" width="100%" height="100%"/>',
    ]
    top = 0
    for chart in charts:
        parts += _chart(chart, top)
        top += _height(chart)
    if charts:
        parts.append(_legend(top + 14))
    return "\n".join([*parts, "</svg>"])


def page(judged: Judged, clock: Clock, everything: bool) -> str:
    """The verdicts, then the charts."""
    items = [
        f'<li><b class="{STYLES[one.severity]}">{one.severity}</b> <b>{_text(history.name)}</b> {_text(one.what)}'
        + (f"<br>the broker says: {_text(one.words)}" if one.words else "")
        + (f"<br>→ {_text(one.advice)}" if one.advice else "") + _frames([str(ref) for ref in one.evidence]) + "</li>"
        for history, _, found in judged for one in found if everything or one.severity != "note"
    ]  # fmt: skip
    well = '<p class="good">nothing wrong</p>' if judged else "<p>no groups</p>"
    said = f"<ul>\n{chr(10).join(items)}\n</ul>" if items else well
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>kwire groups</title>\n'
        f"<style>\nbody {{ margin: 1.5em; max-width: {WIDTH}px; font: 14px/1.5 {FONT} }}\nli {{ margin: .7em 0 }}\n"
        f"ul {{ list-style: none; padding: 0 }}\n{_rules()}</style>\n</head>\n<body>\n{said}\n"
        f"{picture(judged, clock, everything)}\n</body>\n</html>"
    )


def _charts(judged: Judged, clock: Clock, everything: bool) -> list[Chart]:
    chosen = judged if everything else judged[:ROWS]
    found = (chart_of(history, clock, None if everything else LANES) for history, _, _ in chosen)
    return [chart for chart in found if chart is not None]


def _head(width: int, height: int, title: str) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<title>{title}</title>'


def _height(chart: Chart) -> int:
    return HEAD + LANE * len(chart.lanes) + FOOT + (16 if chart.hidden else 0)


def _chart(chart: Chart, top: int) -> Iterator[str]:
    bottom = top + HEAD + LANE * len(chart.lanes)
    yield f'<text class="title big" x="16" y="{top + 26}">{_text(chart.title)}</text>'
    span = chart.end - chart.start
    for part in range(9):
        moment = chart.start + span * part // 8
        x = _x(chart, moment)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{top + HEAD - 8}" y2="{bottom}"/>'
        yield f'<text class="dim" text-anchor="middle" x="{x}" y="{top + 44}">{chart.clock(moment)}</text>'
    free = 0.0
    for band in chart.bands:
        x, end = _x(chart, band.start), _x(chart, band.end)
        title = f"<title>{_text(band.text)}</title>"
        place = f'x="{x}" y="{top + HEAD - 8}" width="{max(end - x, 2):.1f}" height="{bottom - top - HEAD + 8}"'
        yield f'<rect class="band" {place}>{title}</rect>'
        number = "…" if band.number < 0 else str(band.number)
        if x >= free:
            yield f'<text class="value" x="{x}" y="{top + HEAD - 13}">{number}{title}</text>'
            free = x + LETTER * len(number) + 4
    for at, lane in enumerate(chart.lanes):
        yield from _lane(chart, lane, top + HEAD + LANE * at + LANE // 2)
    if chart.hidden:
        yield f'<text class="dim" x="16" y="{bottom + 14}">… {chart.hidden:,} more members (--all)</text>'


def _lane(chart: Chart, lane: Lane, y: int) -> Iterator[str]:
    name = clean(lane.label)
    most = int((LEFT - 30) / LETTER)
    shown = name if len(name) <= most else name[: most - 1] + "…"
    yield f'<text x="16" y="{y + 4}">{escape(shown)}<title>{escape(name)}</title></text>'
    for start, end in lane.spells:
        x = _x(chart, start)
        yield f'<rect class="spell" x="{x}" y="{y - 2}" width="{max(_x(chart, end) - x, 2):.1f}" height="4" rx="2"/>'
    step = max(len(lane.beats) // MOST_TICKS, 1)
    ticks = "".join(f"M{_x(chart, moment)} {y - 7}v14" for moment, _ in lane.beats[::step])
    if ticks:
        yield f'<path class="beat" d="{ticks}"/>'
    for mark in lane.marks:
        x, title = _x(chart, mark.time), f"<title>{_text(mark.text)}</title>"
        style = MARKS[mark.kind]
        if mark.kind == "out":
            path = f"M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10"
            yield f'<path class="out" d="{path}">{title}</path>'
        elif mark.kind == "error":
            yield f'<path class="{style}" d="M{x} {y - 9}l5 9h-10z">{title}</path>'
        else:
            yield f'<circle class="{style}" cx="{x}" cy="{y}" r="4">{title}</circle>'


def _legend(y: int) -> str:
    words = [("good", "| heartbeat"), ("value", "▮ rebalance"), ("good", "● joined"), ("note", "● left"),
             ("error", "✕ evicted or replaced"), ("error", "▲ error")]  # fmt: skip
    spans = "".join(
        f'<tspan class="{style}" dx="{14 if at else 0}">{word}</tspan>' for at, (style, word) in enumerate(words)
    )
    return f'<text x="16" y="{y}">{spans}</text>'


def _x(chart: Chart, moment: int) -> float:
    share = (moment - chart.start) / (chart.end - chart.start)
    return round(LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT), 1)


def _text(text: str) -> str:
    return escape(clean(text))


def _frames(references: list[str]) -> str:
    shown = ", ".join(map(_text, dict.fromkeys(references)))
    return f'<br><span class="dim">frames {shown}</span>' if shown else ""


def _rules() -> str:
    """CSS: dark, and light where the reader's system says so."""

    def scheme(index: int) -> str:
        color = {name: colors[index] for name, colors in COLORS.items()}
        rules = [f"body {{ background: {GROUND[index]}; color: {color['']} }}", f".ground {{ fill: {GROUND[index]} }}"]
        rules.append(f"text {{ fill: {color['']} }}")
        for name in ("title", "dim", "value", "good", "note", "error"):
            rules.append(f".{name} {{ fill: {color[name]}; color: {color[name]} }}")
        rules.append(f".beat {{ stroke: {color['good']}; fill: {color['good']} }}")
        rules.append(f".spell {{ fill: {color['dim']} }}")
        rules.append(f".grid {{ stroke: {color['dim']} }}")
        rules.append(f".band {{ fill: {color['value']} }}")
        rules.append(f".out {{ stroke: {color['error']} }}")
        return "\n".join(rules)

    fixed = (
        f"text {{ font: 12px {FONT} }}\n.big {{ font-size: 15px; font-weight: bold }}\n.band {{ opacity: .3 }}\n"
        ".grid { opacity: .25 }\n.beat { stroke-width: 1 }\n.out { stroke-width: 2.5; fill: none }\n"
    )
    return f"{fixed}{scheme(0)}\n@media (prefers-color-scheme: light) {{\n{scheme(1)}\n}}\n"
