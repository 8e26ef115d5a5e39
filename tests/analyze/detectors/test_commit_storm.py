"""Commits after each record."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("commit-storm", "commit-storm")
    assert found.about["api"] == "OffsetCommit"
