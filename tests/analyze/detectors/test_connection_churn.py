"""A producer for each record."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("connection-churn", "connection-churn")
    assert "closed again within 5 s" in found.what
