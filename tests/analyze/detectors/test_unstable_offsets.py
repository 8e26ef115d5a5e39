"""Offsets that a transaction holds back."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("unstable-offsets", "unstable-offsets")
    assert "UNSTABLE_OFFSET_COMMIT" in found.what
    assert 4.5e9 < (found.last or 0) - found.time < 6.5e9
