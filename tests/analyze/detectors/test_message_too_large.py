"""A batch that is larger than its topic takes."""

from __future__ import annotations

from provoked import assert_proven


def test_provoked() -> None:
    found = assert_proven("message-too-large", "message-too-large", "error")
    assert found.what.endswith("MESSAGE_TOO_LARGE; the largest has 20,072 bytes")
