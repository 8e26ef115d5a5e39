"""Writes the whole site into a folder: pages, redirects from short addresses, style, scripts, what Pyodide needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from kwire import guide
from kwire.analyze import detectors
from kwire.codec.library import Library
from kwire.render.html.frame import Facts, common_style, page
from kwire.render.html.markup import LINE, Markup, element, joined
from kwire.render.search import entries
from kwire.render.types import read_types
from kwire.schema.errorcodes import errors
from kwire.site import bundle, indexes, messages, reference
from kwire.site.index import search_index
from kwire.site.links import Links, definition_place, error_place, names_of
from kwire.site.playground import playground_body
from kwire.site.tables import lit_rules

OPTIONAL = ("</td>", "</th>", "</tr>", "</tbody>", "</thead>", "</li>")  # ends that HTML knows by itself
MOST_VERSIONS = 30  # for which the switch marks the one that is shown


class WrittenSite(NamedTuple):
    """How many pages there are, and the bytes of all files: pyodide's alone, and the others'."""

    pages: int
    size: int
    pyodide: int


class Leaf(NamedTuple):
    """A page before it is written."""

    place: str
    title: str
    body: Callable[[Links], Markup]
    facts: Callable[[Links], Facts] = lambda _: ()
    versions: int = 0


def write_site(folder: Path, library: Library, pyodide: bundle.Pyodide) -> WrittenSite:
    """Writes everything into folder, which is there or is made."""
    links = Links(names_of(library, set(indexes.every_kip(library))))
    sizes, count = 0, 0
    for leaf in _leaves(library, pyodide):
        allow = PLAYGROUND if leaf.place == "playground" else SITE
        sizes += _put(folder, leaf.place, _page(leaf, links.at(leaf.place), allow, pyodide))
        count += 1
    for place, target in _short(library):
        sizes += _put(folder, place, _redirect(links.at(place).href(target)))
    for name, content in _shared(library).items():
        (folder / name).write_bytes(content)
        sizes += len(content)
    own = bundle.own_code()
    (folder / "playground" / bundle.CODE).write_bytes(own)
    return WrittenSite(count, sizes + len(own), pyodide.copy_into(folder / "playground"))


def _put(folder: Path, place: str, text: str) -> int:
    for tag in OPTIONAL:
        text = text.replace(tag, "")
    file = folder / place / "index.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file.write_bytes(text.encode())


def _leaves(library: Library, pyodide: bundle.Pyodide) -> Iterator[Leaf]:
    """Every page."""
    yield Leaf("", "The Kafka protocol, byte by byte", indexes.home)
    lists: dict[str, Callable[[Links], Markup]] = {
        "apis": partial(indexes.apis, library),
        "names": partial(indexes.names, library),
        "errors": indexes.error_list,
        "types": indexes.types,
        "detectors": indexes.detector_list,
        "kips": partial(indexes.kips, library),
        "releases": partial(indexes.releases, library),
        "guide": indexes.guide_list,
        "playground": lambda _: playground_body(pyodide),
    }
    for place, body in lists.items():
        yield Leaf(place, indexes.SECTIONS[place][0], body)
    for definition in (*library.registry.apis(), *library.registry.data()):
        told = partial(messages.body, definition, library)
        facts, count = partial(messages.facts, definition, library), len(definition.messages[0].versions.each())
        yield Leaf(definition_place(definition), definition.name, told, facts, count)
    for error in errors:
        told = partial(reference.error_body, error, library)
        yield Leaf(error_place(error), error.name, told, partial(_constant, reference.error_facts(error)))
    for name, (title, text) in read_types().items():
        yield Leaf(f"types/{name}", name, partial(reference.type_body, title, text))
    for name in detectors.names():
        yield Leaf(f"detectors/{name}", name, partial(reference.detector_body, name))
    for name in guide.names():
        yield Leaf(f"guide/{name}", guide.page(name).title, partial(reference.guide_body, name))


def _constant(facts: Facts, _: Links) -> Facts:
    return facts


def _short(library: Library) -> Iterator[tuple[str, str]]:
    """Addresses that lead on: a version's, an error's by its code."""
    for definition in (*library.registry.apis(), *library.registry.data()):
        place = definition_place(definition)
        for version in definition.messages[0].versions.each():
            yield f"{place}/v{version}", f"{place}#v{version}"
    for error in errors:
        yield f"errors/{error.code}", error_place(error)


# ---------------------------------------------------------------- the frame


SITE = {"style-src": "'self'", "script-src": "'self'", "img-src": "'self'"}
PLAYGROUND = {
    "style-src": "'self'",
    "script-src": "'self' 'wasm-unsafe-eval'",
    "worker-src": "'self'",
    "connect-src": "'self'",
}


def _page(leaf: Leaf, links: Links, allow: dict[str, str], pyodide: bundle.Pyodide) -> str:
    scripts = ["search.js", "compare.js"] if leaf.versions > 1 else ["search.js"]
    if leaf.place == "playground":
        scripts.append("playground/playground.js")
        if pyodide.origin:
            allow = allow | {name: f"{allow[name]} {pyodide.origin}" for name in ("script-src", "connect-src")}
    head = [
        element("link", rel="stylesheet", href=f"{links.root}site.css"),
        element("link", rel="icon", href="data:,"),
        *(Markup(f'<script src="{links.root}{name}" defer></script>') for name in scripts),
    ]
    return page(
        leaf.title, leaf.body(links), facts=leaf.facts(links), navigation=_navigation(links), links=head,
        allow=allow | {"img-src": "data:"}, own=False,
    )  # fmt: skip


def _navigation(links: Links) -> Markup:
    shown = [links.to("", "kwire", class_="home")]
    shown += [
        links.to(place, indexes.SECTIONS[place][0], **({"aria_current": "page"} if place == links.place else {}))
        for place in indexes.SECTIONS
    ]
    field = element("input", type="search", id="q", autocomplete="off", spellcheck="false", aria_controls="found")
    found = element("ol", id="found", aria_live="polite", aria_label="Found", hidden=True, data_root=links.root)
    search = element("div", element("label", "Search ", field), found, class_="search tool", role="search", hidden=True)
    skip = element("a", "To the content", href="#content", class_="skip")
    return joined([skip, element("nav", *shown, aria_label="Site"), search], LINE)


def _redirect(target: str) -> str:
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Moved</title>'
        f'<meta http-equiv="refresh" content="0;url={target}"></head><body><a href="{target}">Here</a></body></html>'
    )


def _shared(library: Library) -> dict[str, bytes]:
    """The files that all pages share."""
    here = files("kwire.site")
    marks = ",\n".join(f'body:has(#v{n}:target, #v{n} :target) .switch a[href="#v{n}"]' for n in range(MOST_VERSIONS))
    style = common_style() + here.joinpath("site.css").read_text("utf-8") + lit_rules()
    style += f"{marks} {{ background: var(--mark); font-weight: 600 }}\n"
    return {
        "site.css": style.encode(),
        **{name: here.joinpath(name).read_bytes() for name in ("search.js", "compare.js")},
        "search-index.js": search_index(entries(library), library).encode(),
        "playground/playground.js": here.joinpath("playground.js").read_bytes(),
        "playground/worker.js": here.joinpath("worker.js").read_bytes(),
    }
