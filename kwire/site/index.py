"""The index that the pages search in: a script with a row for each page, small enough to be loaded at the first search.

A row is [kind, name, place, summary, words of the title, words of names, words of the text, {field: …}]: the words as
render/search.py compares them. The script in search.js ranks as search() there does, and takes beginnings of words too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from kwire.codec.library import Library
from kwire.render.search import SearchEntry, fields
from kwire.schema.errorcodes import errors
from kwire.site.links import definition_place, error_place


def search_index(entries: Iterable[SearchEntry], library: Library) -> str:
    """The script."""
    definitions = {one.name: one for one in (*library.registry.apis(), *library.registry.data())}
    rows = []
    for entry in entries:
        definition = definitions.get(entry.name) if entry.kind in ("API", "message") else None
        named = fields(definition) if definition else []
        title, names, text = (" ".join(sorted(words)) for words in entry.words())
        place = place_of(entry, library)
        rows.append([entry.kind, entry.name, place, entry.summary, title, names, text, " ".join(named)])
    return f"kwireFound({json.dumps(rows, ensure_ascii=False, separators=(',', ':'))});\n"


def place_of(entry: SearchEntry, library: Library) -> str:
    """Where an entry's page stands."""
    if entry.kind == "error":
        return error_place(errors[entry.name])
    if entry.kind in ("API", "message"):
        return definition_place(library.registry.find(entry.name).definition)
    return f"{entry.kind}{'' if entry.kind == 'guide' else 's'}/{entry.name}"
