"""Which exchanges have bytes in packets that somebody names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.exchange import Exchange

Packet = tuple[str, int]  # the file's name, and the number in it


class Holders:
    """of(batch) gives the exchanges of which a packet that is wanted holds bytes; missing: those not met so far."""

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
        """With and without the file: one capture's packets are named without it."""
        places = exchange.connection.places
        out = set()
        for message in (exchange.request, exchange.response):
            numbers = [] if message is None else [number for _, number in message.marks] or [message.packet]
            out |= {places.of(number) for number in numbers}
        return out
