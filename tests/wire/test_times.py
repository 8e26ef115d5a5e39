"""Times as text."""

from __future__ import annotations

import pytest

from kwire.wire.times import instant


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_795_222_923_123_456_789, "2026-11-21T01:02:03.123456789Z"),
        (-1_000, "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_moments_of_packets(ns: int, text: str) -> None:
    assert instant(ns) == text
