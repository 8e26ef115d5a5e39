"""A record without a key for a compacted topic."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("invalid-record", "invalid-record", "error")
    assert "Compacted topic cannot accept message without key" in found.words
