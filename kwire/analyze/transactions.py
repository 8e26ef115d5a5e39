"""Transactions as a capture shows them: when a producer's began, which partitions it wrote to, when it was ended.

One begins with AddPartitionsToTxn or AddOffsetsToTxn, or (transaction.version 2, KIP-890) with the first Produce that
names the transactional id; it ends with EndTxn, or with the InitProducerId of whoever takes the id. What the
coordinator does by itself, as aborting one that takes too long, no client hears.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.analyze.callers import host_of
from kwire.analyze.findings import Reference
from kwire.schema.keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)

if TYPE_CHECKING:
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange

KEYS = (ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID, TXN_OFFSET_COMMIT)
DEFAULT_TIMEOUT = 60_000  # ms: transaction.timeout.ms
MOST = 10_000
MOST_PARTITIONS = 1000
MS = 1_000_000


@dataclass(slots=True)
class SeenTransaction:
    """One transaction. began, last and ended: ns; ended is None as long as it is open; how: the API that ended it."""

    ident: str
    client_id: str
    host: str
    began: int
    proof: Reference
    timeout: int | None
    partitions: set[tuple[str, int]] = field(default_factory=set)
    last: int = 0
    last_proof: Reference | None = None
    ended: int | None = None
    end_proof: Reference | None = None
    how: str = ""

    def lasted(self, until: int) -> int:
        """ns, as far as it was seen."""
        return (until if self.ended is None else self.ended) - self.began


class TransactionHistory:
    """exchange(exchange) of KEYS and columns(decoded, number) of Produce, about in the order of time. timeouts: ms, by
    transactional id, as InitProducerId asked; open: by transactional id; long: those that outlived their timeout."""

    def __init__(self) -> None:
        self.timeouts: dict[str, int] = {}
        self.open: dict[str, SeenTransaction] = {}
        self.ended: dict[str, list[SeenTransaction]] = {}  # the longest of each id
        self.seen_ends: dict[str, int] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        body = request.body() if request else None
        if request is None or request.api is None or body is None:
            return
        key = request.api.key
        ident = body.get("TransactionalId") or body.get("V3AndBelowTransactionalId")
        if not ident:
            return
        if key == INIT_PRODUCER_ID:
            if response is not None and not response.errors:
                if len(self.timeouts) < MOST or ident in self.timeouts:
                    self.timeouts[ident] = body["TransactionTimeoutMs"]
                self._end(ident, exchange, "InitProducerId")
        elif key == END_TXN:
            if response is not None and not response.errors:
                self._end(ident, exchange, "EndTxn")
        elif response is None or not response.errors:
            found = self._begin(ident, exchange)
            topics = body.get("V3AndBelowTopics") or ()
            if found is not None and len(found.partitions) < MOST_PARTITIONS:
                found.partitions |= {(topic["Name"], part) for topic in topics for part in topic["Partitions"]}

    def columns(self, decoded: Decoded, number: int) -> None:
        """Produce requests that name a transactional id."""
        from kwire.analyze.produced import produced

        made, batch = produced(decoded, number), decoded.batch
        for place in made.transactional.nonzero()[0].tolist():
            row = int(made.row[place])
            exchange = batch[row]
            if batch.errors[row] or exchange.request is None:
                continue
            idents = exchange.about.transactions
            if not idents:
                continue
            found = self._begin(idents[0], exchange)
            if found is not None and len(found.partitions) < MOST_PARTITIONS:
                found.partitions.add((made.names[int(made.topic[place])], int(made.partition[place])))

    def _begin(self, ident: str, exchange: Exchange) -> SeenTransaction | None:
        first = exchange.first
        if first.time <= self.seen_ends.get(ident, 0):
            return None  # one that is over already: APIs of a batch come one after the other, not in the order of time
        known = self.open.get(ident)
        proof = Reference.of(first)
        if known is None:
            if len(self.open) >= MOST:
                return None
            host = host_of(exchange.connection)
            timeout = self.timeouts.get(ident)
            known = self.open[ident] = SeenTransaction(ident, first.client_id or "", host, first.time, proof, timeout)
        elif first.time < known.began:
            known.began, known.proof = first.time, proof
        if first.time >= known.last:
            known.last, known.last_proof = first.time, proof
        return known

    def _end(self, ident: str, exchange: Exchange, how: str) -> None:
        time = exchange.first.time
        self.seen_ends[ident] = max(self.seen_ends.get(ident, 0), time)
        found = self.open.get(ident)
        if found is None or found.began > time:
            return
        del self.open[ident]
        found.ended, found.end_proof, found.how = time, Reference.of(exchange.first), how
        kept = self.ended.setdefault(ident, [])
        kept.append(found)
        kept.sort(key=lambda one: one.began - (one.ended or 0))
        del kept[4:]

    def over(self, until: int) -> list[SeenTransaction]:
        """Those that were open for longer than their timeout, the first ones first; until: the end of the capture."""
        every = [*self.open.values(), *(one for kept in self.ended.values() for one in kept)]
        late = [one for one in every if one.lasted(until) > (one.timeout or DEFAULT_TIMEOUT) * MS]
        return sorted(late, key=lambda one: one.began)

    def on(self, topic: str, partition: int, time: int) -> list[SeenTransaction]:
        """Those that had written to a partition and were open at a time, ns."""
        every = [*self.open.values(), *(one for kept in self.ended.values() for one in kept)]
        return [
            one for one in every
            if (topic, partition) in one.partitions and one.began <= time and (one.ended is None or one.ended > time)
        ]  # fmt: skip
