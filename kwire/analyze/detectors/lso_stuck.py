"""Partitions at which readers of committed records stand still: an open transaction holds the last stable offset.

Sees LastStableOffset and HighWatermark of Fetch answers (from version 4 on): the first stays while the second is ahead.
What an answer of a fetch session leaves out has not changed (analyze/fetch_sessions.py).
Whose transaction it is comes from what the capture shows of producers (analyze/transactions.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import answer_of, grouped
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.fetch_sessions import ENDS, FetchSessions, SessionRun, offsets_told
from kwire.analyze.fetched import fetched
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.analyze.transactions import KEYS, MS, TransactionHistory
from kwire.counted import counted
from kwire.schema.keys import FETCH, PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange

MOST = 50_000
MOST_SESSIONS = 16  # of a stand
SECOND = 1_000_000_000


@dataclass(slots=True)
class Stand:
    """A partition whose last stable offset stays. since, last: ns; ahead: the high watermark less it, the most; over:
    when an answer showed it moved; sessions: whose answers prove that it stands, as long as they leave it out."""

    offset: int
    since: int
    first: Reference
    last: int = 0
    last_proof: Reference | None = None
    ahead: int = 0
    over: int | None = None
    over_proof: Reference | None = None
    sessions: list[SessionRun] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.last - self.since


class Stuck(Watch):
    """now: partitions that stand, by cluster's broker, topic and partition; longest: of each the longest stand."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.transactions = TransactionHistory()
        self.sessions = FetchSessions()
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
        if not self.now:
            self.sessions.clear()
            behind = flat.values["HighWatermark"] > flat.values["LastStableOffset"]
            if not behind[(flat.values["LastStableOffset"] >= 0) & (flat.values["ErrorCode"] == 0)].any():
                return
        told = offsets_told(decoded, number)
        self.sessions.add(decoded, number)
        for which, mine in grouped(told.place):
            place = told.places[which]
            if place not in self.now and not (told.high > told.stable)[mine].any():
                continue
            mine = mine[np.argsort(told.time[mine], kind="stable")]
            # only the ends of each run of equal offsets tell something
            new = np.flatnonzero(np.diff(told.stable[mine], prepend=-1) != 0)
            for low, up in pairwise([*new.tolist(), len(mine)]):
                part = mine[low:up]
                if told.stable[part[0]] == ENDS:
                    self._ends(place, told.row[part], told.time[part])
                else:
                    self._run(place, int(told.stable[part[0]]), told.high[part], told.row[part], batch)
        self.sessions.done()

    def _ends(self, place: tuple[str, int], rows: np.ndarray, times: np.ndarray) -> None:
        """Sessions say no more of a partition."""
        stand = self.now.get(place)
        for row, time in zip(rows.tolist(), times.tolist(), strict=True):
            run = self.sessions.of(row)
            if stand is not None and run in stand.sessions:
                self._prove(place, stand, run, time)
                stand.sessions.remove(run)

    def _prove(self, place: tuple[str, int], stand: Stand, run: SessionRun, until: int | None = None) -> None:
        """A session's answers say how long a partition stood, before a time, ns."""
        last, proof = self.sessions.proven(run, until)
        if last > stand.last:
            stand.last, stand.last_proof = last, proof
            self._keep(place, stand)

    def _keep(self, place: tuple[str, int], stand: Stand) -> None:
        if place not in self.longest or stand.length > self.longest[place].length:
            self.longest[place] = stand

    def _run(
        self, place: tuple[str, int], stable: int, high: np.ndarray, rows: np.ndarray, batch: ExchangeBatch
    ) -> None:
        stand = self.now.get(place)
        if stand is not None and stable < stand.offset:
            return  # a broker, or an answer, that is behind
        if stand is not None and stable > stand.offset:
            stand.over, stand.over_proof = int(batch.response.time[rows[0]]), answer_of(batch, int(rows[0]))
            for run in stand.sessions:
                self._prove(place, stand, run, stand.over)
            stand.sessions.clear()
            del self.now[place]
            stand = None
        late = rows[high > stable]
        if not len(late):
            return
        first, last = int(late[0]), int(late[-1])
        if stand is None:
            if len(self.now) >= MOST:
                return
            stand = self.now[place] = Stand(stable, int(batch.response.time[first]), answer_of(batch, first))
        stand.last, stand.ahead = int(batch.response.time[last]), max(stand.ahead, int((high - stable).max()))
        stand.last_proof = answer_of(batch, last)
        for row in late.tolist():
            session = self.sessions.of(row)
            if session is None or session in stand.sessions:
                continue
            if len(stand.sessions) == MOST_SESSIONS:
                self._prove(place, stand, oldest := stand.sessions[0], int(batch.response.time[row]))
                stand.sessions.remove(oldest)
            session.held = True
            stand.sessions.append(session)
        self._keep(place, stand)

    def findings(self) -> Iterator[Finding]:
        for place, stand in self.now.items():
            for run in stand.sessions:
                self._prove(place, stand, run)
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
