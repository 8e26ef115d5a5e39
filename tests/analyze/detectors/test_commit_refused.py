"""Commits that the coordinator does not take."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("commit-refused", "commit-refused")
    assert found.what == "1 commit of committer in group commit-refused-g refused: ILLEGAL_GENERATION"
