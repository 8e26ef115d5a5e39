"""A member that waits for what another one holds."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("unrevoked", "slow-assignment")
    assert "it waited for holder" in found.what
