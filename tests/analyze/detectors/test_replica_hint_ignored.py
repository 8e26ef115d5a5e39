"""A consumer that does not follow the hint."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("replica-hint-ignored", "replica-hint-ignored")
    assert "goes on asking the leader" in found.what
