"""Two producers with one transactional id."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("producer-fenced", "producer-fenced", "error")
    assert "second at 127.0.0.1 began with the same id" in found.what
