"""Finds pages of the reference and the guide by words: what each page is about as sets of words, and their ranking.

The site's script ranks in the same way, over the same entries; see site/search.js.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kwire import guide
from kwire.codec.library import Library
from kwire.render.lines import Line, Piece, table
from kwire.render.types import read_types
from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition

ENDINGS = re.compile(r"(ing|ed|es|s|e)$")  # "rebalancing", "rebalances" and "rebalance" are one word
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TITLE, NAME, TEXT = 20, 5, 1  # what a word is worth by where it stands
MOST = 40  # lines of an answer


class SearchEntry(NamedTuple):
    """A page: kind (API, message, error, type, detector, guide), its name and summary; names: fields, codes and what
    else has a name there; text: its prose."""

    kind: str
    name: str
    summary: str
    names: tuple[str, ...]
    text: str

    def words(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        """The words of its title, of its names, and of its text, as they are compared."""
        title = frozenset(words(self.name))
        names = frozenset(word for name in self.names for word in words(name)) - title
        return title, names, frozenset(words(f"{self.summary} {self.text}")) - title - names


def words(text: str) -> Iterator[str]:
    """The words of a text as they are compared: parts of names too, in small letters, without common endings."""
    for run in re.findall(r"\w+", text.replace("_", " ")):
        parts = WORD.findall(run)
        yield from map(_stem, parts)
        if len(parts) > 1:
            yield _stem(run)


def _stem(word: str) -> str:
    small = word.lower()
    return ENDINGS.sub("", small) if len(small) > 4 else small


def search(entries: Iterable[SearchEntry], wanted: str) -> list[SearchEntry]:
    """The entries that have all the words, the best first."""
    sought = set(words(wanted))
    ranked: list[tuple[float, int, SearchEntry]] = []
    for entry in entries:
        places = entry.words()
        worth = [_worth(word, places) for word in sought]
        if sought and all(worth):
            ranked.append((-sum(worth) / len(worth), len(ranked), entry))
    return [entry for *_, entry in sorted(ranked, key=lambda one: one[:2])]


def _worth(word: str, places: tuple[frozenset[str], ...]) -> int:
    return next((worth for worth, place in zip((TITLE, NAME, TEXT), places, strict=True) if word in place), 0)


def found_lines(entries: list[SearchEntry], wanted: str, width: int) -> list[Line]:
    """What was found, a line each."""
    rows: list[list[Piece]] = []
    for entry in entries[:MOST]:
        rows.append([(f"  {entry.kind}", "dim"), (entry.name, "name"), (entry.summary, "")])
    lines: list[Line] = [[(f"pages with {wanted}", "title")], *table(["  kind", "page", "what it is"], rows, width)]
    if len(entries) > MOST:
        lines.append([(f"  … {len(entries) - MOST} more", "dim")])
    how = "kwire explain PAGE"
    if any(entry.kind == "guide" for entry in entries[:MOST]):
        how += ", kwire help PAGE for the guide's"
    return [*lines, [], [(f"  more: {how}", "dim")]]


# ---------------------------------------------------------------- what there is


def entries(library: Library) -> Iterator[SearchEntry]:
    """Every page: APIs by key, errors by code, the other messages, types, detectors, the guide."""
    yield from (_definition("API", definition) for definition in library.registry.apis())
    for error in errors:
        prose = f"{error.means} {error.cause} {error.cure}"
        yield SearchEntry("error", error.name, sentence(error.short), (str(error.code), *error.was), prose)
    yield from (_definition("message", definition) for definition in library.registry.data())
    for name, (title, text) in read_types().items():
        yield SearchEntry("type", name, sentence(title), (), text)
    yield from _detectors()
    for page in map(guide.page, guide.names()):
        heads = re.findall(r"^##+ (.*)$", page.text, re.MULTILINE)
        yield SearchEntry("guide", page.name, page.title, (page.title, *heads), page.text)


def _definition(kind: str, definition: Definition) -> SearchEntry:
    names = [message.name for message in definition.messages]
    names += [old.name for old in definition.was] + list(definition.aka)
    names += fields(definition)
    names += re.findall(r"KIP-\d+", definition.kips)
    names += [error.name for error in definition.errors] + ([str(definition.key)] if definition.is_api else [])
    changes = " ".join(text for _, text in definition.changes)
    notes = " ".join(field.note for message in definition.messages for _, field in message.walk())
    prose = f"{definition.area} {definition.about} {definition.trips} {changes} {notes}"
    return SearchEntry(kind, definition.name, sentence(definition.about), tuple(dict.fromkeys(names)), prose)


def fields(definition: Definition) -> list[str]:
    """The names of its fields and of their values, once each."""
    every = [field for message in definition.messages for _, field in message.walk()]
    names = [name for field in every for name in (field.name, *(meaning.name for meaning in field.meanings))]
    return list(dict.fromkeys(names))


def _detectors() -> Iterator[SearchEntry]:
    from kwire.analyze import detectors

    try:
        found = [(name, detectors.detector(name)) for name in detectors.names()]
    except ModuleNotFoundError:  # numpy, without which there are none
        return
    for name, one in found:
        yield SearchEntry(
            "detector", name, sentence(one.looks_for), (one.fields,), f"{one.means} {one.proof} {one.advice}"
        )


def sentence(text: str) -> str:
    """The first sentence, with its end."""
    first = " ".join(text.partition("\n\n")[0].split())
    end = re.search(r"[.:] (?=[A-Z])", first)
    first = first[: end.start()] if end else first.rstrip(".:")
    begins = first[:1].upper() if first.partition(" ")[0].isalpha() else first[:1]
    return f"{begins}{first[1:]}."
