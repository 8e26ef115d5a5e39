"""Consumers as kwire trace has them: of a capture, up to a time or without an API, and of a scene."""

from __future__ import annotations

from pathlib import Path

from scenes import Scene
from session.conftest import block

from kwire.analyze.findings import TimeFormat
from kwire.analyze.trace import Consumer, Trace
from kwire.session.exchange import Exchange
from kwire.session.reader import Reader
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[1] / "fixtures" / "captures"


def traced(name: str, until: float | None = None, without: str = "") -> tuple[Trace, TimeFormat]:
    """until: seconds after which exchanges are not looked at, and answers not there; without: APIs left out."""
    reading = Reading([next(CAPTURES.glob(f"{name}.pcap*"))], tracking=True)
    trace = Trace()
    exchanges = list(reading.exchanges())
    first = min(reader.first_time or 0 for reader in reading.readers)
    end = None if until is None else first + round(until * 1e9)
    for exchange in exchanges:
        if exchange.api == without or (end is not None and exchange.time > end):
            continue
        if end is not None and exchange.response is not None and exchange.response.time > end:
            exchange = Exchange(exchange.connection, exchange.request, None, "the capture ended")
        trace.add(exchange)
    if end is not None:
        trace.end = end
    return trace, TimeFormat(first)


def consumer(trace: Trace, client_id: str) -> Consumer:
    (found,) = [one for one in trace.consumers() if one.client_id == client_id]
    return found


def traced_scene(scene: Scene) -> Trace:
    """What a scene's exchanges tell of its consumers."""
    trace = Trace()
    reader = Reader("made.pcap", tracking=True)
    for batch in [*reader.feed(block(scene.packets, 1)), *reader.finish()]:
        for exchange in batch:
            trace.add(exchange)
    return trace
