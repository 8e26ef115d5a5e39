"""The pages that lead to the others: the first one, and what there is by key, name, KIP and release."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from kwire import guide
from kwire.analyze import detectors
from kwire.codec.library import Library
from kwire.render.html.markup import LINE, Content, Markup, element, joined
from kwire.render.search import sentence
from kwire.render.types import read_types
from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition
from kwire.site.links import Links, definition_place, error_place
from kwire.site.tables import table

KIP = re.compile(r"KIP-\d+")
SECTIONS = {  # place: (what it is called, what stands there)
    "apis": ("APIs", "every request and response, by key"),
    "names": ("Names", "every message by name, those of records and files too, and what they were called"),
    "errors": ("Errors", "every error code, by number"),
    "types": ("Types", "how numbers, strings, arrays and tagged fields are written"),
    "detectors": ("Detectors", "what kwire doctor looks for, and how it knows"),
    "kips": ("KIPs", "which proposal brought or changed what"),
    "releases": ("Releases", "which release of Kafka brought which APIs and versions"),
    "guide": ("Guide", "how to use kwire"),
    "playground": ("Playground", "paste bytes, see the diagram, in this page"),
}


def home(links: Links) -> Markup:
    rows = [
        element("li", links.to(place, name), " ", element("span", what, class_="dim"))
        for place, (name, what) in SECTIONS.items()
    ]
    told = "Everything that Kafka says on the wire: each message at each version, every field, error code and type."
    return joined([element("p", told, class_="lead"), element("ul", *rows, class_="bare")], LINE)


def apis(library: Library, links: Links) -> Markup:
    rows: list[list[Content]] = [
        [
            links.to(definition_place(one), one.name), one.key, str(one.messages[0].versions), one.since,
            one.area, sentence(one.about),
        ]
        for one in library.registry.apis()
    ]  # fmt: skip
    return table(("api", "key", "versions", "since", "area", "what it does"), rows, "APIs by key")


def names(library: Library, links: Links) -> Markup:
    """Every name, older ones too, in the order of the alphabet."""
    rows: list[tuple[str, Content, Content]] = []
    for definition in (*library.registry.apis(), *library.registry.data()):
        link = links.to(definition_place(definition), definition.name)
        rows.append((definition.name, link, sentence(definition.about)))
        for old in (*(was.name for was in definition.was), *definition.aka):
            rows.append((old, old, joined(["now ", link])))
    rows.sort(key=lambda row: row[0].lower())
    return table(("name", "what it is"), [row[1:] for row in rows], "Messages by name")


def error_list(links: Links) -> Markup:
    rows: list[list[Content]] = [
        [
            links.to(error_place(error), error.name), error.code, "yes" if error.retriable else "no",
            links.prose(error.short),
        ]
        for error in errors
    ]  # fmt: skip
    return table(("error", "code", "retriable", "in short"), rows, "Errors by code")


def types(links: Links) -> Markup:
    rows = [[links.to(f"types/{name}", name), title] for name, (title, _) in read_types().items()]
    headers = [
        [links.to(place, name), what]
        for name, place, what in (
            ("RequestHeader", "request-header", "what stands in front of every request"),
            ("ResponseHeader", "response-header", "what stands in front of every response"),
        )
    ]
    return joined(
        [
            element("h2", "Types"), table(("type", "how it is written"), rows, "Types"),
            element("h2", "Headers"), table(("header", "where"), headers, "Headers"),
        ]
    )  # fmt: skip


def detector_list(links: Links) -> Markup:
    rows = [
        [links.to(f"detectors/{name}", name), links.prose(detectors.detector(name).looks_for)]
        for name in detectors.names()
    ]
    return table(("detector", "what it looks for"), rows, "Detectors")


def guide_list(links: Links) -> Markup:
    pages = [guide.page(name) for name in guide.names()]
    rows = [[links.to(f"guide/{page.name}", page.title), f"{page.summary}."] for page in pages]
    return table(("page", "what it is for"), rows, "Pages of the guide")


def kips_of(definition: Definition) -> dict[str, list[int]]:
    """The KIPs of an API or message, and the versions whose changes name them."""
    found: dict[str, list[int]] = {kip: [] for kip in KIP.findall(definition.kips)}
    for version, text in definition.changes:
        for kip in KIP.findall(text):
            found.setdefault(kip, []).append(version)
    for kip in KIP.findall(f"{definition.about} {definition.trips}"):
        found.setdefault(kip, [])
    return found


def every_kip(library: Library) -> dict[str, list[tuple[Definition, list[int]]]]:
    """Every KIP with what it brought or changed, by number."""
    found: dict[str, list[tuple[Definition, list[int]]]] = defaultdict(list)
    for definition in (*library.registry.apis(), *library.registry.data()):
        for kip, versions in kips_of(definition).items():
            found[kip].append((definition, versions))
    return dict(sorted(found.items(), key=lambda one: int(one[0][4:])))


def kips(library: Library, links: Links) -> Markup:
    parts = []
    for kip, brought in every_kip(library).items():
        links_to = [_with_versions(definition, versions, links) for definition, versions in brought]
        parts.append(element("section", element("h2", kip), _list(links_to), id=kip.lower()))
    return joined(parts, LINE)


def _with_versions(definition: Definition, versions: Iterable[int], links: Links) -> Markup:
    place = definition_place(definition)
    marked = [links.to(f"{place}#v{version}", f"v{version}") for version in sorted(set(versions))]
    return joined([links.to(place, definition.name), *marked], Markup(" "))


def _list(items: Iterable[Markup]) -> Markup:
    return element("ul", *(element("li", item) for item in items))


def releases(library: Library, links: Links) -> Markup:
    """What each release brought, the newest first."""
    brought: dict[tuple[int, int], list[Markup]] = {release: [] for release in library.registry.releases()}
    gone: dict[tuple[int, int], list[Markup]] = {release: [] for release in brought}
    for definition in library.registry.apis():
        known = -1
        last: Iterable[int] = ()
        for release in definition.releases:
            order = release.order[0], release.order[1]
            new = [version for version in release.versions.each() if version > known]
            if new and order in brought:
                brought[order].append(_with_versions(definition, new, links))
            lost = [version for version in last if version not in release.versions]
            if lost and order in gone:
                gone[order].append(_with_versions(definition, lost, links))
            known = max([known, *new])
            last = release.versions.each()
    parts = []
    for order in reversed(brought):
        inside = [element("h2", f"Kafka {order[0]}.{order[1]}")]
        inside += [element("h3", "New"), _list(brought[order])] if brought[order] else []
        inside += [element("h3", "No longer taken"), _list(gone[order])] if gone[order] else []
        if len(inside) == 1:
            inside.append(element("p", "No new versions that kwire knows of.", class_="dim"))
        parts.append(element("section", *inside, id=f"kafka-{order[0]}-{order[1]}"))
    return joined(parts, LINE)
