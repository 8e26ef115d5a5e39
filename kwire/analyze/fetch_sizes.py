"""Estimates what a larger fetch.min.bytes would change: how many fetches there would be, how long data would wait.

Data arrives at the broker when a response brings it, at the latest; a response of the other kind waits from the one
before until there is enough, or fetch.max.wait.ms is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kwire.analyze.fetched import fetched
from kwire.schema.keys import FETCH
from kwire.session.decoded import Decoded

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch

MOST_CLIENTS, MOST_FETCHES = 1_000, 200_000
MS = 1_000_000


class Waited(NamedTuple):
    """How many responses there would be, and how long data waits more on average, ms."""

    responses: int
    delay: float


@dataclass(slots=True)
class Fetches:
    """A client's fetches: by connection the time of each response, ns, and the bytes of records in it; limits: which
    MinBytes and MaxWaitMs it asked for."""

    connections: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    limits: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(map(len, self.connections.values()))

    @property
    def size(self) -> int:
        """Bytes of records."""
        return sum(size for found in self.connections.values() for _, size in found)

    @property
    def usual(self) -> tuple[int, int]:
        """The MinBytes and MaxWaitMs of most."""
        return max(self.limits, key=lambda pair: self.limits[pair], default=(1, 500))

    def waiting(self, min_bytes: int, max_wait: int) -> Waited:
        """The estimate for another fetch.min.bytes and fetch.max.wait.ms."""
        responses, delay, brought = 0, 0, 0
        for found in self.connections.values():
            ordered = sorted(found)
            begun = ordered[0][0] if ordered else 0
            waiting: list[tuple[int, int]] = []
            for moment, size in ordered:
                while moment - begun > max_wait * MS:  # time is over before this data comes
                    begun += max_wait * MS
                    responses += 1
                    delay += sum((begun - came) * much for came, much in waiting)
                    waiting = []
                if size:
                    waiting.append((moment, size))
                    brought += size
                if sum(much for _, much in waiting) >= min_bytes:
                    responses += 1
                    delay += sum((moment - came) * much for came, much in waiting)
                    begun, waiting = moment, []
            if waiting:
                responses += 1
        return Waited(responses, delay / brought / MS if brought else 0.0)


class FetchSizes:
    """add(batch) collects; clients: by client id."""

    def __init__(self) -> None:
        self.clients: dict[str, Fetches] = {}
        self._count = 0

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        decoded = Decoded(batch)
        for number in decoded.kinds(FETCH):
            found = fetched(decoded, number)
            sizes = np.zeros(len(batch), np.int64)
            np.add.at(sizes, found.answered.row, found.answered.size)
            least, longest = found.top["MinBytes"].tolist(), found.top["MaxWaitMs"].tolist()
            for row, bytes_, wait in zip(found.rows.tolist(), least, longest, strict=True):
                if batch.response.start[row] >= 0 and self._count < MOST_FETCHES:
                    self._one(batch, row, int(sizes[row]), (bytes_, wait))

    def _one(self, batch: ExchangeBatch, row: int, size: int, limits: tuple[int, int]) -> None:
        name = batch.client_id(row) or ""
        if name not in self.clients and len(self.clients) >= MOST_CLIENTS:
            return
        self._count += 1
        client = self.clients.setdefault(name, Fetches())
        connection = batch.connections[batch.connection[row]]
        found = client.connections.setdefault(connection.capture + connection.name, [])
        found.append((int(batch.response.time[row]), size))
        client.limits[limits] = client.limits.get(limits, 0) + 1
