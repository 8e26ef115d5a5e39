"""A consumer that works long on each record."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("slow-client", "slow-client")
    assert "takes 1.5 s (the median of" in found.what
