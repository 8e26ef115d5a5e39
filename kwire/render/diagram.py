"""The diagram: every field with offset, type, value and bytes, in the sections of the reference page.

A message is a section, its header is one, and so is every struct inside, under its path: the sections stand in the
order of their structs' offsets, and each ends with its tagged row. A row is one line; value and bytes that do not fit
go on beneath, bytes only when full is asked for: then over the whole width.
"""

from __future__ import annotations

import textwrap
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kwire.codec.secrets import Withheld
from kwire.codec.span import TAG, TAGGED, UNDECODED, Span
from kwire.render.cells import hex_bytes, type_cell, value_cell
from kwire.render.lines import Line, clean, joined, quoted
from kwire.schema.errorcodes import errors

LINES = 4  # a value takes at most so many, unless all is asked for
LONG = 16  # pairs a line where bytes stand beneath their row
NARROW = 72  # columns below which there is no room for packets
SHORT = 40  # characters of a section's label
IDS = ("PartitionIndex", "Partition", "NodeId", "BrokerId", "ApiKey")  # numbers that tell elements apart
TOPIC = "TopicId"  # which tells elements apart by the name that is beside it
ELIDED = ""  # the type of the row that stands for elements left out
HEADS = ("off", "field", "type", "value", "bytes")


class DiagramOptions(NamedTuple):
    """width in columns; full: all bytes of every row; notes: the fields' notes too; elements: at most so many of each
    array (0: all); packets: where in the frame which packet begins, as (offset, number): a column of its own."""

    width: int = 100
    full: bool = False
    notes: bool = False
    elements: int = 0
    packets: tuple[tuple[int, int], ...] = ()


class DiagramRow(NamedTuple):
    """One span's line: the bytes from its start to end, and notes beneath. behind is added to the type."""

    span: Span
    name: str
    end: int
    notes: tuple[tuple[str, str], ...]
    behind: str = ""


class Section(NamedTuple):
    """Rows under a title; data are the bytes that their offsets count in: the frame's, or what was decompressed."""

    title: str
    rows: list[DiagramRow]
    data: bytes


class InnerStruct(NamedTuple):
    """A struct that gets a section of its own, behind the section that it was found in."""

    path: str
    span: Span
    data: bytes


def diagram(span: Span, data: bytes, options: DiagramOptions = DiagramOptions()) -> list[Line]:  # noqa: B008 (a frozen value)
    """The lines for a frame's or a message's tree; data are the bytes that offsets count in."""
    return [line for line, _, _ in diagram_rows(span, data, options)]


def diagram_rows(
    span: Span,
    data: bytes,
    options: DiagramOptions = DiagramOptions(),  # noqa: B008
) -> Iterator[tuple[Line, DiagramRow | None, bytes]]:
    """The same with the row that each line belongs to, None for heads and titles; and what its offsets count in."""
    sections = list(sections_of(span, data, options))
    rows = [row for section in sections for row in section.rows]
    gutter = _Gutter(options.packets if options.width >= NARROW else ())
    options = options._replace(width=options.width - gutter.width)
    layout = _layout(rows, options.width)
    yield gutter.beside(_head(layout), "packet"), None, data
    for section in sections:
        titles = joined([(part, "section") for part in section.title.split(" · ")], options.width)
        yield from ((gutter.beside(line), None, section.data) for line in titles)
        for row in section.rows:
            packet = gutter.packet(row.span.start) if section.data is data else ""
            for line in _row(row, section.data, layout, options):
                yield gutter.beside(line, packet), row, section.data
                packet = ""


class _Gutter:
    """The column of packets: a number where a row begins in another packet than the row above."""

    def __init__(self, packets: tuple[tuple[int, int], ...]) -> None:
        self._offsets = [offset for offset, _ in packets]
        self._numbers = [number for _, number in packets]
        self._last = -1
        self.width = max(6, *(len(str(number)) for number in self._numbers)) + 2 if packets else 0

    def packet(self, offset: int) -> str:
        at = bisect_right(self._offsets, offset) - 1
        if at < 0 or at == self._last:
            return ""
        self._last = at
        return str(self._numbers[at])

    def beside(self, line: Line, text: str = "") -> Line:
        return [(f"{text:>{self.width - 2}}  ", "offset"), *line] if self.width else line


# ---------------------------------------------------------------- sections


def sections_of(span: Span, data: bytes, options: DiagramOptions) -> Iterator[Section]:
    """The sections of a tree: a frame's size goes with its header."""
    if span.type == "message":
        yield from _struct_sections(span.name, InnerStruct("", span, data), options)
        return
    head: list[DiagramRow] = []
    for child in span.children:
        if child.type in ("header", "message"):
            sections = list(_struct_sections(child.name, InnerStruct("", child, data), options))
            yield Section(sections[0].title, head + sections[0].rows, data)
            yield from sections[1:]
            head = []
        else:
            head.append(_row_of(child, child.name, options))
    if head:
        yield Section(span.name, head, data)


def _struct_sections(title: str, struct: InnerStruct, options: DiagramOptions) -> Iterator[Section]:
    rows: list[DiagramRow] = []
    inner: list[InnerStruct] = []
    bound = options.elements if struct.span.is_list else 0  # a file of batches or entries is a list itself
    shown = struct.span.children[: bound or None]
    for child in shown:
        _collect(child, struct, rows, inner, options)
    if len(shown) < len(struct.span.children):
        rows.append(_elided(struct.span, shown, len(struct.span.children) - len(shown)))
    yield Section(title, rows, struct.data)
    for found in inner:
        label = _label(found.span)
        inside = "" if found.data is struct.data else " · decompressed"
        yield from _struct_sections(f"{found.path}{f' · {label}' if label else ''}{inside}", found, options)


def _collect(
    span: Span, parent: InnerStruct, rows: list[DiagramRow], inner: list[InnerStruct], options: DiagramOptions
) -> None:
    """A field's row, the rows that belong beneath it, and the structs that get sections of their own."""
    if span.type == TAGGED:
        rows.append(_row_of(span, "tagged", options))
        for tag in span.children:
            _collect(tag, parent, rows, inner, options)
        return
    path = f"{parent.path}.{span.name}" if parent.path and not span.name.startswith("[") else parent.path + span.name
    if span.type == TAG and span.slot:
        rows.append(_tag_row(span, options))
        value = span.children[0] if span.children else span
        for child in span.children[1:]:
            rows.append(_row_of(child, child.name, options))
        _nested(InnerStruct(path, value, parent.data), rows, inner, options)
        return
    if span.type == TAG:  # an unknown one: tag, size and value in one row
        rows.append(DiagramRow(span, "  " + clean(span.name), span.end, tuple(_notes(span, options))))
        return
    rows.append(_row_of(span, span.name, options))
    _nested(InnerStruct(path, span, parent.data), rows, inner, options)


def _nested(found: InnerStruct, rows: list[DiagramRow], inner: list[InnerStruct], options: DiagramOptions) -> None:
    """What lies inside a span: elements each, the fields of a struct together."""
    span = found.span
    data = found.data if span.buffer is None else span.buffer
    if not span.is_list:
        if span.children:
            inner.append(found._replace(data=data))
        return
    shown = span.children[: options.elements] if options.elements else span.children
    for element in shown:
        if element.children:
            inner.append(InnerStruct(found.path + element.name, element, data))
        else:
            rows.append(_row_of(element, "  " + element.name, options))
    left = len(span.children) - len(shown)
    if left:
        rows.append(_elided(span, shown, left))


def _elided(span: Span, shown: tuple[Span, ...], left: int) -> DiagramRow:
    start = shown[-1].end
    mark = Span("…", ELIDED, start, span.end)
    return DiagramRow(mark, f"  … {left:,} more", start, ())


def _tag_row(span: Span, options: DiagramOptions) -> DiagramRow:
    """A tagged field in one row: tag and size first, then a scalar's bytes, or an array's or struct's own."""
    value = span.children[0] if span.children else span
    row = _row_of(value, "  " + span.name, options)
    notes = ((clean(span.note), "note"), *row.notes) if span.note else row.notes
    return DiagramRow(value._replace(start=span.start), row.name, value.own_end, notes, f" · tag {span.value}")


def _row_of(span: Span, name: str, options: DiagramOptions) -> DiagramRow:
    return DiagramRow(span, clean(name), span.own_end, tuple(_notes(span, options)))


def _notes(span: Span, options: DiagramOptions) -> Iterator[tuple[str, str]]:
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
    """What tells an element from its siblings: what it says of itself, or its first short text or id."""
    if struct.text:
        return clean(struct.text)
    for child in struct.children[:3]:
        if isinstance(child.value, str) and child.value and not isinstance(child.value, Withheld):
            text = quoted(child.value[: SHORT + 1])[1:-1]  # with escapes spelled it is longer
            return f'"{text}"' if len(text) <= SHORT else f'"{text[: SHORT - 1]}…"'
        if child.name == TOPIC and child.text:
            return f'"{clean(child.text)[:SHORT]}"'
        if child.name in IDS and isinstance(child.value, int):
            return f"{child.name} {child.value}"
    return ""


# ---------------------------------------------------------------- layout


class _Layout(NamedTuple):
    """Widths of the columns; room for bytes in pairs, 0 for no such column."""

    offset: int
    name: int
    type: int
    value: int
    pairs: int

    @property
    def behind(self) -> int:
        """Columns from the value on: a value that cannot be broken may take them all."""
        return self.value + (3 * self.pairs + 1 if self.pairs else 0)


def _layout(rows: list[DiagramRow], width: int) -> _Layout:
    """The values get 19 columns if they need them, then types and names get what they need, then values and bytes."""
    offset = max([5, *(len(str(row.span.start)) for row in rows)])
    needed = max([24, *(len(value_cell(row.span)[0]) for row in rows)])
    left = width - offset - 6 - 13 - 19
    kind = min(max([12, *(len(type_cell(row.span)) for row in rows)]), 22)
    name = min(max([14, *(len(row.name) for row in rows)]), max(14, left - kind))
    for pairs, least in ((16, 40), (8, 24), (4, 14), (0, 0)):
        value = width - offset - name - kind - 6 - (3 * pairs + 1 if pairs else 0)
        if value >= least:
            break
    return _Layout(offset, name, kind, min(max(14, value), needed), pairs)


def _head(layout: _Layout) -> Line:
    off, field, kind, value, raw = HEADS
    text = f"{off:>{layout.offset}}  {field:<{layout.name}}  {kind:<{layout.type}}  {value:<{layout.value}}  "
    return [(text + raw if layout.pairs else text, "head")]


def _row(row: DiagramRow, data: bytes, layout: _Layout, options: DiagramOptions) -> Iterator[Line]:
    span, kind = row.span, type_cell(row.span) + row.behind
    name_style, kind_style = ("error", "error") if span.type == UNDECODED else ("name", "type")
    value, style = ("", "") if span.type == ELIDED else value_cell(span)
    hidden = isinstance(span.value, Withheld)
    room = options.width - layout.offset - 2
    long = options.full and row.end - span.start > layout.pairs  # then all bytes stand beneath, over the whole width
    shown = layout.pairs and not long and span.type != ELIDED and row.end > span.start
    raws = [_raw(data, span.start, row.end, hidden, layout.pairs)] if shown else []
    values, beneath = _values(value, layout, room, options.full, free=not raws)
    if raws and len(values[0]) > layout.value:
        raws.insert(0, "")
    left: Line = [(f"{span.start:>{layout.offset}}  ", "offset")]
    name_room, kind_room = _shared(row.name, kind, layout)
    name = row.name
    if name_room + kind_room > layout.name + layout.type:
        yield [*left, (name, name_style)]
        left, name = [(" " * (layout.offset + 2), "")], ""
        name_room, kind_room = _shared("", kind, layout)
    left += [(f"{name:<{name_room}}  ", name_style), (f"{kind:<{kind_room}}  ", kind_style)]
    for number in range(max(len(values), len(raws))):
        text = values[number] if number < len(values) else ""
        raw = raws[number] if number < len(raws) else ""
        yield [*left, (f"{text:<{layout.value}}  ", style), (raw, "bytes")]
        left = [(" " * (layout.offset + 2 + layout.name + 2 + layout.type + 2), "")]
    indent = " " * (layout.offset + 2)
    yield from ([(indent, ""), (text, style)] for text in beneath)
    if long:
        for at in range(span.start, row.end, LONG):
            yield [(indent, ""), (hex_bytes(data, at, min(at + LONG, row.end), hidden), "bytes")]
    for note, note_style in row.notes:
        wrapped = textwrap.wrap(note, max(20, room - 2), break_on_hyphens=False)
        for number, part in enumerate(wrapped):
            yield [(indent + ("╰ " if number == 0 else "  ") + part, note_style)]


def _shared(name: str, kind: str, layout: _Layout) -> tuple[int, int]:
    """The room for name and type: a long one takes from the other's, and both together more only if they must."""
    both = layout.name + layout.type
    name_room = max(len(name), min(layout.name, both - len(kind)))
    return name_room, max(len(kind), both - name_room)


def _values(value: str, layout: _Layout, room: int, full: bool, free: bool) -> tuple[list[str], list[str]]:
    """A value's lines in its column, and those beneath the row, over the whole width: a value stands in its column if
    it takes two lines at most and no word is cut; over the bytes if it fits there, at once if there are none (free);
    else beneath."""
    if free and len(value) <= layout.behind:
        return [value], []
    words = max(len(word) for word in value.split(" "))
    lines = [part.strip() for part in textwrap.wrap(value, layout.value, break_on_hyphens=False)] or [""]
    if len(lines) <= 2 and words <= layout.value:
        return lines, []
    if len(value) <= layout.behind:
        return [value], []
    lines = [part.strip() for part in textwrap.wrap(value, room, break_on_hyphens=False)]
    if len(lines) > LINES and not full:
        lines = [*lines[: LINES - 1], lines[LINES - 1][: room - 1] + "…"]
    return [""], lines


def _raw(data: bytes, start: int, end: int, hidden: bool, pairs: int) -> str:
    if end - start > pairs:
        return hex_bytes(data, start, start + pairs - 1, hidden) + " …"
    return hex_bytes(data, start, end, hidden)
