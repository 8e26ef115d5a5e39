"""A connection that a NAT gateway forgot."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("idle-cut", "idle-cut")
    assert "did not survive a silence of 4.1 min: the next request got no answer" in found.what
