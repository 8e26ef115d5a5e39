"""Records whose lock ran out."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("share-redelivery", "share-redelivery")
    assert "within the lock of 2.0 s" in found.what
