"""Finds the exchanges that have bytes in given packets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.exchange import Exchange

Packet = tuple[str, int]  # file name, and the packet's number in it


class Holders:
    """of(batch) gives the exchanges with bytes in a wanted packet; missing: wanted packets not found so far."""

    def __init__(self, wanted: Iterable[Packet]) -> None:
        self._wanted = frozenset((str(file), int(number)) for file, number in wanted)
        self.missing = set(self._wanted)

    def of(self, batch: ExchangeBatch) -> ExchangeBatch:
        rows = np.zeros(len(batch), bool)
        for places in {id(known.places): known.places for known in batch.connections}.values():
            for one in self._wanted:
                for number in places.counted(*one):
                    for side in (batch.request, batch.response):
                        rows |= (side.start >= 0) & (side.packet <= number) & (number <= side.last_packet)
        for row in np.flatnonzero(rows).tolist():
            held = self._wanted & self._packets(batch[row])
            self.missing -= held
            rows[row] = bool(held)
        return batch if rows.all() else batch.part(rows)

    @staticmethod
    def _packets(exchange: Exchange) -> set[Packet]:
        """The packets of both messages, as (file, number)."""
        places = exchange.connection.places
        out = set()
        for message in (exchange.request, exchange.response):
            numbers = [] if message is None else [number for _, number in message.marks] or [message.packet]
            out |= {places.of(number) for number in numbers}
        return out
