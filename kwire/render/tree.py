"""The span tree as it is: nested, in the order of the bytes, a line a span."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kwire.codec.span import UNDECODED, Span
from kwire.render.cells import type_cell, value_cell
from kwire.render.lines import Line, clean


def tree(span: Span, width: int = 100) -> Iterator[Line]:
    """Lines: offsets, then the branch with name, type and value, cut at width."""
    wide = len(str(max(part.end for part in (span, *span.below()))))  # decompressed, a part may end beyond the frame
    yield [(f"{_range(span, wide)}  ", "offset"), (clean(span.name), "title")]
    yield from _branches(span, "", wide, width)


def _range(span: Span, wide: int) -> str:
    return f"{span.start:>{wide}}–{span.end:<{wide}}"


def _branches(span: Span, prefix: str, wide: int, width: int) -> Iterator[Line]:
    for index, child in enumerate(span.children):
        last = index == len(span.children) - 1
        value, style = value_cell(child)
        left = f"{prefix}{'└─ ' if last else '├─ '}"
        name, kind = clean(child.name), "" if child.type in ("header", "message") else type_cell(child)
        room = width - 2 * wide - 3 - len(left) - len(name) - len(kind) - 2
        if child.type == UNDECODED:
            style = "error"
        if room < 0:
            kind = ""
        if len(value) > room:
            value = value[: room - 1] + "…" if room > 1 else ""
        yield [
            (f"{_range(child, wide)}  ", "offset"),
            (left, "dim"),
            (name, "section" if child.type in ("header", "message") else "name"),
            (f" {kind}" if kind else "", "type"),
            (f" {value}" if value and kind else "", style),
        ]
        inner = prefix + ("   " if last else "│  ")
        if child.note:
            indent = " " * (2 * wide + 3) + inner
            wrapped = textwrap.wrap(clean(child.note), max(20, width - len(indent) - 2), break_on_hyphens=False)
            for number, part in enumerate(wrapped):
                mark = "╰ " if number == 0 else "  "
                yield [(indent + mark + part, "error" if child.type == UNDECODED else "note")]
        yield from _branches(child, inner, wide, width)
