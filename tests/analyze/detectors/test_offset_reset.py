"""Offsets that are gone, or were never committed."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("offset-reset", "offset-reset")
    assert "asked for offset 5 of offset-reset-t-0" in found.what
    assert "the log's start is 12: 7 records are gone unread" in found.what


def test_a_group_without_commits_is_a_note() -> None:
    found = assert_proven("offset-lost", "offset-reset", "note")
    assert "begins at the log's end (offset-lost-t-0 at 20)" in found.what
