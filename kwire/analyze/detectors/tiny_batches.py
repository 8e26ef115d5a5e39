"""Producers that send records one by one.

Sees the number of records of each batch in Produce requests (RecordsOverlay: recordsCount of magic 2) and how many
requests a second a client sends. linger.ms was 0 by default before Kafka 4.0 and is 5 from then on (KIP-1030).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, Pace, callers, grouped, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference
from kwire.analyze.produced import produced
from kwire.counted import counted
from kwire.schema.keys import PRODUCE
from kwire.wire.columns import Ints, tally

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded

MOST = 10_000
BUCKETS = 32  # numbers of records that are told apart; more are as many
SECOND = 1_000_000_000
STRETCH = 5 * SECOND  # in which requests are counted: a rate over a part of a capture may be any


@dataclass(slots=True)
class TinyBatchSender:
    """Of one client and topic: how many batches had how many records, bytes in all, how often a request came."""

    caller: Caller
    topic: str
    records: Ints = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    bytes: int = 0
    pace: Pace = field(default_factory=lambda: Pace(STRETCH))
    proofs: list[Reference] = field(default_factory=list)

    @property
    def median(self) -> int:
        """Of the records of a batch."""
        return int(np.searchsorted(np.cumsum(self.records), (int(self.records.sum()) + 1) // 2))


class Tiny(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.senders: dict[tuple[str, str, str], TinyBatchSender] = {}

    def columns(self, decoded: Decoded, number: int) -> None:
        batch, made = decoded.batch, produced(decoded, number)
        modern = np.flatnonzero(made.records >= 0)
        if not len(modern):
            return
        people, which = callers(batch)
        keys = which[made.row[modern]] * len(made.names) + made.topic[modern]
        for key, places in grouped(keys):
            at, topic = divmod(key, len(made.names))
            caller, name = people[at], made.names[topic]
            sender = self.senders.get((*caller.client, name))
            if sender is None:
                if len(self.senders) >= MOST:
                    continue
                sender = self.senders[(*caller.client, name)] = TinyBatchSender(caller, name)
            mine = modern[places]
            sender.records += tally(np.minimum(made.records[mine], BUCKETS - 1), size=BUCKETS)
            sender.bytes += int(made.size[mine].sum())
            rows = np.unique(made.row[mine])
            sender.pace.add(batch.request.time[rows])
            if len(sender.proofs) < 3:
                sender.proofs += [request_of(batch, row) for row in rows[: 3 - len(sender.proofs)].tolist()]

    def findings(self) -> Iterator[Finding]:
        for sender in self.senders.values():
            pace, batches = sender.pace, int(sender.records.sum())
            if (
                batches < self.limit("batches")
                or pace.most * SECOND < self.limit("per_second") * STRETCH
                or sender.median > self.limit("records")
                or sender.bytes > self.limit("bytes") * batches
            ):
                continue
            what = f"{sender.caller.label} sends {sender.topic} {sender.median or 1} "
            what += f"{'record' if sender.median < 2 else 'records'} at a time (median of "
            what += f"{counted(batches, 'batch', 'batches')}, {sender.bytes // batches:,} bytes each), "
            what += f"{pace.per_second:.0f} requests a second"
            advice = "Raise linger.ms (5 ms is the default since 4.0, 20 to 100 where latency allows) and batch.size; "
            advice += "do not flush after each record."
            severity = "warning" if pace.per_second >= self.limit("many_per_second") else "note"
            yield Finding(
                severity,
                what,
                tuple(sender.proofs),
                advice,
                time=pace.first or 0,
                last=pace.last,
                count=batches,
                about=sender.caller.about | {"topic": sender.topic, "api": "Produce"},
                otherwise="each record has to be on the broker before the next one may be made",
            )


DETECTOR = Detector(
    "producers that send records one by one",
    watch=Tiny,
    fields="Produce: recordsCount of each batch (magic 2), requests a second",
    source="linger.ms, batch.size; KIP-1030 (linger.ms=5 by default)",
    means="Each request carries a record or two: most of the work goes into what is around them.",
    proof="Produce requests in quick succession, each with a batch of one or two records.",
    advice="Raise linger.ms and batch.size.",
    thresholds={"records": 2, "bytes": 1000, "per_second": 10, "batches": 50, "many_per_second": 50},
    bodies=(PRODUCE,),
    needs=("clock",),
)
