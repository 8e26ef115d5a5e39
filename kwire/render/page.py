"""The reference page of a message or an API: words, related errors, wire diagram, schema, example with its bytes.

The wire diagram has the sections of the decoded diagram, so that a reader goes from one to the other; instead of values
and bytes it shows what each field means. Offsets stand where they are the same in every frame, and with "+" where they
are the same from the start of a struct.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kwire.codec import headers
from kwire.codec.annotate import annotate
from kwire.codec.example import example
from kwire.codec.library import Library, builtin_library
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.values import Codec
from kwire.render.cells import slot_type
from kwire.render.diagram import Options, diagram
from kwire.render.jsonform import dumps
from kwire.render.lines import Line, Piece, joined, paragraph, plain, table
from kwire.schema import model
from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition, Message, Release, Versions

FOUR = (4, 0)


class Page(NamedTuple):
    """What kwire.explain gives. plans: the messages shown, each at its version; newest tells that no version was named.

    str(page) is its text, 100 columns wide; lines() gives it for any width, to_json() the same as plain data.
    """

    definition: Definition
    plans: tuple[Plan, ...]
    was: str | None
    newest: bool

    @property
    def title(self) -> str:
        """FetchResponse v16, or Fetch v16 for both messages of an API."""
        if len(self.plans) == 1:
            return self.plans[0].title
        return f"{self.definition.name} v{self.plans[0].version}"

    def __str__(self) -> str:
        return "\n".join(plain(line) for line in self.lines())

    def lines(self, width: int = 100, words: bool = True) -> list[Line]:
        """The page as lines, or without what is true of every version."""
        return list(_page(self, width, words))

    def to_json(self) -> dict[str, Any]:
        """The page as plain data."""
        return _json(self)


def page_of(name: str, version: int | None = None, library: Library | None = None) -> Page:
    """The page of a message ("FetchResponse") or of an API's two ("Fetch"), by old names too. Raises UnknownName."""
    library = library or builtin_library()
    found = library.registry.find(name)
    messages = (found.message,) if found.message else found.definition.messages
    shown = version if version is not None else messages[0].versions.high
    return Page(found.definition, tuple(library.plan(m.name, shown) for m in messages), found.was, version is None)


# ---------------------------------------------------------------- parts


def _page(page: Page, width: int, words: bool) -> Iterator[Line]:
    definition = page.definition
    if words:
        yield from _title(page, width)
        yield from _words(definition, width)
    else:
        yield [(page.title, "title")]
    yield from _heading("Wire diagram")
    for plan in page.plans:
        yield from wire_diagram(plan, definition, width)
        if plan is not page.plans[-1]:
            yield []
    for plan in page.plans:
        yield from _heading("Schema" if len(page.plans) == 1 else f"Schema of {plan.title}")
        yield from schema_lines(plan)
    for plan in page.plans:
        yield from _heading("Example" if len(page.plans) == 1 else f"Example of {plan.title}")
        yield from example_lines(plan, width)
    if page.newest:
        yield from _heading("Versions")
        yield from versions_table(definition, width)


def _words(definition: Definition, width: int) -> Iterator[Line]:
    if definition.about:
        yield from _heading(f"What is {definition.name}?")
        yield from paragraph(definition.about, width, "  ")
    if definition.trips:
        yield from _heading("What people trip over")
        yield from paragraph(definition.trips, width, "  ")
    if definition.errors:
        yield from _heading("Related errors")
        yield from _errors(definition, width)


def _heading(text: str) -> Iterator[Line]:
    yield []
    yield [(text, "section")]


def _title(page: Page, width: int) -> Iterator[Line]:
    definition, plan = page.definition, page.plans[0]
    key = [(f"api key {definition.key}", "dim")] if definition.is_api else []
    yield from joined([(page.title, "title"), *key, (f"versions {plan.message.versions}", "dim")], width)
    if page.was:
        yield [(f"once called {page.was}", "note")]
    for old in definition.was:
        yield [(f"was {old.name} before {old.before}", "note")]
    facts = [
        ("area", definition.area),
        ("sent", definition.sender),
        ("since", f"Kafka {definition.since}" if definition.since else ""),
        ("KIPs", definition.kips if definition.kips != "none" else ""),
        ("flexible", f"from v{plan.message.flexible.low}" if plan.message.flexible else "no version"),
        ("brokers", accepted(definition)),
        ("answers", _listeners(definition)),
        ("type", _record_type(definition)),
        *(("differs", text) for text in definition.differs),
    ]
    for word, text in facts:
        if text:
            yield from paragraph(text, width, f"  {word:<9} ", hang=" " * 12)


def _listeners(definition: Definition) -> str:
    names = {"broker": "brokers", "controller": "controllers", "zkBroker": "brokers with ZooKeeper"}
    return " and ".join(names.get(word, word) for word in definition.listeners.split())


def _record_type(definition: Definition) -> str:
    if definition.is_api or definition.key is None:
        return ""
    return f"record type {definition.key}, which stands in front of the key" if "Key" in definition.name else (
        f"record type {definition.key}"
    )


def accepted(definition: Definition) -> str:
    """Which versions a 4.x broker takes, from the releases that kwire knows."""
    if not definition.is_api or not definition.releases:
        return ""
    before = [release for release in definition.releases if release.order < FOUR]
    since = [release for release in definition.releases if release.order >= FOUR]
    if before and not any(release.order == FOUR for release in since):
        since.insert(0, before[-1]._replace(release="4.0"))
    texts = []
    for release in since:
        newest = release.versions.high
        unstable = f" (v{newest} not yet stable)" if release.highest_stable < newest else ""
        texts.append(f"{release.release}: {f'v{release.versions}{unstable}' if release.versions else 'none, removed'}")
    return "Kafka " + ", ".join([*texts[:-1], texts[-1].replace(":", " and later:")])


def first_release(definition: Definition, version: int) -> str:
    """The first release that kwire knows to speak a version; "-2.2" for older than its facts reach."""
    for release in definition.releases:
        if version in release.versions:
            oldest = release is definition.releases[0] and release.order <= (2, 2)
            return f"≤{release.release}" if oldest else release.release
    return ""


def _errors(definition: Definition, width: int) -> Iterator[Line]:
    rows: list[list[Piece]] = []
    for related in definition.errors:
        error = errors.get(related.name)
        code = str(error.code) if error else "?"
        rows.append([(f"  {code:>4}", "dim"), (related.name, "error"), (related.note, "")])
    yield from table(["  code", "error", "here"], rows, width)[1:]


# ---------------------------------------------------------------- wire diagram


class _Place:
    """The offset while it is fixed; None from the first field of variable size on."""

    def __init__(self, offset: int | None, mark: str = "") -> None:
        self.offset, self.mark = offset, mark

    def take(self, size: int | None) -> str:
        text = "" if self.offset is None else f"{self.mark}{self.offset}"
        self.offset = None if self.offset is None or size is None else self.offset + size
        return text


Row = tuple[str, str, str, str, str]  # offset, name, type, note, style of the note


def wire_diagram(plan: Plan, definition: Definition, width: int) -> list[Line]:
    """The sections of a message, with its header when it travels as a request or a response."""
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


# ---------------------------------------------------------------- schema and example


def schema_lines(plan: Plan) -> list[Line]:
    """The message's types in the form of its JSON."""
    lines: list[Line] = [[("  {", "")]]
    _schema(plan.root, 2, lines)
    lines.append([("  }", "")])
    return lines


def _schema(plan: StructPlan, depth: int, lines: list[Line]) -> None:
    pad = "  " * depth
    for slot in (*plan.slots, *plan.tagged.values()):
        mark = "?" if slot.nullable else ""
        behind = f"  (tag {slot.tag})" if slot.tag is not None else ""
        head: Line = [(f'{pad}"{slot.name}"', "name"), (": ", "")]
        if slot.struct is None:
            text = f"[{slot.type}]{mark}" if slot.array else f"{slot.type}{mark}"
            lines.append([*head, (text, "type"), (behind, "dim")])
            continue
        lines.append([*head, ("[{" if slot.array else "{", "")])
        _schema(slot.struct, depth + 1, lines)
        lines.append([(f"{pad}{'}]' if slot.array else '}'}{mark}", ""), (behind, "dim")])


def example_lines(plan: Plan, width: int) -> Iterator[Line]:
    """The example as JSON, then the very bytes that kwire encode makes of it."""
    message = example(plan)
    for text in dumps(message).splitlines():
        yield [("  " + text, "")]
    yield []
    raw = Codec(plan).encode(message)
    yield [(f"  kwire encode {plan.message.name} -v {plan.version} --hex", "dim")]
    size = 24 if width >= 74 else 16
    for at in range(0, len(raw), size):
        yield [("  " + raw[at : at + size].hex(" "), "bytes")]
    if not raw:
        yield [("  (no bytes: this version has no fields)", "dim")]
        return
    yield []
    for line in diagram(annotate(plan, raw), raw, Options(width=width - 2)):
        yield [("  ", ""), *line]


# ---------------------------------------------------------------- versions


def versions_table(definition: Definition, width: int) -> Iterator[Line]:
    """What each version brought, and which release first spoke it."""
    words = dict(definition.changes)
    rows: list[list[Piece]] = []
    for version in definition.messages[0].versions.each():
        text = words.get(version) or "; ".join(changes(definition, version)) or "Same fields."
        rows.append([(f"  v{version}", "name"), (first_release(definition, version), "dim"), (text, "")])
    yield from table(["  version", "Kafka", "what it brought"], rows, width)


def changes(definition: Definition, version: int) -> Iterator[str]:
    """The fields that come and go with a version, by comparison with the one before."""
    for message in definition.messages:
        if version - 1 not in message.versions:
            continue
        fields = [(path, field) for path, field in message.walk()]
        come = [path for path, field in fields if field.versions.low == version]
        gone = [path for path, field in fields if field.versions.high == version - 1]
        if come:
            yield f"{message.kind} adds {', '.join(come)}"
        if gone:
            yield f"{message.kind} drops {', '.join(gone)}"
        if message.flexible.low == version:
            yield f"{message.kind} is flexible"


def diff_lines(definition: Definition, message: Message, old: Plan, new: Plan, width: int) -> Iterator[Line]:
    """Two versions of a message side by side, structs indented; what differs is marked."""
    left, right = _outline(old.root, ""), _outline(new.root, "")
    paths = list(dict.fromkeys([*left, *right]))
    order = {path: index for index, path in enumerate(right)}
    paths.sort(key=lambda path: (order.get(path, _before(path, left, order)), path not in left))
    yield [(f"{message.name} v{old.version} and v{new.version}", "title")]
    rows = [(path, left.get(path, ""), right.get(path, "")) for path in paths]
    names = ["  " * path.count(".") + path.rpartition(".")[2] for path in paths]
    wide = max(map(len, ["field", *names]))
    kind = max([8, *(len(a) for _, a, _ in rows)])
    yield [(f"    {'field':<{wide}}  {f'v{old.version}':<{kind}}  v{new.version}", "head")]
    for name, (_, a, b) in zip(names, rows, strict=True):
        mark, style = ("+", "good") if not a else ("-", "error") if not b else ("~", "note") if a != b else (" ", "")
        yield [(f"  {mark} {name:<{wide}}  {a:<{kind}}  {b}", style)]
    words = dict(definition.changes)
    span = Versions(min(old.version, new.version) + 1, max(old.version, new.version))
    for version in span.each():
        if words.get(version):
            yield from paragraph(words[version], width, f"  v{version:<3} ", hang=" " * 7)


def _outline(plan: StructPlan, path: str) -> dict[str, str]:
    """Every field's path and type."""
    out: dict[str, str] = {}
    for slot in (*plan.slots, *plan.tagged.values()):
        tag = f" · tag {slot.tag}" if slot.tag is not None else ""
        out[path + slot.name] = slot.label + tag
        if slot.struct:
            out |= _outline(slot.struct, f"{path}{slot.name}.")
    return out


def _before(path: str, left: dict[str, str], order: dict[str, int]) -> int:
    """Where a field that is gone stood: behind its last sibling that is still there."""
    place = -1
    for known in left:
        if known == path:
            break
        place = order.get(known, place)
    return place


# ---------------------------------------------------------------- JSON


def _json(page: Page) -> dict[str, Any]:
    definition = page.definition
    known = [error for error in definition.errors if error.name in errors]
    related = [{"code": errors[error.name].code, "name": error.name, "note": error.note} for error in known]
    return {
        "name": definition.name,
        "api_key": definition.key if definition.is_api else None,
        "area": definition.area,
        "since": definition.since,
        "kips": definition.kips,
        "sender": definition.sender,
        "listeners": definition.listeners.split(),
        "was": [{"name": old.name, "before": old.before} for old in definition.was],
        "releases": [_release(release) for release in definition.releases],
        "about": definition.about,
        "trips": definition.trips,
        "errors": related,
        "versions": [{"version": version, "note": note} for version, note in definition.changes],
        "messages": [
            {
                "name": plan.message.name,
                "version": plan.version,
                "versions": str(plan.message.versions),
                "flexible": plan.flexible,
                "fields": _fields(plan.root),
                "example": example(plan),
            }
            for plan in page.plans
        ],
    }


def _release(release: Release) -> dict[str, Any]:
    return {"release": release.release, "versions": str(release.versions), "highest_stable": release.highest_stable}


def _fields(plan: StructPlan) -> list[dict[str, Any]]:
    out = []
    for slot in (*plan.slots, *plan.tagged.values()):
        field: dict[str, Any] = {"name": slot.name, "type": slot.label, "versions": str(slot.field.versions)}
        field |= {"size": slot.size, "tag": slot.tag, "note": slot.field.note}
        if slot.field.meanings:
            field["values"] = {str(meaning.value): meaning.name for meaning in slot.field.meanings}
        if slot.struct:
            field["fields"] = _fields(slot.struct)
        out.append(field)
    return out
