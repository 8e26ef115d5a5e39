"""Where each thing of the reference stands in the site, and names in prose as links to it.

A place is "fetch", a folder with index.html in it, or "fetch#response", a part of that page. Links name index.html,
so that they work from a disk too.
"""

from __future__ import annotations

import re
from functools import cache

from kwire.codec.library import Library
from kwire.render.html.markup import Content, Markup, element, joined
from kwire.schema.errorcodes import ErrorCode, errors
from kwire.schema.model import Definition

NAME = re.compile(r"\b(?:KIP-\d+|[A-Z][A-Z_]{4,}[A-Z]|[A-Z][a-z]+(?:[A-Z][a-z0-9]*)*)\b")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@cache
def slug(name: str) -> str:
    """A name as a folder: consumer-group-heartbeat, rebalance-in-progress."""
    return "-".join(part.lower() for word in name.replace("_", " ").split() for part in PARTS.findall(word))


def definition_place(definition: Definition) -> str:
    return slug(definition.name)


def error_place(error: ErrorCode) -> str:
    return f"errors/{slug(error.name)}"


class Links:
    """Links from the page at a place. names: what names in prose lead to."""

    def __init__(self, names: dict[str, str], place: str = "") -> None:
        self._names, self.place = names, place
        self.root = "../" * len([part for part in place.split("/") if part])

    def at(self, place: str) -> Links:
        """The same as seen from another page."""
        return Links(self._names, place)

    def href(self, place: str) -> str:
        """The address of a place, relative to this one."""
        folder, mark, part = place.partition("#")
        if folder == self.place and mark:
            return mark + part
        return f"{self.root}{folder}{'/' if folder else ''}index.html{mark}{part}"

    def to(self, place: str, text: Content, **attributes: str) -> Markup:
        """A link."""
        return element("a", text, href=self.href(place), **attributes)

    def name(self, name: str) -> Markup:
        """A name, as a link where it has a page."""
        place = self._names.get(name)
        return self.to(place, name) if place is not None else element("span", name)

    def prose(self, text: str) -> Markup:
        """Text with what it names as links, each where it is named first, and none to the page itself."""
        parts: list[Content] = []
        at, seen = 0, {self.place}
        for match in NAME.finditer(text):
            place = self._names.get(match[0])
            if place is None or place in seen:
                continue
            seen.add(place)
            parts += [text[at : match.start()], self.to(place, match[0])]
            at = match.end()
        return joined([*parts, text[at:]])

    def paragraphs(self, text: str) -> Markup:
        """Prose with a blank line between its paragraphs."""
        return joined(element("p", self.prose(" ".join(part.split()))) for part in text.split("\n\n") if part.strip())


def names_of(library: Library, kips: set[str]) -> dict[str, str]:
    """Every name that prose may hold, with its place."""
    names: dict[str, str] = {}
    for definition in (*library.registry.apis(), *library.registry.data()):
        place = definition_place(definition)
        names[definition.name] = place
        if definition.is_api:
            names |= {message.name: f"{place}#{message.kind}" for message in definition.messages}
    names |= {error.name: error_place(error) for error in errors}
    return names | {kip: f"kips#{kip.lower()}" for kip in kips}
