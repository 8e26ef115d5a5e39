"""A producer that is 120 ms away."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("slow-network", "slow-network")
    assert "is 12" in found.what
    assert "away from broker 10.77.0.1:19010" in found.what
