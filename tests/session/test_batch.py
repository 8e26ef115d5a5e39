"""Batches: rows that were read as columns are the exchanges that were read frame by frame, wherever they went since."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kwire.session.batch import ExchangeBatch, concatenated, of_exchanges
from kwire.session.exchange import Exchange, Message
from kwire.session.reader import Settings
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
SAME = (
    "kind", "index", "position", "data", "size", "time", "last_time", "packet", "last_packet", "quality", "note",
    "marks", "correlation_id", "client_id", "body_at", "token", "body_version", "name", "errors",
)  # fmt: skip
captures = pytest.mark.parametrize("name", ["classic.pcap.gz", "franz.pcap.gz", "sasl-v0.pcap", "mtu1500.pcap.gz"])


def said(exchange: Exchange) -> list[Any]:
    def of(message: Message | None) -> list[Any]:
        return [] if message is None else [getattr(message, name) for name in SAME] + [message.body()]

    name = exchange.connection.name
    return [name, of(exchange.request), of(exchange.response), exchange.ending, exchange.silent, exchange.latency]


def batches(name: str, careful: bool = False) -> list[ExchangeBatch]:
    return list(Reading([CAPTURES / name], Settings(careful=careful)).batches())


def whole(name: str) -> ExchangeBatch:
    return concatenated(batches(name))


@captures
def test_columns_say_what_single_frames_say(name: str) -> None:
    found = [said(exchange) for batch in batches(name) for exchange in batch]
    assert found == [said(exchange) for batch in batches(name, careful=True) for exchange in batch]
    assert len(found) > 10


MOVES: dict[str, Callable[[ExchangeBatch], ExchangeBatch]] = {
    "compact": lambda batch: batch.compact(),
    "halves": lambda batch: concatenated([
        batch.take(np.arange(len(batch) // 2)).compact(), batch.take(np.arange(len(batch) // 2, len(batch)))
    ]),
    "backwards and sorted": lambda batch: batch.take(np.arange(len(batch))[::-1]).in_order(),
    "singles": lambda batch: of_exchanges(list(batch)),
}  # fmt: skip


@captures
@pytest.mark.parametrize("how", MOVES)
def test_rows_stay_what_they_are(name: str, how: str) -> None:
    batch = whole(name)
    assert [said(exchange) for exchange in MOVES[how](batch)] == [said(exchange) for exchange in batch]


def test_a_batch_holds_only_what_it_needs_once_compact() -> None:
    batch = whole("classic.pcap.gz")
    some = batch.take(np.arange(3)).compact()
    assert len(some.buffer) == sum(len(m.data) for e in some for m in (e.request, e.response) if m is not None)
    assert len(some.connections) <= 3
