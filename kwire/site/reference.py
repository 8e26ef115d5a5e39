"""The pages of errors, types, detectors and the guide."""

from __future__ import annotations

import re

from kwire import guide
from kwire.analyze.detectors import detector
from kwire.codec.library import Library
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.lookup import returned_by
from kwire.schema.errorcodes import ErrorCode
from kwire.site.links import Links, definition_place
from kwire.site.tables import table


def error_facts(error: ErrorCode) -> list[tuple[str, Content]]:
    told: list[tuple[str, Content]] = [
        ("error code", str(error.code)),
        ("retriable", "yes" if error.retriable else "no"),
    ]
    return told + ([("was", ", ".join(error.was))] if error.was else [])


def error_body(error: ErrorCode, library: Library, links: Links) -> Markup:
    """What it means, what to do, and the APIs that return it."""
    parts = [element("p", links.prose(error.short), class_="lead")]
    for title, text in (("What it means", error.means), ("What causes it", error.cause), ("What to do", error.cure)):
        parts += [element("h2", title), links.paragraphs(text)]
    rows: list[list[Content]] = [
        [links.to(definition_place(definition), definition.name), definition.key, links.prose(note)]
        for definition, note in returned_by(error, library)
    ]
    if rows:
        parts += [element("h2", "Who returns it", id="apis"), table(("api", "key", "there it means"), rows, error.name)]
    return joined(parts, LINE)


def type_body(title: str, text: str, links: Links) -> Markup:
    return joined([element("p", title, class_="lead"), links.paragraphs(text)], LINE)


def detector_body(name: str, links: Links) -> Markup:
    """What a detector sees, why, and by which rule."""
    found = detector(name)
    limits = [f"{key} {value:g} (--set {name}.{key}=…)" for key, value in found.thresholds.items()]
    parts = [element("p", links.prose(found.looks_for), class_="lead")]
    for title, text in (
        ("What it means", found.means), ("What proves it", found.proof), ("What to do", found.advice),
        ("Fields", found.fields), ("Thresholds", ", ".join(limits) or "none"), ("Rule", found.source),
    ):  # fmt: skip
        parts += [element("h2", title), links.paragraphs(text)]
    return joined(parts, LINE)


def guide_body(name: str, links: Links) -> Markup:
    """A page of the guide, without its heading, which is the page's. Markdown's own HTML stays text."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = guide.page(name).text.partition("\n")[2]
    made = reader.render(text)
    made = re.sub(r"<h([23])>(.*?)</h\1>", _heading, made)
    pages = "|".join(map(re.escape, guide.names()))

    def told(match: re.Match[str]) -> str:
        return f'<a href="{links.href(f"guide/{match[1]}")}">{match[0]}</a>'

    made = re.sub(rf"<code>kwire help ({pages})</code>", told, made)
    return Markup(made.replace("<pre>", '<pre tabindex="0">'))


def _heading(match: re.Match[str]) -> str:
    place = re.sub(r"[^a-z0-9]+", "-", re.sub(r"<[^>]+>|&\w+;", "", match[2]).lower()).strip("-")
    return f'<h{match[1]} id="{place}">{match[2]}</h{match[1]}>'
