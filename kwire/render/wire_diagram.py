"""The wire diagram of a reference page: the sections of the decoded diagram, with what each field means in the place of
values. Offsets stand where they are the same in every frame, and with "+" where they are from the start of a struct.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.codec import headers
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.render.cells import slot_type
from kwire.render.lines import Line, paragraph, plain
from kwire.schema import model
from kwire.schema.model import Definition


class _Place:
    """The offset while it is fixed; None from the first field of variable size on."""

    def __init__(self, offset: int | None, mark: str = "") -> None:
        self.offset, self.mark = offset, mark

    def take(self, size: int | None) -> str:
        text = "" if self.offset is None else f"{self.mark}{self.offset}"
        self.offset = None if self.offset is None or size is None else self.offset + size
        return text


Row = tuple[str, str, str, str, str]  # offset, name, type, note, style of the note


def wire_sections(plan: Plan, definition: Definition) -> list[tuple[str, list[Row]]]:
    """The sections of a message under their titles, with its header when it travels as a request or a response."""
    sections: list[tuple[str, list[Row]]] = []
    place = _Place(0)
    if definition.is_api and definition.key is not None:
        request = plan.message.kind == "request"
        choose = headers.request_header_version if request else headers.response_header_version
        number = choose(definition.key, plan.version, plan.message)
        header = headers.header_plan("RequestHeader" if request else "ResponseHeader", number)
        title = f"{'Request' if request else 'Response'} Header v{number}" + (" · flexible" if header.flexible else "")
        rows: list[Row] = [(place.take(4), "message_size", "int32 · 4B", "bytes behind this field", "")]
        _rows(header.root, place, rows, snake=True)
        sections.append((title, rows))
    _sections(plan.title, "", plan.root, place, sections)
    return sections


def wire_diagram(plan: Plan, definition: Definition, width: int) -> list[Line]:
    """The same as lines."""
    sections = wire_sections(plan, definition)
    rows_all = [row for _, rows in sections for row in rows]
    name = max(14, *(len(row[1]) for row in rows_all)) if rows_all else 14
    kind = max(12, *(len(row[2]) for row in rows_all)) if rows_all else 12
    name, kind = min(name, width // 3), min(kind, 26)
    words = "what it is" if width - name - kind >= 36 else ""
    lines: list[Line] = [[(f"  {'off':>4}  {'field':<{name}}  {'type':<{kind}}  {words}", "head")]]
    for title, rows in sections:
        lines.append([("  " + title, "section")])
        for row in rows:
            lines += _row(row, name, kind, width)
    return lines


def _row(row: Row, name: int, kind: int, width: int) -> Iterator[Line]:
    """A row; a name that is too long stands on a line of its own, and so does the note where it is narrow."""
    offset, field, kind_text, note, style = row
    left = 2 + 4 + 2 + name + 2 + kind + 2
    notes = [plain(line) for line in paragraph(note, max(24, width - left))]
    fits = width - left >= max([24, *map(len, notes)])
    notes = notes if fits else []
    if len(field) > name:
        yield [(f"  {offset:>4}  ", "offset"), (field, "name")]
        offset = field = ""
    yield [
        (f"  {offset:>4}  ", "offset"),
        (f"{field:<{name}}  ", "name"),
        (f"{kind_text:<{kind}}  ", "type"),
        (notes[0] if notes else "", style),
    ]
    yield from ([(" " * left, ""), (text, style)] for text in notes[1:])
    if not fits and note:
        yield from paragraph(note, width, " " * 8)


def _sections(title: str, path: str, plan: StructPlan, place: _Place, out: list[tuple[str, list[Row]]]) -> None:
    rows: list[Row] = []
    _rows(plan, place, rows)
    out.append((title, rows))
    for slot in (*plan.slots, *plan.tagged.values()):
        if slot.struct:
            inner = f"{path}.{slot.name}" if path else slot.name
            inner += "[]" if slot.array else ""
            _sections(inner, inner, slot.struct, _Place(0, "+"), out)


def _rows(plan: StructPlan, place: _Place, rows: list[Row], snake: bool = False) -> None:
    for slot in plan.slots:
        name = model.snake(slot.name) if snake else slot.name
        rows.append((place.take(slot.size), name, slot_type(slot), _note(slot), ""))
    if plan.flexible:
        rows.append((place.take(None), "tagged", "var", "" if plan.tagged else "no known tags", "dim"))
        for tag, slot in plan.tagged.items():
            rows.append(("", f"  {slot.name}", f"{slot_type(slot)} · tag {tag}", _note(slot), ""))


def _note(slot: Slot) -> str:
    field = slot.field
    note = field.note
    if field.meanings:
        values = ", ".join(f"{meaning.value} {meaning.name}" for meaning in field.meanings)
        note = f"{note} {values}." if note else f"{values}."
    for old in field.was:
        note = f"{note} Was {old.name} before {old.before}.".strip()
    if field.default not in (None, "", "0", "false", "null"):
        note = f"{note} Default {field.default}.".strip()
    return note
