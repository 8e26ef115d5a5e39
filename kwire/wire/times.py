"""Times as text: Kafka's, which are milliseconds since 1970-01-01 UTC, and those of packets, which are nanoseconds."""

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


def instant(ns: int) -> str:
    """2026-01-01T00:00:00.000000Z, with nine digits where there are more than microseconds; ISO 8601."""
    seconds, rest = divmod(ns, 1_000_000_000)
    text = (EPOCH + timedelta(seconds=seconds)).isoformat("T", "seconds").removesuffix("+00:00")
    return f"{text}.{rest:09d}Z" if rest % 1000 else f"{text}.{rest // 1000:06d}Z"
