"""A member that holds on to what it is to give up."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("unrevoked", "unrevoked")
    assert found.about["group"] == "unrevoked-g"
    assert "its rebalance timeout is 10.0 s" in found.what
