"""Much JSON without compression."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("uncompressed", "uncompressed")
    assert "without compression" in found.what
    assert "times smaller" in found.what
