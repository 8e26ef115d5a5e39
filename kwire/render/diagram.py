"""The diagram: every field with offset, type, value and bytes, in the sections of the reference page.

A message is a section, its header is one, and so is every struct inside, under its path: the sections stand in the
order of their structs' offsets, and each ends with its tagged row. A row is one line; value and bytes that do not fit
go on beneath, bytes only when full is asked for.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from kwire.codec.secrets import Withheld
from kwire.codec.span import TAG, TAGGED, UNDECODED, Span
from kwire.render.cells import hex_bytes, type_cell, value_cell
from kwire.render.lines import Line, clean, quoted
from kwire.schema.errorcodes import errors

LINES = 4  # a value takes at most so many, unless all is asked for
HEADS = ("off", "field", "type", "value", "bytes")


class Options(NamedTuple):
    """width in columns; full: all bytes of every row; notes: the fields' notes too; elements: at most so many of each
    array (0: all)."""

    width: int = 100
    full: bool = False
    notes: bool = False
    elements: int = 0


class Row(NamedTuple):
    """One span's line: the bytes from its start to end, and notes beneath. behind is added to the type."""

    span: Span
    name: str
    end: int
    notes: tuple[tuple[str, str], ...]
    behind: str = ""


class Section(NamedTuple):
    title: str
    rows: list[Row]


def diagram(span: Span, data: bytes, options: Options = Options()) -> list[Line]:  # noqa: B008 (a frozen value)
    """The lines for a frame's or a message's tree; data are the bytes that offsets count in."""
    sections = list(_sections(span, options))
    rows = [row for section in sections for row in section.rows]
    layout = _layout(rows, options.width)
    lines: list[Line] = [_head(layout)]
    for section in sections:
        lines.append([(section.title, "section")])
        for row in section.rows:
            lines += _row(row, data, layout, options)
    return lines


# ---------------------------------------------------------------- sections


def _sections(span: Span, options: Options) -> Iterator[Section]:
    """The sections of a tree: a frame's size goes with its header."""
    if span.type == "message":
        yield from _struct_sections(span.name, "", span, options)
        return
    head: list[Row] = []
    for child in span.children:
        if child.type in ("header", "message"):
            sections = list(_struct_sections(child.name, "", child, options))
            yield Section(sections[0].title, head + sections[0].rows)
            yield from sections[1:]
            head = []
        else:
            head.append(_row_of(child, child.name, options))
    if head:
        yield Section(span.name, head)


def _struct_sections(title: str, path: str, span: Span, options: Options) -> Iterator[Section]:
    rows: list[Row] = []
    inner: list[tuple[str, Span]] = []
    for child in span.children:
        _collect(child, path, rows, inner, options)
    yield Section(title, rows)
    for inner_path, struct in sorted(inner, key=lambda item: item[1].start):
        label = _label(struct)
        yield from _struct_sections(f"{inner_path} · {label}" if label else inner_path, inner_path, struct, options)


def _collect(span: Span, path: str, rows: list[Row], inner: list[tuple[str, Span]], options: Options) -> None:
    """A field's row, the rows that belong beneath it, and the structs that get sections of their own."""
    if span.type == TAGGED:
        rows.append(_row_of(span, "tagged", options))
        for tag in span.children:
            _collect(tag, path, rows, inner, options)
        return
    here = f"{path}.{span.name}" if path else span.name
    if span.type == TAG and span.slot:
        rows.append(_tag_row(span, options))
        value = span.children[0] if span.children else span
        for child in span.children[1:]:
            rows.append(_row_of(child, child.name, options))
        _nested(value, here, rows, inner, options)
        return
    rows.append(_row_of(span, span.name, options))
    _nested(span, here, rows, inner, options)


def _nested(span: Span, path: str, rows: list[Row], inner: list[tuple[str, Span]], options: Options) -> None:
    slot = span.slot
    if slot is None or not span.children:
        return
    if slot.array:
        shown = span.children[: options.elements] if options.elements else span.children
        for element in shown:
            if slot.struct and element.type != UNDECODED:
                inner.append((path + element.name, element))
            else:
                rows.append(_row_of(element, "  " + element.name, options))
        left = len(span.children) - len(shown)
        if left:
            rows.append(_elided(span, shown, left))
    elif slot.struct:
        inner.append((path, span))


def _elided(span: Span, shown: tuple[Span, ...], left: int) -> Row:
    start = shown[-1].end
    mark = Span("…", "", start, span.end, None, (), None)
    return Row(mark, f"  … {left:,} more", start, ())


def _tag_row(span: Span, options: Options) -> Row:
    """A tagged field in one row: tag and size first, then a scalar's bytes, or an array's or struct's own."""
    value = span.children[0] if span.children else span
    row = _row_of(value, "  " + span.name, options)
    notes = ((clean(span.note), "note"), *row.notes) if span.note else row.notes
    return Row(value._replace(start=span.start), row.name, value.own_end, notes, f" · tag {span.value}")


def _row_of(span: Span, name: str, options: Options) -> Row:
    return Row(span, clean(name), span.own_end, tuple(_notes(span, options)))


def _notes(span: Span, options: Options) -> Iterator[tuple[str, str]]:
    if span.note:
        yield clean(span.note), "error" if span.type == UNDECODED else "note"
    field = span.slot.field if span.slot else None
    if field is None:
        return
    if field.error and not isinstance(span.value, Withheld):
        codes = span.value if isinstance(span.value, list) else [span.value]
        for code in dict.fromkeys(codes):
            error = errors.get(code) if isinstance(code, int) and code else None
            if error:
                retriable = " Retriable." if error.retriable else ""
                yield error.short + retriable, "note"
    if not span.name.startswith("["):
        for old in field.was:
            yield f"was {old.name} before {old.before}", "dim"
        if options.notes and field.note:
            yield field.note, "dim"


def _label(struct: Span) -> str:
    """What tells an element from its siblings: its first short text or id."""
    for child in struct.children[:3]:
        if isinstance(child.value, str) and child.value and not isinstance(child.value, Withheld):
            return quoted(child.value[:40])
        if child.name in ("PartitionIndex", "Partition", "NodeId", "BrokerId", "ApiKey") and isinstance(child.value, int):
            return f"{child.name} {child.value}"
    return ""


# ---------------------------------------------------------------- layout


class _Layout(NamedTuple):
    """Widths of the columns; room for bytes in pairs."""

    offset: int
    name: int
    type: int
    value: int
    pairs: int


def _layout(rows: list[Row], width: int) -> _Layout:
    offset = max(5, *(len(str(row.span.start)) for row in rows), 5) if rows else 5
    name = min(max([14, *(len(row.name) for row in rows)]), max(14, width // 4))
    kind = min(max([12, *(len(type_cell(row.span)) for row in rows)]), 22)
    pairs = 16 if width >= 140 else 8
    value = width - offset - name - kind - (3 * pairs - 1) - 8
    if value < 14:
        pairs = 4
        value = max(14, width - offset - name - kind - (3 * pairs - 1) - 8)
    needed = max([5, *(len(value_cell(row.span)[0]) for row in rows)])
    return _Layout(offset, name, kind, min(value, max(needed, 24)), pairs)


def _head(layout: _Layout) -> Line:
    off, field, kind, value, raw = HEADS
    text = f"{off:>{layout.offset}}  {field:<{layout.name}}  {kind:<{layout.type}}  {value:<{layout.value}}  {raw}"
    return [(text, "head")]


def _row(row: Row, data: bytes, layout: _Layout, options: Options) -> Iterator[Line]:
    span = row.span
    value, style = value_cell(span)
    name, kind = _fit(row.name, layout.name), _fit(type_cell(span) + row.behind, layout.type)
    hidden = isinstance(span.value, Withheld)
    values = [part.strip() for part in textwrap.wrap(value, layout.value, break_on_hyphens=False)]
    if len(values) > LINES and not options.full:
        values = [*values[: LINES - 1], values[LINES - 1][: layout.value - 1] + "…"]
    raws = [] if span.type == "" else list(_raws(data, span.start, row.end, hidden, layout.pairs, options.full))
    broken = span.type == UNDECODED
    for number in range(max(1, len(values), len(raws))):
        first = number == 0
        raw = raws[number] if number < len(raws) else ""
        text = values[number] if number < len(values) else ""
        yield [
            (f"{span.start if first else '':>{layout.offset}}  ", "offset"),
            (f"{name if first else '':<{layout.name}}  ", "error" if broken else "name"),
            (f"{kind if first else '':<{layout.type}}  ", "error" if broken else "type"),
            (f"{text:<{layout.value}}  ", style),
            (raw, "bytes"),
        ]
    indent = " " * (layout.offset + 2)
    for note, note_style in row.notes:
        wrapped = textwrap.wrap(note, max(20, options.width - len(indent) - 2), break_on_hyphens=False)
        for number, part in enumerate(wrapped):
            yield [(indent + ("╰ " if number == 0 else "  ") + part, note_style)]


def _raws(data: bytes, start: int, end: int, hidden: bool, pairs: int, full: bool) -> Iterator[str]:
    if not full and end - start > pairs:
        yield hex_bytes(data, start, start + pairs - 1, hidden) + " …"
        return
    for at in range(start, end, pairs):
        yield hex_bytes(data, at, min(at + pairs, end), hidden)


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
