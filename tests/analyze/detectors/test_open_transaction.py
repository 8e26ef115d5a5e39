"""A producer that begins and says no more."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("open-transaction", "open-transaction")
    assert "its timeout is 5.0 s; it had written to 1 partition" in found.what
