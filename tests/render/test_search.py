"""Pages found by words: what counts as one word, the order of what is found, and that every page can be found."""

from __future__ import annotations

import pytest

from kwire.codec.library import builtin_library
from kwire.render.lines import plain
from kwire.render.search import SearchEntry, entries, found_lines, search, sentence, words

EVERY = list(entries(builtin_library()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rebalance rebalances Rebalancing REBALANCED", {"rebalanc"}),
        ("IsolationLevel", {"isolation", "level", "isolationlevel"}),
        ("MESSAGE_TOO_LARGE", {"messag", "too", "larg"}),
        ("KIP-848, v16", {"kip", "848", "v", "16", "v16"}),
        ("acks=-1", {"acks", "1"}),
        ("", set()),
    ],
)
def test_words(text: str, expected: set[str]) -> None:
    assert set(words(text)) == expected


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("rebalance", ["REBALANCE_IN_PROGRESS", "rebalance-storm"]),
        ("too large", ["MESSAGE_TOO_LARGE"]),
        ("heartbeat", ["Heartbeat"]),
        ("isolation level", ["ListOffsets", "Fetch"]),
        ("zigzag", ["varint"]),
        ("kip 932", []),
    ],
)
def test_what_comes_first(wanted: str, first: list[str]) -> None:
    found = [entry.name for entry in search(EVERY, wanted)]
    assert found
    assert sorted(found[: len(first)]) == sorted(first)


def test_all_words_must_be_there() -> None:
    assert search(EVERY, "rebalance kangaroo") == []
    assert search(EVERY, " ") == []


@pytest.mark.slow
def test_every_page_is_found_by_its_name() -> None:
    assert {entry.kind for entry in EVERY} == {"API", "message", "error", "type", "detector", "guide"}
    assert [entry.name for entry in EVERY if entry not in search(EVERY, entry.name)] == []


def test_every_page_says_what_it_is() -> None:
    assert [entry.name for entry in EVERY if len(entry.summary) < 5] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reads records. And more.", "Reads records."),
        ("max.bytes is too small: raise it", "max.bytes is too small: raise it."),
        ("One\nline.\n\nAnother.", "One line."),
    ],
)
def test_the_first_sentence(text: str, expected: str) -> None:
    assert sentence(text) == expected


def test_many_are_counted() -> None:
    shown = [
        plain(line) for line in found_lines([SearchEntry("API", f"A{n}", "What.", (), "") for n in range(50)], "a", 80)
    ]
    assert shown[0] == "pages with a"
    assert "  … 10 more" in shown
