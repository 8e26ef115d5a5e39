"""A producer that skips sequence numbers."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("sequence-gap", "sequence-gap")
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER; producer" in found.what
    assert "from sequence 8 on" in found.what
