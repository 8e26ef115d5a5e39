"""A question that waits behind a long poll."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("head-of-line", "head-of-line")
    assert "ListOffsets of asker waited behind a Fetch" in found.what
