"""Records sent one by one."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("tiny-batches", "tiny-batches")
    assert "1 record at a time" in found.what
