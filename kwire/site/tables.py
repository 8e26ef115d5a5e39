"""The diagrams as tables: a message's sections with what each field means, and an example's fields beside its bytes.

Rows and bytes of an example that belong together have the same class, k0, k1, …; the style of the site lights up all
that have the class of what is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.codec.annotate import annotate
from kwire.codec.plan import Plan
from kwire.payloads.open import open_payloads
from kwire.render.cells import type_cell, value_cell
from kwire.render.diagram import DiagramOptions, DiagramRow, Section, sections_of
from kwire.render.html.markup import Content, Markup, element, joined
from kwire.render.wire_diagram import wire_sections
from kwire.schema.model import Definition
from kwire.site.links import Links

LIT = 100  # rows of an example that light up
WHOLE = DiagramOptions(width=100)
SPACE = Markup(" ")


def table(heads: Iterable[str], rows: Iterable[Iterable[Content]], caption: str, style: str = "") -> Markup:
    """A plain table; the first cell of a row is its head."""
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    return element(
        "table",
        element("caption", caption, class_="hidden"),
        element("thead", head),
        element("tbody", joined(_plain_row(row) for row in rows)),
        class_=style or None,
    )


def _plain_row(row: Iterable[Content]) -> Markup:
    first, *others = row
    return element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in others))


def wire_table(plan: Plan, definition: Definition, marks: dict[str, str], links: Links) -> Markup:
    """A message's wire diagram. marks: ids for rows, by the field's name; those given are taken out."""
    groups = []
    for title, rows in wire_sections(plan, definition):
        body = [_section_row(title, 4)]
        for offset, name, kind, note, _ in rows:
            bare = name.strip()
            body.append(
                element(
                    "tr",
                    element("td", offset, class_="offset"),
                    element("th", bare, scope="row", class_="tag" if bare != name else None),
                    element("td", kind, class_="type"),
                    element("td", links.prose(note) if note else None),
                    id=marks.pop(bare, None),
                )
            )
        groups.append(element("tbody", joined(body)))
    return _table(f"Wire diagram of {plan.title}", ("off", "field", "type", "what it is"), groups, "wire")


def example_table(plan: Plan, raw: bytes) -> Markup:
    """An example's bytes, and its fields with values, which light each other up."""
    span = open_payloads(annotate(plan, raw), raw, plan.message.name)
    groups, places, number = [], list[tuple[int, int, int]](), 0
    for section in sections_of(span, raw, WHOLE):
        body = [_section_row(section.title, 5)]
        for row in section.rows:
            lit = section.data is raw and number < LIT and row.end > row.span.start
            if lit:
                places.append((row.span.start, row.end, number))
            body.append(_example_row(section, row, f"k{number}" if lit else None))
            number += lit
        groups.append(element("tbody", joined(body)))
    return joined(
        [
            element("pre", joined(_bytes(raw, places), SPACE), class_="hex"),
            _table(f"Decoded example of {plan.title}", ("off", "field", "type", "value", "bytes"), groups, "wire lit"),
        ]
    )


def _example_row(section: Section, row: DiagramRow, lit: str | None) -> Markup:
    bare = row.name.strip()
    value, style = value_cell(row.span)
    raw = section.data[row.span.start : row.end]
    shown = raw.hex(" ") if len(raw) <= 16 else raw[:16].hex(" ") + " …"
    notes = joined(element("span", text, class_=f"{style} beneath") for text, style in row.notes)
    return element(
        "tr",
        element("td", row.span.start, class_="offset"),
        element("th", bare, scope="row", class_="tag" if bare != row.name else None),
        element("td", type_cell(row.span) + row.behind, class_="type"),
        element("td", element("span", value, class_=style or None), notes),
        element("td", shown, class_="bytes"),
        class_=lit,
    )


def _bytes(raw: bytes, places: list[tuple[int, int, int]]) -> Iterator[Markup]:
    """The bytes in their order, those of a row together."""
    at = 0
    for start, end, number in sorted(places):
        if start > at:
            yield element("span", raw[at:start].hex(" "))
        yield element("b", raw[max(start, at) : end].hex(" "), class_=f"k{number}")
        at = max(at, end)
    if at < len(raw):
        yield element("span", raw[at:].hex(" "))


def _section_row(title: str, columns: int) -> Markup:
    return element("tr", element("th", title, colspan=columns, scope="rowgroup"), class_="part")


def _table(caption: str, heads: Iterable[str], groups: Iterable[Markup], style: str) -> Markup:
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    return element("table", element("caption", caption, class_="hidden"), element("thead", head), *groups, class_=style)


def lit_rules() -> str:
    """The style that lights up rows and bytes of the same class."""
    return "\n".join(f".ex:has(.k{n}:hover) .k{n} {{ background: var(--mark) }}" for n in range(LIT)) + "\n"
