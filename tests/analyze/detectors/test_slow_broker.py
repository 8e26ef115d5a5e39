"""A broker that gets little CPU."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("slow-broker", "slow-broker")
    assert found.about["broker"] == 2
    assert "the other 2 brokers" in found.what
