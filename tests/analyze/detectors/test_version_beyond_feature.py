"""Heartbeats of a protocol that is turned off."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("version-beyond-feature", "version-beyond-feature", "error")
    assert "group.version is 0 in this cluster" in found.what
