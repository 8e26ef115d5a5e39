"""Consumers that take long between the answers they get and the next request, while records wait for them.

Sees, on each connection that fetches, the time from an answer with records to the next Fetch, and whether by then the
HighWatermark of that answer lies beyond the next FetchOffset: the broker had more to give, and was not asked. And TCP
windows of zero: the client does not read the answers that it asked for, so that the broker cannot send them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kwire.analyze.callers import Caller, callers, grouped, topic_name
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.analyze.unread_answers import UnreadAnswers
from kwire.counted import counted
from kwire.schema.keys import FETCH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo
    from kwire.session.exchange import Exchange

MOST = 10_000
MOST_BEFORE = 10_000  # connections of which the last Fetch is kept from batch to batch
MS = 1_000_000


class AnsweredFetch(NamedTuple):
    """A Fetch's answer: its times, ns; ends: the HighWatermark of partitions that it has records of."""

    time: int
    last_time: int
    proof: Reference
    ends: dict[tuple[str, int], int]


@dataclass(slots=True)
class SlowFetches:
    """One client's waits, ns, between an answer and the next request; behind: records that waited, the most."""

    caller: Caller
    topic: str = ""
    partition: int = -1
    waits: list[int] = field(default_factory=list)
    fetches: int = 0
    answered: int = 0
    behind: int = 0
    first: int = 0
    last: int = 0
    proofs: list[Reference] = field(default_factory=list)


class SlowClient(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.unread = UnreadAnswers()
        self.clients: dict[tuple[str, str], SlowFetches] = {}
        self.before: dict[tuple[str, str], AnsweredFetch] = {}  # the last Fetch of a connection

    def batch(self, batch: ExchangeBatch) -> None:
        kinds = np.array([kind is not None and kind.key == FETCH for kind in batch.kinds], bool)
        if not kinds.any():
            return
        whole = np.flatnonzero(kinds[batch.kind] & batch.request.there & batch.response.there)
        people, which = callers(batch)
        for at, places in grouped(batch.connection[whole]):
            rows = whole[places]
            rows = rows[np.argsort(batch.request.time[rows], kind="stable")]
            connection = batch.connections[at]
            key = connection.capture, connection.name
            caller = people[int(which[rows[0]])]
            slow = self.clients.get(caller.client)
            if slow is None:
                if len(self.clients) >= MOST:
                    continue
                slow = self.clients[caller.client] = SlowFetches(caller)
            slow.fetches += len(rows)
            asked, answered = batch.request.time[rows], batch.response.last_time[rows]
            slow.answered += int(np.maximum(batch.response.time[rows] - batch.request.last_time[rows], 0).sum())
            before = self.before.get(key)
            if before is not None:
                wait = int(asked[0]) - before.last_time
                if wait >= self.limit("ms") * MS:
                    self._take(slow, before, batch[int(rows[0])], wait)
            for place in np.flatnonzero(asked[1:] - answered[:-1] >= self.limit("ms") * MS).tolist():
                wait = int(asked[place + 1] - answered[place])
                self._take(slow, _answered(batch[int(rows[place])]), batch[int(rows[place + 1])], wait)
            if key in self.before or len(self.before) < MOST_BEFORE:
                self.before[key] = _answered(batch[int(rows[-1])])

    def _take(self, slow: SlowFetches, before: AnsweredFetch, after: Exchange, wait: int) -> None:
        asked = after.request.body() if after.request else None
        if asked is None or after.request is None:
            return
        behind, place, ends = 0, ("", -1), before.ends
        for topic in asked.get("Topics") or ():
            for part in topic["Partitions"]:
                here = topic_name(after, topic), part["Partition"]
                if ends.get(here, 0) - part["FetchOffset"] > behind:
                    behind, place = ends[here] - part["FetchOffset"], here
        if not behind:
            return
        if behind > slow.behind:
            slow.behind, (slow.topic, slow.partition) = behind, place
        if len(slow.waits) < 100_000:
            slow.waits.append(wait)
        slow.first = min(slow.first or before.time, before.time)
        slow.last = max(slow.last, after.request.time)
        if len(slow.proofs) < 6:
            slow.proofs += [before.proof, Reference.of(after.request)]

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        if connection.is_kafka and coverage.said[1]:
            self.unread.take(connection)

    def findings(self) -> Iterator[Finding]:
        yield from self.unread.findings(self.limit("full_ms"))
        for slow in self.clients.values():
            total = sum(slow.waits)
            if len(slow.waits) < self.limit("least") or total < self.limit("share") * (total + slow.answered):
                continue
            usual = sorted(slow.waits)[len(slow.waits) // 2]
            what = (
                f"{slow.caller.label} takes {lasted(usual)} (the median of {counted(len(slow.waits), 'time')}) from an "
            )
            what += f"answer to its next Fetch, while up to {counted(slow.behind, 'record')} of "
            what += f"{slow.topic}-{slow.partition} wait: {lasted(total)} of its time, and {lasted(slow.answered)} the "
            what += "brokers'"
            advice = "The brokers answer and wait for it: look at what it does with records between two polls; more "
            advice += "consumers or threads, or larger fetches for each round."
            yield Finding(
                "warning", what, tuple(slow.proofs), advice, time=slow.first, last=slow.last, count=len(slow.waits),
                about=slow.caller.about | {"topic": slow.topic, "partition": slow.partition, "api": "Fetch"},
                otherwise="the program pauses by intent",
            )  # fmt: skip


def _answered(exchange: Exchange) -> AnsweredFetch:
    """What is kept of a Fetch that was answered."""
    response = exchange.response
    assert response is not None
    ends = {
        (topic_name(exchange, topic), part["PartitionIndex"]): part["HighWatermark"]
        for topic in (response.body() or {}).get("Responses") or () for part in topic["Partitions"]
        if part.get("Records")
    }  # fmt: skip
    return AnsweredFetch(response.time, response.last_time, Reference.of(response), ends)


DETECTOR = Detector(
    "consumers that are slow themselves",
    watch=SlowClient,
    fields="times of Fetch answers and the next requests; HighWatermark, FetchOffset; TCP windows of the client's side",
    source="max.poll.records=500, max.poll.interval.ms=300000: how much work lies between two polls; RFC 9293, 3.8.6",
    means="There are records, the broker answers at once, and the client does not ask.",
    proof="An answer with records and the next Fetch on that connection, far behind it, for an offset below the end.",
    advice="Shorten the work for each record, or share it among more consumers.",
    thresholds={"ms": 500, "least": 3, "share": 0.5, "full_ms": 500},
    batches=True,
    connections=True,
    needs=("requests", "answers"),
)
