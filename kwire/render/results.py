"""What a query gave, as a table that fits: numbers to the right, long text cut; rows as blocks where columns have no
room beside each other. Also as markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kwire.counted import counted
from kwire.render.lines import Line, Piece, Shortener, clean, cut

Row = Sequence[Any]
LEAST = 10  # columns that a text keeps, at least
GAP = 2
NAME = 249  # characters of a name, at most: Kafka's limit for topics
PLAN = ["explain_key", "explain_value"]  # what DuckDB calls the columns of EXPLAIN
DAY = 86_400_000_000_000
LIVELY = re.compile(r"[<>&\[\]`*@#~!\\]|://|www\.", re.IGNORECASE)  # what Markdown makes something of


def result_lines(
    columns: Sequence[str], kinds: Sequence[str], rows: Sequence[Row], count: int, width: int | None = None,
    expanded: bool = False,
) -> list[Line]:  # fmt: skip
    """The first rows of a result that has count of them. kinds: number, time (ns, shown as clock times, UTC) or text.
    width: None cuts nothing. expanded: each row as a block, a line a column, and nothing cut."""
    if list(columns) == PLAN:
        return [[(clean(line), "")] for row in rows for line in str(row[1]).splitlines()]
    cells = _cells(kinds, rows)
    heads = [clean(column) for column in columns]
    widths = None if expanded else _widths(heads, kinds, cells, width)
    lines = (
        _blocks(heads, cells, None if expanded else width) if widths is None else _table(heads, kinds, cells, widths)
    )
    said = counted(count, "row")
    return [*lines, [(said if len(rows) == count else f"the first {len(rows):,} of {said}", "dim")]]


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str]) -> Iterator[str]:
    """The lines of a markdown table; right: the columns aligned to the right."""
    yield "| " + " | ".join(_escaped(column) for column in columns) + " |"
    yield "|" + "|".join(" ---: " if column in right else " --- " for column in columns) + "|"
    for row in rows:
        yield "| " + " | ".join(_escaped(text) for text in row) + " |"


def texts(kinds: Sequence[str], rows: Sequence[Row]) -> list[list[str]]:
    """The cells' texts, with nothing where there is no value."""
    return [[text if style != "dim" else "" for text, style in row] for row in _cells(kinds, rows)]


def _escaped(text: str) -> str:
    """A cell's text. What HTML, links or marks could be read from is code, in which nothing is one of these."""
    shown = clean(text)
    lively = LIVELY.search(shown)
    shown = shown.replace("|", "\\|")
    if not lively:
        return shown
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if "`" in (shown[0], shown[-1]) or shown.strip() != shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _cells(kinds: Sequence[str], rows: Sequence[Row]) -> list[list[Piece]]:
    times = [at for at, kind in enumerate(kinds) if kind == "time"]
    days = {row[at] // DAY for row in rows for at in times if isinstance(row[at], int)}
    return [[_cell(value, kind, len(days) > 1) for value, kind in zip(row, kinds, strict=True)] for row in rows]


def _cell(value: Any, kind: str, dated: bool) -> Piece:
    if value is None:
        return "NULL", "dim"
    if kind == "time":
        return _moment(value, dated), ""
    if isinstance(value, bool):
        return ("true" if value else "false"), ""
    if isinstance(value, float):
        return (repr(round(value, 3)) if abs(value) >= 1 else f"{value:.4g}"), ""
    if isinstance(value, int | str):
        return clean(str(value)), ""
    if isinstance(value, bytes):
        return value.hex(" "), ""
    return clean(json.dumps(value, ensure_ascii=False, default=bytes.hex)), ""


def _moment(value: int | str, dated: bool) -> str:
    """Its clock time, with the day where there are several; what is no time of ours stays as it is."""
    from kwire.render.exchanges import clock
    from kwire.wire.times import moment

    if isinstance(value, str):
        return clean(value)
    try:
        return f"{moment(value // 1_000_000)[:10]} {clock(value)}" if dated else clock(value)
    except (ValueError, OverflowError, OSError):
        return str(value)


def _widths(
    heads: Sequence[str], kinds: Sequence[str], cells: Sequence[Sequence[Piece]], width: int | None
) -> list[int] | None:
    """Of the columns; None when they do not fit, however short the texts are cut."""
    content = [max((len(row[at][0]) for row in cells), default=0) for at in range(len(heads))]
    natural = [max(size, len(head)) for size, head in zip(content, heads, strict=True)]
    if width is None:
        return natural
    kept = [0 if kind == "text" else size for kind, size in zip(kinds, content, strict=True)]
    room = width - GAP * (len(heads) - 1)
    for longest in range(max([LEAST, *natural]), LEAST - 1, -1):
        cut = [max(hard, min(size, longest)) for hard, size in zip(kept, natural, strict=True)]
        if sum(cut) <= room:
            return cut
    return None


def _table(
    heads: Sequence[str], kinds: Sequence[str], cells: Sequence[Sequence[Piece]], widths: Sequence[int]
) -> list[Line]:
    lines: list[Line] = []
    short = [Shortener() for _ in heads]
    for row in [[(head, "head") for head in heads], *cells]:
        line: Line = []
        for at, ((text, style), kind, size) in enumerate(zip(row, kinds, widths, strict=True)):
            shown = _fitted(text, size, short[at])
            padded = shown.rjust(size) if kind == "number" else shown.ljust(size)
            line.append((padded + " " * GAP, style))
        last, style = line.pop()
        lines.append([*line, (last.rstrip(), style)])
    return lines


def _blocks(heads: Sequence[str], cells: Sequence[Sequence[Piece]], width: int | None) -> list[Line]:
    """width: None cuts nothing."""
    if width is None:
        width = max((len(text) for row in cells for text, _ in row), default=0) + 2 * max(map(len, heads)) + 4
    size = min(max(map(len, heads)), width // 2)
    lines: list[Line] = []
    for number, row in enumerate(cells, 1):
        lines.append([(f"row {number:,}", "section")])
        for head, (text, style) in zip(heads, row, strict=True):
            lines.append([(f"  {cut(head, size):<{size}}  ", "head"), (cut(text, width - size - 4), style)])
    return lines or [[(cut("  ".join(heads), width), "head")]]


def _fitted(text: str, size: int, names: Shortener) -> str:
    """A word is cut in its middle, so that two stay different where that fits; a text of several words at its end."""
    if " " in text or len(text) > NAME:
        return cut(text, size)
    return cut(names.short(text, size), size)
