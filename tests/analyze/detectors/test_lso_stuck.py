"""A partition that an open transaction holds up."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("open-transaction", "lso-stuck")
    assert "readers of committed records do not get past offset 0" in found.what
    assert "The transaction of open-transaction-x (forgetful)" in found.what
