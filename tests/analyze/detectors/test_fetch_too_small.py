"""Fetches of a batch at a time."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("fetch-too-small", "fetch-too-small")
    assert "it allows 2,000 bytes a partition" in found.what
