"""What explain is asked for: a message or an API, an error, a number, a field, a type; else words that pages have. Each
gives a LookupPage."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kwire.analyze import detectors
from kwire.codec.library import Library
from kwire.errors import KwireError, UnknownName
from kwire.render import keylog
from kwire.render.cells import slot_type
from kwire.render.lines import Line, paragraph, table
from kwire.render.page import Page, page_of
from kwire.render.search import entries, found_lines, search
from kwire.render.types import read_types
from kwire.render.versions import accepted, diff_lines
from kwire.schema.errorcodes import ErrorCode, errors
from kwire.schema.model import Definition, Field, MessageSchema


class LookupPage(NamedTuple):
    """A page of any kind: its title, its lines for a width, and the same as plain data."""

    title: str
    lines: Callable[[int], list[Line]]
    to_json: Callable[[], Any]


def look_up(name: str, library: Library, version: int | None, every: bool, diff: tuple[int, int] | None) -> LookupPage:
    """Finds what name is, or else the pages that have its words. Raises UnknownName with the nearest names."""
    try:
        return _named(name, library, version, every, diff)
    except UnknownName as unknown:
        asked = version is not None or every or diff or not unknown.what.startswith("message,")
        found = [] if asked else search(entries(library), name)
        if not found:
            raise unknown from None
    data = [{"kind": entry.kind, "page": entry.name, "about": entry.summary} for entry in found]
    return LookupPage(name, lambda width: found_lines(found, name, width), lambda: data)


def _named(name: str, library: Library, version: int | None, every: bool, diff: tuple[int, int] | None) -> LookupPage:
    wanted = name.strip()
    if wanted.lstrip("-").isdecimal():
        return _number(int(wanted), library)
    if "." in wanted:
        return _field(wanted, library)
    try:
        page = page_of(wanted, version, library)
    except UnknownName as unknown:
        if unknown.what != "message":
            raise
        return _other(wanted, unknown, library)
    if diff:
        return _diff(page, diff, library)
    if every:
        return _every(page, library)
    return LookupPage(page.title, page.lines, page.to_json)


def _other(name: str, unknown: UnknownName, library: Library) -> LookupPage:
    error = errors.get(name)
    if error:
        return _error(error, library)
    if name.lower() in keylog.NAMES:
        return LookupPage("keylog", keylog.lines, keylog.document)
    if name.lower() in detectors.names():
        return _detector(name.lower())
    types = read_types()
    if name.lower() in types:
        return _type(name.lower(), types)
    known = {known.name.lower(): known.name for known in errors} | {word: word for word in types}
    known |= {word: word for word in detectors.names()}
    near = [known[match] for match in difflib.get_close_matches(name.lower(), known, 2, 0.7)]
    raise UnknownName("message, error, field, type or detector", name, (*unknown.nearest, *near)[:3])


def _detector(name: str) -> LookupPage:
    try:
        from kwire.render.findings import explain_json, explain_lines

        detectors.detector(name)
    except ModuleNotFoundError as error:  # a detector's page stands in its code, which works on columns
        raise KwireError(f"the page of a detector needs {error.name}, which is not installed") from error
    return LookupPage(name, lambda width: explain_lines(name, width), lambda: explain_json(name))


# ---------------------------------------------------------------- messages


def _every(page: Page, library: Library) -> LookupPage:
    message = page.plans[0].message
    name = message.name if len(page.plans) == 1 else page.definition.name
    pages = [page_of(name, version, library) for version in reversed(message.versions.each())]

    def lines(width: int) -> list[Line]:
        out: list[Line] = []
        for index, one in enumerate(pages):
            out += ([[], []] if index else []) + one.lines(width, words=index == 0)
        return out

    return LookupPage(f"{name}, every version", lines, lambda: [one.to_json() for one in pages])


def _diff(page: Page, diff: tuple[int, int], library: Library) -> LookupPage:
    old, new = sorted(diff)
    messages = [plan.message for plan in page.plans]
    pairs = [(message, library.plan(message.name, old), library.plan(message.name, new)) for message in messages]

    def lines(width: int) -> list[Line]:
        out: list[Line] = []
        for index, (message, a, b) in enumerate(pairs):
            out += ([[]] if index else []) + list(diff_lines(page.definition, message, a, b, width))
        return out

    def data() -> list[Any]:
        return [page_of(plan.message.name, v, library).to_json() for plan in page.plans for v in (old, new)]

    return LookupPage(f"{page.definition.name} v{old} and v{new}", lines, data)


# ---------------------------------------------------------------- errors and numbers


def _error(error: ErrorCode, library: Library) -> LookupPage:
    def lines(width: int) -> list[Line]:
        retry = "retriable" if error.retriable else "not retriable"
        out: list[Line] = [[(error.name, "title"), (f" · error code {error.code} · {retry}", "dim")]]
        if error.was:
            out.append([(f"was {', '.join(error.was)}", "note")])
        for word, text in (("What it means", error.means), ("What causes it", error.cause), ("What to do", error.cure)):
            out += [[], [(word, "section")], *paragraph(text, width, "  ")]
        rows = [[(f"  {d.key}", "dim"), (d.name, "name"), (note, "")] for d, note in returned_by(error, library)]
        if rows:
            out += [[], [("Who returns it", "section")], *table(["  key", "api", "there it means"], rows, width)]
        return out

    def data() -> dict[str, Any]:
        apis = [{"api_key": d.key, "api": d.name, "note": note} for d, note in returned_by(error, library)]
        return {**error._asdict(), "was": list(error.was), "apis": apis}

    return LookupPage(error.name, lines, data)


def returned_by(error: ErrorCode, library: Library) -> Iterator[tuple[Definition, str]]:
    """The APIs that name the error among theirs, and what it means there."""
    for definition in library.registry.apis():
        for related in definition.errors:
            if related.name == error.name:
                yield definition, related.note


def _number(number: int, library: Library) -> LookupPage:
    """A bare number: the error code and the API of that number, both briefly."""
    error = errors.get(number)
    known = library.registry.keys()
    definition = library.registry.api(number) if number in known else None
    if error is None and definition is None:
        raise UnknownName("error code or API key", str(number))

    def lines(width: int) -> list[Line]:
        out: list[Line] = []
        if error:
            retry = "retriable" if error.retriable else "not retriable"
            out += [[(f"error code {number}", "section"), ("  ", ""), (error.name, "title"), (f" · {retry}", "dim")]]
            out += paragraph(error.means, width, "  ")
            out += paragraph(error.cure, width, "  ")
            out.append([(f"  more: kwire explain {error.name}", "dim")])
        if definition:
            out += [[]] if out else []
            versions = (f" · versions {definition.messages[0].versions}", "dim")
            out.append([(f"api key {number}", "section"), ("  ", ""), (definition.name, "title"), versions])
            out += paragraph(definition.about.split("\n\n")[0], width, "  ")
            out += paragraph(accepted(definition), width, "  ", "dim")
            out.append([(f"  more: kwire explain {definition.name}", "dim")])
        return out

    def data() -> dict[str, Any]:
        shown: dict[str, Any] = {"number": number}
        shown["error"] = {**error._asdict(), "was": list(error.was)} if error else None
        about = {"name": definition.name, "about": definition.about} if definition else None
        return shown | {"api": about}

    return LookupPage(str(number), lines, data)


# ---------------------------------------------------------------- fields


class _Place(NamedTuple):
    """A field found: its message, dotted path and definition."""

    message: MessageSchema
    path: str
    field: Field


def _field(name: str, library: Library) -> LookupPage:
    owner, _, path = name.partition(".")
    found = library.registry.find(owner)
    wanted = path.replace("[]", "").lower()
    messages = (found.message,) if found.message else found.definition.messages
    every = [_Place(message, path, field) for message in messages for path, field in message.walk()]
    places = [place for place in every if place.path.lower() == wanted]
    places = places or [place for place in every if place.path.lower().endswith("." + wanted)]
    places += [place for place in every if wanted in (old.name.lower() for old in place.field.was)]
    if not places:
        known = {place.field.name for place in every} | {place.path for place in every}
        near = difflib.get_close_matches(path, sorted(known), 3, 0.6)
        raise UnknownName("field", name, tuple(f"{found.definition.name}.{match}" for match in near))

    def lines(width: int) -> list[Line]:
        out: list[Line] = []
        for index, place in enumerate(places):
            out += ([[]] if index else []) + list(_field_lines(place, width))
        return out

    return LookupPage(name, lines, lambda: [_field_json(place, library) for place in places])


def _field_lines(place: _Place, width: int) -> Iterator[Line]:
    message, path, field = place
    yield [(f"{message.name}.{path}", "title"), (f" · {_type_of(field)} · versions {_versions(place)}", "dim")]
    for old in field.was:
        yield [(f"  was {old.name} before {old.before}", "note")]
    if field.note:
        yield from paragraph(field.note, width, "  ")
    rows = [[(f"  {m.value}", "value"), (m.name, "name"), (m.note, "")] for m in field.meanings]
    if rows:
        yield from table(["  value", "name", "meaning"], rows, width)
    facts = []
    if field.nullable:
        facts.append(f"null allowed in versions {field.nullable.within(message.versions)}")
    if field.tag is not None:
        facts.append(f"tagged in versions {field.tagged.within(message.versions)}, tag {field.tag}")
    if field.default is not None:
        facts.append(f"default {field.default or 'empty'}")
    if field.entity:
        facts.append(f"a {field.entity}")
    if field.error:
        facts.append("an error code: kwire errors lists them all")
    if field.secret:
        facts.append("secret: withheld unless --show-secrets")
    if field.carrier:
        facts.append("carries another message: withheld unless that can be read and holds no secret")
    if facts:
        yield from paragraph("; ".join(facts) + ".", width, "  ", "dim")
    if field.is_struct:
        inner = message.fields_of(field)
        rows = [[(f"  {f.name}", "name"), (_type_of(f), "type"), (str(f.versions), "dim")] for f in inner]
        yield from table(["  field", "type", "versions"], rows, width)
    yield [(f"  whole page: kwire explain {message.name}", "dim")]


def _type_of(field: Field) -> str:
    return field.type + ("?" if field.nullable else "")


def _versions(place: _Place) -> str:
    return str(place.field.versions.within(place.message.versions))


def _field_json(place: _Place, library: Library) -> dict[str, Any]:
    message, path, field = place
    newest = field.versions.within(message.versions).high
    plan = library.plan(message.name, newest)
    slots = {slot.name: slot for slot in (*plan.root.slots, *plan.root.tagged.values())}
    shown = slot_type(slots[field.name]) if field.name in slots else _type_of(field)
    return {
        "message": message.name,
        "path": path,
        "type": shown,
        "versions": _versions(place),
        "nullable": str(field.nullable.within(message.versions)),
        "tag": field.tag,
        "default": field.default,
        "note": field.note,
        "values": {str(meaning.value): meaning.name for meaning in field.meanings},
        "was": [{"name": old.name, "before": old.before} for old in field.was],
    }


# ---------------------------------------------------------------- types


def _type(word: str, types: dict[str, tuple[str, str]]) -> LookupPage:
    title, text = types[word]

    def lines(width: int) -> list[Line]:
        return [[(word, "title"), (f" · {title}", "dim")], *paragraph(text, width, "  ")]

    return LookupPage(word, lines, lambda: {"type": word, "title": title, "text": text})
