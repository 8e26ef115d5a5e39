"""Where the time of an exchange goes: waiting behind others on its connection, held by the broker on purpose, or
worked.

A broker answers the requests of a connection one after the other (SocketServer mutes it meanwhile), so that work on one
begins when the answer before it is out. Held are those that a broker keeps until something happens: a Fetch or
ShareFetch until there is enough or MaxWaitMs is over, JoinGroup and SyncGroup until the others are there. What a
request waits for a quota is no work either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.analyze.findings import Reference
from kwire.analyze.throttling import Mutes
from kwire.schema.keys import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    END_TXN,
    FETCH,
    FETCH_SNAPSHOT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    SHARE_FETCH,
    SYNC_GROUP,
    WRITE_TXN_MARKERS,
)  # fmt: skip

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.wire.columns import Ints

REBALANCE = (JOIN_GROUP, SYNC_GROUP)
HELD = (FETCH, SHARE_FETCH, FETCH_SNAPSHOT, *REBALANCE)
HELD_APIS = ("Fetch", "ShareFetch", "FetchSnapshot", "JoinGroup", "SyncGroup")  # the same by name
WAITS = (  # that have a timeout of their own, or wait for other brokers
    CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS, DELETE_RECORDS, ELECT_LEADERS, END_TXN, INIT_PRODUCER_ID,
    WRITE_TXN_MARKERS,
)  # fmt: skip


MOST = 20_000  # connections that are remembered from batch to batch, those that spoke last


class Blocker(NamedTuple):
    """An exchange that others waited for: its API key (-1 if unknown) and name; its answer's name, as "FetchResponse
    v12", packet and time, ns."""

    key: int
    api: str
    name: str
    packet: int
    time: int

    def answer(self, batch: ExchangeBatch, row: int) -> Reference:
        """Where its answer stands; row: one of the same connection."""
        connection = batch.connections[int(batch.connection[row])]
        capture, packet = connection.places.of(self.packet)
        several = connection.places.several
        return Reference(capture or connection.capture, packet, self.time, connection.name, self.name, several)


class LastAnswered(NamedTuple):
    """Of a connection, up to the end of a batch. ready, answered: when the last byte and the first one of the last
    answer came, ns; answers: how many; overlaps: whether a request was sent before the answer to another; blocker: what
    the next request waits for, if it is sent before ready."""

    ready: int
    answered: int
    answers: int
    overlaps: bool
    blocker: Blocker


@dataclass(frozen=True, slots=True)
class Work:
    """Of the rows that have request and answer, by connection, in the order of the answers: behind, ns waited for the
    answer before; work, ns from then on; held: whether the broker may keep the request by its rules; count: exchanges
    on the connection before; overlaps: whether by then a request was sent before the answer to another.

    root: the place of what each waited for, itself if for nothing; carried: of a connection by the place of its first.
    """

    batch: ExchangeBatch
    rows: Ints
    behind: Ints
    work: Ints
    held: NDArray[np.bool_]
    count: Ints
    overlaps: NDArray[np.bool_]
    first: NDArray[np.bool_]
    waited: NDArray[np.bool_]
    root: Ints
    carried: dict[int, LastAnswered]

    def blocker(self, place: int) -> Blocker:
        """The exchange that a waiting one waited for; if that one waited too, the first of the chain."""
        return self.carried[place].blocker if self.first[place] else self._next(place - 1)

    def _next(self, place: int) -> Blocker:
        """The blocker of an exchange that waits for the answer at this place."""
        root = int(self.root[place])
        if self.first[root] and self.waited[root]:
            return self.carried[root].blocker
        row, response = self.rows[root], self.batch.response
        kind = self.batch.kinds[self.batch.kind[row]]
        key, api, name = (-1, "", "") if kind is None else (kind.key, kind.api, kind.names[1])
        return Blocker(key, api, name, int(response.packet[row]), int(response.time[row]))


class Works:
    """of(batch) gives the times of the exchanges of each batch in turn; of connections that go on from a batch before,
    what was answered there counts, however a capture is cut into batches."""

    def __init__(self) -> None:
        self._mutes = Mutes()
        self._known: dict[
            tuple[str, str], LastAnswered
        ] = {}  # by capture and connection, those that spoke last at the end
        self._last: Work | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def of(self, batch: ExchangeBatch) -> Work:
        """Answers captured before their requests (packets out of order, a clock that was set) are left out. The last
        batch may be given again."""
        if self._last is None or self._last.batch is not batch:
            self._last = self._follow(batch)
        return self._last

    def _follow(self, batch: ExchangeBatch) -> Work:
        request, response = batch.request, batch.response
        known = request.there & response.there & (response.time >= request.last_time)
        whole = np.flatnonzero(known & ~batch.token & ~batch.silent)
        rows = whole[np.lexsort((response.time[whole], batch.connection[whole]))]
        asked, answered, ready = request.last_time[rows], response.time[rows], response.last_time[rows]
        connection, places = batch.connection[rows], np.arange(len(rows))
        first = np.diff(connection, prepend=-1) != 0
        begins = np.flatnonzero(first)
        before, count, late = np.roll(ready, 1), np.zeros(len(begins), np.int64), np.zeros(len(begins), bool)
        before[begins] = asked[begins]
        names = [_key(batch, at) for at in connection[begins].tolist()]
        carried: dict[int, LastAnswered] = {}
        if self._known:
            for number, (place, name) in enumerate(zip(begins.tolist(), names, strict=True)):
                found = self._known.get(name)
                if found is not None and found.answered <= answered[place]:
                    carried[place], before[place] = found, found.ready
                    count[number], late[number] = found.answers, found.overlaps
        behind = np.minimum(np.maximum(before - asked, 0), answered - asked)
        work = np.maximum(np.minimum(answered - asked - behind, answered - asked - self._mutes.of(batch)[rows]), 0)
        waited = behind > work
        root = np.maximum.accumulate(np.where(waited & ~first, 0, places)) if len(rows) else places
        held = np.array([kind is not None and kind.key in HELD for kind in batch.kinds], bool)[batch.kind[rows]]
        which = np.cumsum(first) - 1
        overlapped = np.cumsum(behind > 0)
        already = (overlapped - (behind > 0))[begins][which]
        made = Work(
            batch, rows, behind, work, held, places - begins[which] + count[which],
            (overlapped > already) | late[which], first, waited, root, carried,
        )  # fmt: skip
        ends = np.append(begins[1:], len(rows)) - 1 if len(rows) else begins
        columns = (ready[ends], answered[ends], made.count[ends] + 1, made.overlaps[ends], ends)
        for name, until, since, answers, late_, end in zip(names, *(c.tolist() for c in columns), strict=True):
            self._known.pop(name, None)
            self._known[name] = LastAnswered(until, since, answers, late_, made._next(end))
        for name in list(self._known)[: max(len(self._known) - MOST, 0)]:
            del self._known[name]
        return made


def _key(batch: ExchangeBatch, at: int) -> tuple[str, str]:
    connection = batch.connections[at]
    return connection.capture, connection.name
