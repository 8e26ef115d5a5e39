"""Where the time of an exchange goes: waiting behind others on its connection, held by the broker on purpose, or
worked.

A broker answers the requests of a connection one after the other (SocketServer mutes it meanwhile), so that work on one
begins when the answer before it is out. Held are those that a broker keeps until something happens: a Fetch or
ShareFetch until there is enough or MaxWaitMs is over, JoinGroup and SyncGroup until the others are there. What a
request waits for a quota is no work either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.analyze.throttling import muted
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


class Work(NamedTuple):
    """Of the rows that have request and answer: behind, ns waited for the answer before; work, ns from then on; before:
    the row whose answer was waited for, -1 for none; held: whether the broker may keep the request by its rules."""

    rows: Ints
    behind: Ints
    work: Ints
    before: Ints
    held: NDArray[np.bool_]


@lru_cache(2)
def work_of(batch: ExchangeBatch) -> Work:
    """The times of a batch's exchanges; without those that stand before their requests, as packets out of order and a
    clock that is set have them. Connections that go on from the batch before begin anew: their first rows in
    a batch count as having waited for nobody."""
    request, response = batch.request, batch.response
    known = request.there & response.there & (response.time >= request.last_time)
    whole = np.flatnonzero(known & ~batch.token & ~batch.silent)
    order = whole[np.lexsort((response.time[whole], batch.connection[whole]))]
    asked, answered = request.last_time[order], response.time[order]
    ready = response.last_time[order]
    same = np.zeros(len(order), bool)
    same[1:] = batch.connection[order[1:]] == batch.connection[order[:-1]]
    previous = np.zeros(len(order), np.int64)
    previous[1:] = ready[:-1]
    behind = np.where(same, np.maximum(previous - asked, 0), 0)
    behind = np.minimum(behind, np.maximum(answered - asked, 0))
    before = np.full(len(order), -1, np.int64)
    before[1:] = order[:-1]
    held = np.array([kind is not None and kind.key in HELD for kind in batch.kinds], bool)[batch.kind[order]]
    work = np.minimum(answered - asked - behind, answered - asked - muted(batch)[order])
    return Work(order, behind, np.maximum(work, 0), np.where(behind > 0, before, -1), held)
