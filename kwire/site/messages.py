"""The page of an API, or of another message: what it is, its errors, and every version, one of which is shown.

The switch between versions is a matter of style (:target): a link to a version, or to anything in it, shows that
version, and without one the newest is shown.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.codec.example import example
from kwire.codec.library import Library
from kwire.codec.plan import Plan
from kwire.codec.values import Codec
from kwire.render.html.frame import pre
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.jsonform import dumps
from kwire.render.page import Page, facts_of, page_of, schema_lines
from kwire.render.search import fields
from kwire.render.versions import brought, compared, first_release
from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition
from kwire.site.links import Links, error_place
from kwire.site.tables import example_table, table, wire_table


def facts(definition: Definition, library: Library, links: Links) -> list[tuple[str, Content]]:
    """What stands at the top of the page."""
    page = page_of(definition.name, None, library)
    key = [("api key", str(definition.key))] if definition.is_api else []
    old = [("once called", f"{name.name}, before {name.before}") for name in definition.was]
    told = [*key, ("versions", str(definition.messages[0].versions)), *old, *facts_of(page)]
    return [(word, links.prose(text)) for word, text in told]


def body(definition: Definition, library: Library, links: Links) -> Markup:
    """All that stands beneath."""
    versions = list(reversed(definition.messages[0].versions.each()))
    marks = {name: f"f-{name.lower()}" for name in fields(definition)}
    return joined(
        [
            _prose(f"What is {definition.name}?", definition.about, links),
            _prose("What people trip over", definition.trips, links),
            _errors(definition, links),
            _switch(definition, versions),
            element(
                "div",
                *(
                    _version(page_of(definition.name, version, library), library, marks, links, version == versions[0])
                    for version in versions
                ),
                class_="versions",
            ),
        ],
        LINE,
    )


def _prose(title: str, text: str, links: Links) -> Markup:
    return joined([element("h2", title), links.paragraphs(text)]) if text else Markup("")


def _errors(definition: Definition, links: Links) -> Markup:
    rows: list[list[Content]] = []
    for related in definition.errors:
        error = errors.get(related.name)
        code = str(error.code) if error else "?"
        name = links.to(error_place(error), error.name, class_="error") if error else related.name
        rows.append([code, name, links.prose(related.note)])
    if not rows:
        return Markup("")
    shown = table(("code", "error", "here"), rows, f"Errors of {definition.name}")
    return joined([element("h2", "Related errors", id="errors"), shown])


def _switch(definition: Definition, versions: Iterable[int]) -> Markup:
    rows: list[list[Content]] = []
    for version in versions:
        link = element("a", f"v{version}", href=f"#v{version}")
        rows.append([link, first_release(definition, version), brought(definition, version)])
    listed = table(("version", "Kafka", "what it brought"), rows, f"Versions of {definition.name}")
    chosen = element(
        "nav",
        *(element("a", f"v{version}", href=f"#v{version}") for version in versions),
        class_="switch", aria_label="Version shown",
    )  # fmt: skip
    other = element("div", id="compare", class_="tool")  # filled by compare.js
    return joined([element("h2", "Versions", id="versions"), listed, other, chosen], LINE)


def _version(page: Page, library: Library, marks: dict[str, str], links: Links, newest: bool) -> Markup:
    version = page.plans[0].version
    return element(
        "section",
        element("h2", page.title),
        element("p", brought(page.definition, version), class_="dim"),
        *(_message(plan, page.definition, library, marks, links, newest) for plan in page.plans),
        id=f"v{version}",
        class_="version newest" if newest else "version",
        aria_label=page.title,
    )


def _message(
    plan: Plan, definition: Definition, library: Library, marks: dict[str, str], links: Links, newest: bool
) -> Markup:
    """A message at a version: its diagram, what is different from the version before, its types, an example."""
    place = f"{plan.message.kind}-v{plan.version}" if definition.is_api else f"message-v{plan.version}"
    title = element(
        "h3",
        plan.title,
        " ",
        element("a", "#", href=f"#{place}", aria_label=f"Link to {plan.title}"),
        id=plan.message.kind if newest and definition.is_api else None,
    )
    parts = [
        title,
        wire_table(plan, definition, marks, links),
        _difference(plan, library),
        _fold("Types, as JSON", pre(schema_lines(plan))),
        _example(plan, links, newest),
    ]
    return element("section", *parts, id=place, class_="message")


def _fold(title: str, content: Markup) -> Markup:
    return element("details", element("summary", title), content)


def _difference(plan: Plan, library: Library) -> Markup:
    if plan.version - 1 not in plan.message.versions:
        return Markup("")
    old = library.plan(plan.message.name, plan.version - 1)
    rows = [(path, a, b) for path, a, b in compared(old, plan) if a != b]
    if not rows:
        return element("p", f"The same fields as v{old.version}.", class_="dim")
    shown = [
        [path, a or "not there", element("span", b or "gone", class_="error" if not b else "good" if not a else "note")]
        for path, a, b in rows
    ]
    title = f"What differs from v{old.version}"
    return _fold(
        title, table(("field", f"v{old.version}", f"v{plan.version}"), shown, f"{title} of {plan.message.name}", "diff")
    )


def _example(plan: Plan, links: Links, opened: bool) -> Markup:
    raw = Codec(plan).encode(example(plan))
    if not raw:
        return element("p", "This version has no fields, and so no bytes.", class_="dim")
    told = f"kwire encode {plan.message.name} -v {plan.version} --hex"
    tried = f"#as={plan.message.name}&v={plan.version}&hex={raw.hex()}"
    link = element("a", "in the playground", href=links.href("playground") + tried)
    content = joined(
        [
            element("p", "JSON, and its bytes as ", element("code", told), " writes them; see them ", link, "."),
            element("pre", joined(dumps(example(plan)).splitlines(), LINE), class_="json"),
            example_table(plan, raw),
        ]
    )
    return element("details", element("summary", "Example with its bytes"), content, class_="ex", open=opened)
