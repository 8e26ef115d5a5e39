"""When brokers throttled connections, from ThrottleTimeMs of all answers, and what clients asked meanwhile.

A broker answers a request that breaks a quota at once and says how long it will not listen (KIP-219); a client of these
versions waits by itself. Before, the broker kept the answer back. Read in columns: of most answers the field stands
first, of Produce last.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kwire.analyze.findings import Reference
from kwire.schema import keys
from kwire.wire.columns import Columns, Ints

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.batch import ExchangeBatch

FIELD = "ThrottleTimeMs"
MS = 1_000_000
MOST_LINES, MOST_WINDOWS = 10_000, 64  # throttled connections that are remembered from batch to batch; times of each
WAITING = {  # the first versions at which a client waits by itself (AbstractResponse.shouldClientThrottle); else 0
    keys.PRODUCE: 6, keys.FETCH: 8, keys.LIST_OFFSETS: 3, keys.METADATA: 6, keys.OFFSET_COMMIT: 4, keys.OFFSET_FETCH: 4,
    keys.FIND_COORDINATOR: 2, keys.JOIN_GROUP: 3, keys.HEARTBEAT: 2, keys.LEAVE_GROUP: 2, keys.SYNC_GROUP: 2,
    keys.DESCRIBE_GROUPS: 2, keys.LIST_GROUPS: 2, keys.API_VERSIONS: 2, keys.CREATE_TOPICS: 3, keys.DELETE_TOPICS: 2,
    keys.DELETE_RECORDS: 1, keys.INIT_PRODUCER_ID: 1, keys.ADD_PARTITIONS_TO_TXN: 1, keys.ADD_OFFSETS_TO_TXN: 1,
    keys.END_TXN: 1, keys.TXN_OFFSET_COMMIT: 1, keys.DESCRIBE_ACLS: 1, keys.CREATE_ACLS: 1, keys.DELETE_ACLS: 1,
    keys.DESCRIBE_CONFIGS: 2, keys.ALTER_CONFIGS: 1, keys.ALTER_REPLICA_LOG_DIRS: 1, keys.DESCRIBE_LOG_DIRS: 1,
    keys.CREATE_PARTITIONS: 1, keys.CREATE_DELEGATION_TOKEN: 1, keys.RENEW_DELEGATION_TOKEN: 1,
    keys.EXPIRE_DELEGATION_TOKEN: 1, keys.DESCRIBE_DELEGATION_TOKEN: 1, keys.DELETE_GROUPS: 1,
}  # fmt: skip


class Throttle(NamedTuple):
    """A row of a batch whose answer says that its client is throttled, ms; waits: whether the client should."""

    row: int
    ms: int
    waits: bool


@lru_cache(2)
def throttles(batch: ExchangeBatch) -> tuple[Throttle, ...]:
    """The rows with a throttle time, in the order of the kinds."""
    return tuple(_throttles(batch))


def _throttles(batch: ExchangeBatch) -> Iterator[Throttle]:
    data = Columns(batch.buffer)
    response = batch.response
    fine = response.there & (response.body >= 0) & ((response.quality == 0) | (response.quality == 1)) & ~batch.refused
    for number, kind in enumerate(batch.kinds):
        if kind is None or not kind.supported or kind.response is None:
            continue
        rows = np.flatnonzero((batch.kind == number) & fine)
        rows = rows[response.end[rows] - response.body[rows] >= 4]
        if not len(rows):
            continue
        waits = kind.version >= WAITING.get(kind.key, 0)
        for row, ms in _of_kind(batch, kind, rows, data):
            yield Throttle(row, ms, waits)


def _of_kind(
    batch: ExchangeBatch, kind: Kind, rows: Ints, data: Columns
) -> Iterator[tuple[int, int]]:  # fmt: skip
    response, slots = batch.response, kind.plan("response").root.slots
    if slots and slots[0].name == FIELD:
        places = response.body[rows]
    elif any(slot.name == FIELD for slot in slots):
        plain = np.zeros(len(rows), bool)
        if kind.key == keys.PRODUCE:  # the last four bytes, where no tagged fields follow
            flexible = kind.plan("response").flexible
            places = response.end[rows] - 4 - flexible
            plain = (batch.errors[rows] == 0) & (response.quality[rows] == 0)
            plain &= (data.u8(response.end[rows] - 1) == 0) | (not flexible)
            places = places[plain]
        known: dict[bytes, int] = {}  # by answer: those to ApiVersions are all alike
        for row in rows[~plain].tolist():
            said = bytes(batch.buffer[response.body[row] : response.end[row]])
            if said not in known:
                body = (message.body() if (message := batch[row].response) is not None else None) or {}
                known[said] = body.get(FIELD, 0)
            if known[said] > 0:
                yield row, known[said]
        rows = rows[plain]
        if not len(rows):
            return
    else:
        return
    found = data.numbers(">i4", places)
    for at in np.flatnonzero(found > 0).tolist():
        yield int(rows[at]), int(found[at])


class Mutes:
    """of(batch) gives, of each exchange, ns that it waited for a quota: the broker did not listen to its connection, as
    an answer before it said, in this batch or one before, or kept the answer back itself (versions before KIP-219)."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], list[tuple[int, int]]] = {}  # by capture and connection

    def of(self, batch: ExchangeBatch) -> Ints:
        out, request, response = np.zeros(len(batch), np.int64), batch.request, batch.response
        windows: dict[int, list[tuple[int, int]]] = {}
        for at, connection in enumerate(batch.connections if self._open else ()):
            if before := self._open.get((connection.capture, connection.name)):
                windows[at] = before
        for row, ms, waits in throttles(batch):
            end = int(response.time[row])
            if waits:
                windows.setdefault(int(batch.connection[row]), []).append((end, end + ms * MS))
            else:
                out[row] = ms * MS
        if windows:
            paired = request.there & response.there & ~batch.token
            rows = np.flatnonzero(np.isin(batch.connection, list(windows)) & paired)
            rows = rows[np.argsort(batch.connection[rows], kind="stable")]
            for part in np.split(rows, np.flatnonzero(np.diff(batch.connection[rows])) + 1):
                if len(part):
                    spans = np.array(sorted(windows[int(batch.connection[part[0]])]), np.int64)
                    before_, after = (_within(spans, side[part]) for side in (request.last_time, response.time))
                    out[part] += np.maximum(after - before_, 0)
            self._keep(batch, windows)
        return np.minimum(out, np.maximum(batch.latency, 0))

    def _keep(self, batch: ExchangeBatch, windows: dict[int, list[tuple[int, int]]]) -> None:
        """Remembers each connection's newest throttle, which exchanges of later batches may have waited for."""
        for at, spans in windows.items():
            connection = batch.connections[at]
            key = connection.capture, connection.name
            self._open.pop(key, None)
            self._open[key] = sorted(spans)[-MOST_WINDOWS:]
        for key in list(self._open)[: max(len(self._open) - MOST_LINES, 0)]:
            del self._open[key]


def _within(spans: Ints, times: Ints) -> Ints:
    """How much of these ordered spans lies before each time; overlaps count once."""
    ends = np.maximum.accumulate(spans[:, 1])
    begins = np.maximum(spans[:, 0], np.concatenate((spans[:1, 0], ends[:-1])))
    lengths = np.maximum(ends - begins, 0)
    total = np.concatenate(([0], np.cumsum(lengths)))
    at = np.searchsorted(begins, times, "right")
    last = np.maximum(at - 1, 0)
    return np.where(at > 0, total[last] + np.clip(times - begins[last], 0, lengths[last]), 0)


def proof_of(batch: ExchangeBatch, row: int) -> Reference:
    """The answer of a row."""
    message = batch[row].response
    assert message is not None
    return Reference.of(message)
