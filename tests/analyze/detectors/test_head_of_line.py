"""A question that waits behind a long poll."""

from __future__ import annotations

from provoked import assert_proven, found_in


def test_provoked() -> None:
    found = assert_proven("head-of-line", "head-of-line")
    assert "ListOffsets of asker waited behind a Fetch" in found.what


def test_what_waits_for_one_that_waited_is_laid_at_the_first() -> None:
    """Produce waits for replicas that are gone; Metadata behind it, and Produce behind that."""
    found = [one.what for one in found_in("broker-gone") if one.detector == "head-of-line"]
    assert found
    assert all("Metadata of writer waited behind a Produce" in what for what in found)
