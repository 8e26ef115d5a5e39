"""A consumer without a rack."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("rack-unset", "rack-unset", "note")
    assert "the brokers are in 3 racks (a, b, c)" in found.what
