"""Fetch sessions, of which an answer tells only what changed (KIP-227).

A broker puts a partition into an incremental answer when its high watermark or its log start changed, when it has
records for it, or an error (FetchSession.CachedPartition.maybeUpdateResponseData). So an answer without a partition
proves that it stands where the session's last answer with it said, and its last stable offset too: that moves when the
marker which ends a transaction is replicated, with the high watermark. This holds while the session goes on without a
gap, and the partition is not forgotten. An answer that was throttled is always empty, and proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import answer_of
from kwire.analyze.fetched import fetched, number_column, partitions_of
from kwire.codec.columnar import Numbers

if TYPE_CHECKING:
    from kwire.analyze.findings import Reference
    from kwire.session.batch import ExchangeBatch
    from kwire.session.decoded import Bodies, Decoded
    from kwire.wire.columns import Ints

NOTHING = np.zeros(0, np.int64)
LAST_EPOCH = 2**31 - 1  # after which comes 1
MOST = 50_000
ENDS = -2  # in place of offsets, where a session says no more of a partition: it refuses or forgets it


@dataclass(slots=True, eq=False)
class SessionRun:
    """A session's fetches without a gap. epoch: of the last one. The answers that prove something: rows and times (ns)
    in this batch, ascending; of earlier batches, time and place of the last one. held: whether it is needed."""

    epoch: int
    rows: Ints = field(default_factory=lambda: NOTHING)
    times: Ints = field(default_factory=lambda: NOTHING)
    last: int = 0
    proof: Reference | None = None
    held: bool = False


class FetchSessions:
    """add(decoded, number) a kind's fetches of a batch, then ask, then done()."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], SessionRun] = {}
        self._batch: ExchangeBatch | None = None
        self._found: list[SessionRun | None] = []
        self._of_row: Ints = NOTHING

    def clear(self) -> None:
        """Forgets what came before."""
        self._runs.clear()

    def of(self, row: int) -> SessionRun | None:
        """The run that a row of the batch belongs to; None outside a session or without an answer."""
        return self._found[self._of_row[row]] if len(self._of_row) else None

    def proven(self, run: SessionRun, until: int | None = None) -> tuple[int, Reference | None]:
        """Time and place of the last answer before a time (ns) that proves something."""
        count = len(run.times) if until is None else int(np.searchsorted(run.times, until))
        if count and self._batch is not None:
            return int(run.times[count - 1]), answer_of(self._batch, int(run.rows[count - 1]))
        return run.last, run.proof

    def done(self) -> None:
        """Ends the batch."""
        for run in self._found:
            if run is not None:
                if run.held:
                    run.last, run.proof = self.proven(run)
                run.rows = run.times = NOTHING
        self._batch, self._found, self._of_row = None, [], NOTHING

    def add(self, decoded: Decoded, number: int) -> None:
        batch = decoded.batch
        asked, answered = decoded.requests(number), decoded.responses(number)
        self._batch, self._found, self._of_row = batch, [None], np.zeros(len(batch), np.int64)
        if "SessionId" not in asked.columns.fields or not len(answered.rows):
            self.clear()
            return
        at = answered.places(asked.rows)
        session, epoch = number_column(asked.columns, "SessionId"), number_column(asked.columns, "SessionEpoch")
        told = number_column(answered.columns, "SessionId")[at]
        alive = (at >= 0) & (told > 0) & ((told == session) | (epoch == 0))
        alive &= number_column(answered.columns, "ErrorCode")[at] == 0
        proves = alive & (epoch > 0) & (number_column(answered.columns, "ThrottleTimeMs")[at] == 0)
        session = np.where(alive, told, session)
        brokers: dict[str, int] = {}
        broker_of = [brokers.setdefault(connection.ends[1], len(brokers)) for connection in batch.connections]
        broker = np.array(broker_of, np.int64)[batch.connection[asked.rows]]
        order = np.lexsort((batch.time[asked.rows], session, broker))
        order = order[session[order] > 0]
        if not len(order):
            return
        session, broker, epoch, alive = session[order], broker[order], epoch[order], alive[order]
        rows, proves = asked.rows[order], proves[order]
        fresh = (np.diff(session, prepend=-1) != 0) | (np.diff(broker, prepend=-1) != 0)
        wanted = np.where(epoch == LAST_EPOCH, 1, epoch + 1)  # by the fetch that follows
        linked = ~fresh & alive & np.roll(alive, 1) & (epoch == np.roll(wanted, 1))
        starts = np.flatnonzero(~linked)
        names, ends = list(brokers), [*starts[1:].tolist(), len(order)]
        for start, end in zip(starts.tolist(), ends, strict=True):
            key = names[broker[start]], int(session[start])
            known = self._runs.pop(key, None)
            if not alive[start]:
                continue
            if known is None or not fresh[start] or epoch[start] != _after(known.epoch):
                known = SessionRun(0)
            known.epoch = int(epoch[end - 1])
            known.rows = rows[start:end][proves[start:end]]
            known.times = batch.response.time[known.rows]
            if len(self._runs) < MOST:
                self._runs[key] = known
            self._of_row[rows[start:end]] = len(self._found)
            self._found.append(known)


def _after(epoch: int) -> int:
    return 1 if epoch == LAST_EPOCH else epoch + 1


@dataclass(slots=True)
class OffsetsTold:
    """What fetches tell of partitions, each in an element. place: of places, topic and partition; row: of the batch;
    time: of the answer, or of the request that forgets it, ns; stable and high: last stable offset and high watermark,
    or ENDS."""

    places: list[tuple[str, int]]
    place: Ints
    row: Ints
    time: Ints
    stable: Ints
    high: Ints


def offsets_told(decoded: Decoded, number: int) -> OffsetsTold:
    """Of a kind's fetches of a batch."""
    batch, flat = decoded.batch, fetched(decoded, number).answered
    error, stable, high = (flat.values[name] for name in ("ErrorCode", "LastStableOffset", "HighWatermark"))
    told = np.flatnonzero((stable >= 0) | (error != 0))
    names = {name: at for at, name in enumerate(flat.names)}
    row, topic, partition = _forgotten(decoded, decoded.requests(number), names)
    none = np.full(len(row), ENDS)
    topic = np.concatenate((flat.topic[told], topic))
    partition = np.concatenate((flat.values["PartitionIndex"][told], partition))
    wide, topics = int(partition.max(initial=0)) + 1, list(names)
    keys, place = np.unique(topic * wide + partition, return_inverse=True)
    return OffsetsTold(
        [(topics[key // wide], key % wide) for key in keys.tolist()], place, np.concatenate((flat.row[told], row)),
        np.concatenate((batch.response.time[flat.row[told]], batch.time[row])),
        np.concatenate((np.where(error == 0, stable, ENDS)[told], none)),
        np.concatenate((np.where(error == 0, high, ENDS)[told], none)),
    )  # fmt: skip


def _forgotten(decoded: Decoded, asked: Bodies, names: dict[str, int]) -> tuple[Ints, Ints, Ints]:
    """The partitions that requests drop from their session: row of the batch, topic (its number in names, which grows)
    and partition."""
    row, topic, partitions = partitions_of(decoded, asked, "ForgottenTopicsData", names)
    if not isinstance(partitions, Numbers):
        return NOTHING, NOTHING, NOTHING
    return row, topic, partitions.values.astype(np.int64)
