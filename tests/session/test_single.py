"""Exchanges out of what the fast path read are those that the slow path gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sinks import Kept

from kwire.session import bulk, conversation
from kwire.session.exchange import Message
from kwire.session.reading import Reading
from kwire.session.single import exchange_at

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
SAME = (
    "kind", "index", "position", "data", "size", "time", "last_time", "packet", "last_packet", "quality", "note",
    "correlation_id", "client_id", "body_at", "token", "body_version", "name",
)  # fmt: skip


def told(message: Message | None) -> list[Any]:
    assert message is not None
    return [getattr(message, name) for name in SAME] + [message.body()]


@pytest.mark.parametrize("name", ["classic.pcap.gz", "franz.pcap.gz", "oldjava.pcap.gz"])
def test_they_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sink = CAPTURES / name, Kept()
    slow = {
        (exchange.conversation.name, exchange.request.index): exchange
        for exchange in Reading([path]).exchanges()
        if exchange.request is not None
    }
    monkeypatch.setattr(bulk, "LEAST", 1)
    monkeypatch.setattr(conversation, "BULK_LEAST", 20)
    list(Reading([path]).through(sink))
    found = [exchange_at(batch, row) for batch in sink.batches for row in range(len(batch))]
    assert len(found) > 10
    for exchange in found:
        assert exchange.request is not None
        other = slow[exchange.conversation.name, exchange.request.index]
        assert told(exchange.request) == told(other.request)
        assert told(exchange.response) == told(other.response)
        assert (exchange.error, exchange.latency, exchange.silent) == (other.error, other.latency, False)
