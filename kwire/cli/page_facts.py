"""What stands at the top of HTML pages: capture, packet, connection, time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.cli.captures import Pass
    from kwire.render.html.frame import Facts
    from kwire.session.exchange import Message
    from kwire.session.reading import Reading

MOST = 4  # names of a kind


def of_pass(done: Pass) -> Facts:
    """Of captures that were read: their names, from when to when, and which options chose from them."""
    from kwire.analyze.findings import lasted

    readers = [reader for reader in done.reading.readers if reader.first_time is not None]
    yield from _captures(done.reading)
    if readers:
        first = min(reader.first_time or 0 for reader in readers)
        last = max(reader.last_time for reader in readers)
        yield "time", f"{_moment(first)} to {_moment(last)} UTC ({lasted(last - first)})"


def of_messages(reading: Reading, messages: Sequence[Message]) -> Facts:
    """Of single frames: their capture, packets, connections and times."""
    yield from _captures(reading)
    packets = [message.connection.places.text(message.packet) for message in messages]
    yield _named("packet", packets)
    yield _named("connection", [message.connection.name for message in messages])
    times = [message.time for message in messages]
    last = f" to {_moment(max(times))}" if max(times) > min(times) else ""
    yield "time", f"{_moment(min(times))}{last} UTC"


def _captures(reading: Reading) -> Facts:
    yield _named("capture", reading.names.values())


def _named(noun: str, names: Iterable[str]) -> tuple[str, str]:
    """The first names, and how many more there are."""
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MOST:,} more" if len(known) > MOST else ""
    return counted(len(known), noun).split(" ")[1], ", ".join(known[:MOST]) + more


def _moment(time: int) -> str:
    return f"{datetime.fromtimestamp(time // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S}.{time // 1_000_000 % 1000:03d}"
