"""Lines of styled pieces: what every view makes, and what a terminal, a pipe, an SVG or an HTML page is fed with.

Styles are words of our own (STYLES maps them to colors); no markup is ever read, so text from the wire can be shown
as it is once clean() has made its control characters visible.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from kwire.wire.visible import clean as clean

PROSE = 36  # columns that prose needs
MOST_NAMES, LONGEST = 10_000, 500  # that a Shortener keeps apart, and characters of each
Piece = tuple[str, str]
Line = list[Piece]

STYLES = {
    "": "",
    "title": "bold",
    "section": "bold cyan",
    "head": "dim",
    "offset": "dim",
    "name": "",
    "type": "green",
    "value": "yellow",
    "dim": "dim",
    "bytes": "blue",
    "note": "magenta",
    "error": "bold red",
    "good": "green",
    "c0": "cyan",
    "c1": "yellow",
    "c2": "magenta",
    "c3": "green",
    "c4": "blue",
}


def quoted(text: str) -> str:
    """Text from the wire in quotes."""
    return '"' + clean(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(text for text, _ in line).rstrip()


def cut(text: str, width: int) -> str:
    """The text, or as much of its beginning as fits."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


class Shortener:
    """Names cut in their middle. Two that differ stay different: where the usual place would make a name look like an
    earlier one, the cut moves, and where no cut helps, the name stays whole."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # by what is shown of them
        self._shown: dict[tuple[str, int], str] = {}

    def short(self, text: str, width: int) -> str:
        """The name in width columns, at least 3 of them."""
        if len(text) <= width:
            return text
        if len(text) > LONGEST:
            return middle_cut(text, width, max(width - 1, 2) // 2)
        shown = self._shown.get((text, width))
        if shown is None:
            shown = self._cut(text, width)
            if len(self._names) < MOST_NAMES:
                self._names[shown], self._shown[text, width] = text, shown
        return shown

    def _cut(self, text: str, width: int) -> str:
        middle = max(width - 1, 2) // 2
        usual = middle_cut(text, width, middle)
        other = self._names.get(usual, text)
        if other == text:
            return usual
        differs = next((at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), 0)

        def worth(head: int) -> tuple[bool, int]:  # where they differ should be seen
            hidden = head <= differs < len(text) - (width - 1 - head)
            return hidden, abs(head - middle)

        cuts = (middle_cut(text, width, head) for head in sorted(range(1, max(width - 1, 2)), key=worth))
        return next((one for one in cuts if self._names.get(one, text) == text), text)


def middle_cut(text: str, width: int, head: int) -> str:
    """head characters of the beginning, and of the end what else fits into width."""
    tail = width - 1 - head
    return f"{text[:head]}…{text[len(text) - tail :] if tail > 0 else ''}"


def joined(parts: Iterable[Piece], width: int) -> list[Line]:
    """Parts with a dot between them in one line; what does not fit goes on beneath."""
    lines: list[Line] = []
    used = 0
    for text, style in parts:
        if lines and used + 3 + len(text) <= width:
            lines[-1].append((f" · {text}", style))
            used += 3 + len(text)
        else:
            indent = "  " if lines else ""
            lines.append([(indent + text, style)])
            used = len(indent + text)
    return lines


def flowing(parts: Iterable[Piece], width: int, hang: str) -> list[Line]:
    """Parts one behind the other, two blanks between; what does not fit goes on beneath, behind hang, and what is
    longer than a line is broken."""
    lines: list[Line] = []
    used, room = 0, max(width - len(hang), 1)
    for text, style in parts:
        if lines and used + 2 + len(text) <= width:
            lines[-1].append((f"  {text}", style))
            used += 2 + len(text)
            continue
        first = width if not lines else room
        pieces = [text[:first], *(text[at : at + room] for at in range(first, len(text), room))]
        for piece in pieces:
            lines.append([(hang if lines else "", ""), (piece, style)])
        used = len(plain(lines[-1]))
    return lines


def paragraph(
    text: str, width: int, indent: str = "", style: str = "", hang: str | None = None, breaks: bool = False
) -> list[Line]:
    """Prose, wrapped; a blank line stands between paragraphs. breaks: words longer than a line are broken."""
    lines: list[Line] = []
    if breaks:  # textwrap would take time by the square of a word's length
        room = max(width - max(len(indent), len(hang or "")), 1)
        text = re.sub(rf"\S{{{room}}}(?=\S)", r"\g<0> ", text)
    for index, part in enumerate(text.split("\n\n")):
        if index:
            lines.append([])
        wrapped = textwrap.wrap(
            part, width, initial_indent=indent, subsequent_indent=indent if hang is None else hang,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        lines += [[(line, style)] for line in wrapped]
    return lines


def table(
    head: Iterable[str], rows: Iterable[Iterable[Piece]], width: int, right: frozenset[int] = frozenset()
) -> list[Line]:
    """Columns under a head; the last column takes what is left and wraps, or stands beneath where little is left.
    right: columns aligned to the right."""
    heads = list(head)
    cells = [list(row) for row in rows]
    last = len(heads) - 1
    wide = [max([len(heads[c]), *(len(row[c][0]) for row in cells)]) for c in range(last)]
    indent = sum(wide) + 2 * last
    beneath = width - indent < PROSE and any(len(row[last][0]) > PROSE for row in cells)
    if beneath:
        indent = wide[0] + 2
    lines: list[Line] = []
    for row in [[(text, "head") for text in heads], *cells]:
        texts = [text.rjust(wide[c]) if c in right else text.ljust(wide[c]) for c, (text, _) in enumerate(row[:last])]
        line: Line = [(text + "  ", style) for text, (_, style) in zip(texts, row, strict=False)]
        parts = textwrap.wrap(row[last][0], max(20, width - indent), break_on_hyphens=False) or [""]
        lines.append(line if beneath else [*line, (parts[0], row[last][1])])
        lines += [[(" " * indent, ""), (part, row[last][1])] for part in (parts if beneath else parts[1:])]
    return lines
