"""The search's index: a row for each page, with the words that kwire explain compares."""

from __future__ import annotations

import json

from kwire.codec.library import builtin_library
from kwire.render.search import entries
from kwire.site.index import search_index


def test_the_index_has_every_page_with_its_words() -> None:
    library = builtin_library()
    found = list(entries(library))
    text = search_index(found, library)
    rows = json.loads(text.removeprefix("kwireFound(").removesuffix(");\n"))
    assert [row[1] for row in rows] == [entry.name for entry in found]
    by_name = {row[1]: row for row in rows}
    assert by_name["Fetch"][2] == "fetch"
    assert "IsolationLevel" in by_name["Fetch"][7].split()
    assert by_name["REBALANCE_IN_PROGRESS"][2] == "errors/rebalance-in-progress"
    assert "rebalanc" in by_name["REBALANCE_IN_PROGRESS"][4].split()
    assert {row[2].partition("/")[0] for row in rows} > {"errors", "types", "detectors", "guide"}
