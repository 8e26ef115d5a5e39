"""The caller of each row of a batch: client id, host and broker. Made once per batch for all users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kwire.analyze.findings import Reference

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange
    from kwire.wire.columns import Ints


class Caller(NamedTuple):
    """client_id: empty where there is none; host: without the port; broker: its address."""

    client_id: str
    host: str
    broker: str

    @property
    def client(self) -> tuple[str, str]:
        """The client, whichever broker it asks."""
        return self.client_id, self.host

    @property
    def about(self) -> dict[str, str | int]:
        """As a finding names it."""
        return {"client_id": self.client_id, "address": self.host} if self.client_id else {"address": self.host}

    @property
    def label(self) -> str:
        return self.client_id or f"a client at {self.host}"


def host_of(connection: ConnectionInfo) -> str:
    """The client's address, without its port."""
    return connection.host


@lru_cache(2)
def callers(batch: ExchangeBatch) -> tuple[list[Caller], Ints]:
    """The callers of a batch, and which one each row has."""
    names, name = batch.client_ids()
    pairs, which = np.unique(batch.connection * len(names) + name, return_inverse=True)
    known: dict[Caller, int] = {}
    of_pair = []
    for pair in pairs.tolist():
        at, name_at = divmod(pair, len(names))
        connection = batch.connections[at]
        caller = Caller(names[name_at] or "", host_of(connection), connection.ends[1])
        of_pair.append(known.setdefault(caller, len(known)))
    return list(known), np.array(of_pair, np.int64)[which]


def topic_name(exchange: Exchange, topic: dict[str, Any]) -> str:
    """The name of a topic in a body, whether the body names it or has its id."""
    for name in ("Name", "Topic"):
        if name in topic:
            return str(topic[name])
    return exchange.connection.topics.name(topic["TopicId"])


def request_of(batch: ExchangeBatch, row: int) -> Reference:
    """A reference to a row's request."""
    return Reference.of(batch[row].first)


def answer_of(batch: ExchangeBatch, row: int) -> Reference:
    """A reference to a row's answer, or to its request if there is none."""
    exchange = batch[row]
    return Reference.of(exchange.response or exchange.first)


def grouped(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Each key with its indexes, ascending."""
    order = np.argsort(keys, kind="stable")
    sorted_ = keys[order]
    bounds = np.flatnonzero(np.diff(sorted_)) + 1
    if len(keys):
        for part in np.split(order, bounds):
            yield int(keys[part[0]]), part


@dataclass(slots=True)
class Pace:
    """How often something comes: its count in all, its first and last time, and the largest count in a stretch of time
    of fixed length (ns). Times within a batch may come in any order; batches come roughly in time order."""

    length: int
    count: int = 0
    first: int | None = None
    last: int = 0
    most: int = 0
    most_at: int = 0
    _open: dict[int, int] = field(default_factory=dict)

    def add(self, times: Ints) -> None:
        if not len(times):
            return
        self.count += len(times)
        low = int(times.min())
        self.first = low if self.first is None else min(self.first, low)
        self.last = max(self.last, int(times.max()))
        stretches, counts = np.unique(times // self.length, return_counts=True)
        for stretch, count in zip(stretches.tolist(), counts.tolist(), strict=True):
            total = self._open[stretch] = self._open.get(stretch, 0) + count
            if total > self.most:
                self.most, self.most_at = total, stretch * self.length
        if len(self._open) > 64:
            for old in sorted(self._open)[:-32]:
                del self._open[old]

    @property
    def span(self) -> int:
        """ns from the first to the last."""
        return 0 if self.first is None else self.last - self.first

    @property
    def per_second(self) -> float:
        """The mean rate between the first and the last; 0 for less than two."""
        return (self.count - 1) * 1e9 / self.span if self.count > 1 and self.span else 0.0
