"""Partitions at which readers of committed records stand still: an open transaction holds the last stable offset.

Sees LastStableOffset and HighWatermark of Fetch answers (from version 4 on): the first stays while the second is ahead.
Whose transaction it is comes from what the capture shows of producers (analyze/transactions.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import answer_of, callers, grouped
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.fetched import fetched
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.analyze.transactions import KEYS, MS, TransactionHistory
from kwire.counted import counted
from kwire.schema.keys import FETCH, PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange

MOST = 50_000
SECOND = 1_000_000_000


@dataclass(slots=True)
class Stand:
    """A partition whose last stable offset stays. since, last: ns; ahead: the high watermark less it, the most; over:
    when an answer showed it moved."""

    offset: int
    since: int
    first: Reference
    last: int = 0
    last_proof: Reference | None = None
    ahead: int = 0
    over: int | None = None
    over_proof: Reference | None = None
    clients: set[str] = field(default_factory=set)

    @property
    def length(self) -> int:
        return self.last - self.since


class Stuck(Watch):
    """now: partitions that stand, by cluster's broker, topic and partition; longest: of each the longest stand."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.transactions = TransactionHistory()
        self.now: dict[tuple[str, int], Stand] = {}
        self.longest: dict[tuple[str, int], Stand] = {}

    def exchange(self, exchange: Exchange) -> None:
        self.transactions.exchange(exchange)

    def columns(self, decoded: Decoded, number: int) -> None:
        kind = decoded.batch.kinds[number]
        if kind is not None and kind.key == PRODUCE:
            self.transactions.columns(decoded, number)
            return
        flat, batch = fetched(decoded, number).answered, decoded.batch
        known = np.flatnonzero((flat.values["LastStableOffset"] >= 0) & (flat.values["ErrorCode"] == 0))
        if not len(known):
            return
        behind = flat.values["HighWatermark"] > flat.values["LastStableOffset"]
        if not behind[known].any() and not self.now:
            return
        people, which = callers(batch)
        wide = int(flat.values["PartitionIndex"].max()) + 1
        for key, places in grouped(flat.topic[known] * wide + flat.values["PartitionIndex"][known]):
            topic, partition = divmod(key, wide)
            place = flat.names[topic], partition
            mine = known[places]
            if place not in self.now and not behind[mine].any():
                continue
            mine = mine[np.argsort(batch.response.time[flat.row[mine]], kind="stable")]
            stable, high = flat.values["LastStableOffset"][mine], flat.values["HighWatermark"][mine]
            rows = flat.row[mine]
            # only the ends of each run of equal offsets tell something
            new = np.flatnonzero(np.diff(stable, prepend=-1) != 0)
            for low, up in pairwise([*new.tolist(), len(mine)]):
                self._run(
                    place, int(stable[low]), high[low:up], rows[low:up], decoded, people[int(which[rows[low]])].label
                )

    def _run(
        self, place: tuple[str, int], stable: int, high: np.ndarray, rows: np.ndarray, decoded: Decoded, client: str
    ) -> None:
        batch = decoded.batch
        stand = self.now.get(place)
        if stand is not None and stable < stand.offset:
            return  # a broker, or an answer, that is behind
        if stand is not None and stable > stand.offset:
            stand.over, stand.over_proof = int(batch.response.time[rows[0]]), answer_of(batch, int(rows[0]))
            del self.now[place]
            stand = None
        late = np.flatnonzero(high > stable)
        if not len(late):
            return
        first, last = int(rows[late[0]]), int(rows[late[-1]])
        if stand is None:
            if len(self.now) >= MOST:
                return
            stand = self.now[place] = Stand(stable, int(batch.response.time[first]), answer_of(batch, first))
        stand.last, stand.ahead = int(batch.response.time[last]), max(stand.ahead, int((high - stable).max()))
        stand.last_proof = answer_of(batch, last)
        if len(stand.clients) < 100:
            stand.clients.add(client)
        if place not in self.longest or stand.length > self.longest[place].length:
            self.longest[place] = stand

    def findings(self) -> Iterator[Finding]:
        for (topic, partition), stand in self.longest.items():
            culprits = self.transactions.on(topic, partition, stand.since + stand.length // 2)
            timeouts = [one.timeout * MS for one in culprits if one.timeout]
            wanted = min(self.limit("seconds") * SECOND, *timeouts) if timeouts else self.limit("seconds") * SECOND
            if stand.length <= wanted:
                continue
            clock = self.case.clock
            what = f"{topic}-{partition}: readers of committed records do not get past offset {stand.offset:,} for "
            what += f"{lasted(stand.length)}, while up to {counted(stand.ahead, 'record')} stand behind it"
            what += f"; it moved at {clock(stand.over)}" if stand.over else "; it had not moved when last asked"
            about: dict[str, str | int] = {"topic": topic, "partition": partition, "api": "Fetch"}
            proofs = [stand.first, stand.last_proof, stand.over_proof]
            if culprits:
                one = min(culprits, key=lambda one: one.began)
                about["transactional_id"] = one.ident
                what += (
                    f". The transaction of {one.ident} ({one.client_id or one.host}), open since {clock(one.began)}, "
                )
                what += "is on it"
                proofs.insert(0, one.proof)
            advice = "kafka-transactions find-hanging names the producer"
            advice += f", or see open-transaction for {culprits[0].ident}" if culprits else ""
            advice += "; one that hangs for good is ended with kafka-transactions abort."
            yield Finding(
                "warning" if stand.over else "error", what, tuple(dict.fromkeys(one for one in proofs if one)), advice,
                time=stand.since, last=stand.over or stand.last, about=about,
                otherwise="the offset moved between the answers that the capture has",
            )  # fmt: skip


DETECTOR = Detector(
    "partitions held up by an open transaction",
    watch=Stuck,
    fields="Fetch: LastStableOffset, HighWatermark (4+); what begins and ends transactions",
    source="KIP-98; transaction.timeout.ms=60000 and transaction.max.timeout.ms=900000; KIP-664 for hanging ones",
    means="A transaction is open on the partition: what was written after its first record waits for its end.",
    proof="Two answers with the same LastStableOffset and a HighWatermark ahead, far apart in time.",
    advice="End the transaction: see open-transaction; kafka-transactions find-hanging.",
    thresholds={"seconds": 60},
    exchanges=KEYS,
    bodies=(FETCH, PRODUCE),
    needs=("clock",),
)
