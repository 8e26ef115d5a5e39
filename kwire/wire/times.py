"""Times as Kafka has them, milliseconds since 1970-01-01 UTC, as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(ms: int) -> str:
    """2026-01-01 00:00:00.000Z; "no date" for what lies outside of the calendar."""
    try:
        text = (EPOCH + timedelta(milliseconds=ms)).isoformat(" ", "milliseconds")
    except OverflowError:
        return "no date"
    return text.replace("+00:00", "Z")
