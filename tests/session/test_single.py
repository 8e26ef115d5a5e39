"""Exchanges out of what the fast path read are those that the slow path gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.session import bulk, conversation
from kwire.session.bulk import Batch
from kwire.session.exchange import Exchange, Message
from kwire.session.reading import Reading
from kwire.session.single import exchange_at

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
SAME = (
    "kind", "index", "position", "data", "size", "time", "last_time", "packet", "last_packet", "quality", "note",
    "correlation_id", "client_id", "body_at", "token", "body_version", "name",
)  # fmt: skip


class Single:
    """A sink that makes exchanges of batches."""

    scans = True

    def __init__(self) -> None:
        self.found: list[Exchange] = []

    def accepts(self, _: object) -> bool:
        return True

    def batch(self, batch: Batch) -> tuple[()]:
        self.found += [exchange_at(batch, row) for row in range(len(batch))]
        return ()


def told(message: Message | None) -> list[Any]:
    assert message is not None
    return [getattr(message, name) for name in SAME] + [message.body()]


@pytest.mark.parametrize("name", ["classic.pcap.gz", "franz.pcap.gz", "oldjava.pcap.gz"])
def test_they_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sink = CAPTURES / name, Single()
    slow = {
        (exchange.conversation.name, exchange.request.index): exchange
        for exchange in Reading([path]).exchanges()
        if exchange.request is not None
    }
    monkeypatch.setattr(bulk, "LEAST", 1)
    monkeypatch.setattr(conversation, "BULK_LEAST", 20)
    list(Reading([path]).through(sink))
    assert len(sink.found) > 10
    for exchange in sink.found:
        assert exchange.request is not None
        other = slow[exchange.conversation.name, exchange.request.index]
        assert told(exchange.request) == told(other.request)
        assert told(exchange.response) == told(other.response)
        assert (exchange.error, exchange.latency, exchange.silent) == (other.error, other.latency, False)
