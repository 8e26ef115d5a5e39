"""The reference page of a message or an API: words, related errors, wire diagram, schema, example with its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kwire.codec.annotate import annotate
from kwire.codec.example import example
from kwire.codec.library import Library, builtin_library
from kwire.codec.plan import Plan, StructPlan
from kwire.codec.values import Codec
from kwire.payloads.open import open_payloads
from kwire.render.diagram import DiagramOptions, diagram
from kwire.render.jsonform import dumps
from kwire.render.lines import Line, Piece, joined, paragraph, plain, table
from kwire.render.versions import accepted, versions_table
from kwire.render.wire_diagram import wire_diagram
from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition, Release


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
    for word, text in facts_of(page):
        yield from paragraph(text, width, f"  {word:<9} ", hang=" " * 12)


def facts_of(page: Page) -> list[tuple[str, str]]:
    """What is known of an API or a message, in a word and a text each."""
    definition, plan = page.definition, page.plans[0]
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
    return [(word, text) for word, text in facts if text]


def _listeners(definition: Definition) -> str:
    names = {"broker": "brokers", "controller": "controllers", "zkBroker": "brokers with ZooKeeper"}
    return " and ".join(names.get(word, word) for word in definition.listeners.split())


def _record_type(definition: Definition) -> str:
    if definition.is_api or definition.key is None:
        return ""
    return (
        f"record type {definition.key}, which stands in front of the key"
        if "Key" in definition.name
        else (f"record type {definition.key}")
    )


def _errors(definition: Definition, width: int) -> Iterator[Line]:
    rows: list[list[Piece]] = []
    for related in definition.errors:
        error = errors.get(related.name)
        code = str(error.code) if error else "?"
        rows.append([(f"  {code:>4}", "dim"), (related.name, "error"), (related.note, "")])
    yield from table(["  code", "error", "here"], rows, width)[1:]


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
    for line in diagram(
        open_payloads(annotate(plan, raw), raw, plan.message.name), raw, DiagramOptions(width=width - 2)
    ):
        yield [("  ", ""), *line]


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
