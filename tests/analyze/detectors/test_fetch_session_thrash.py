"""Fetch sessions that the broker does not know."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("fetch-session-thrash", "fetch-session-thrash")
    assert "FETCH_SESSION_ID_NOT_FOUND" in found.what
