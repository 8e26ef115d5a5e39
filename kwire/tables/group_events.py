"""Rows of the table group_events, one kind (API and version) at a time.

Fields are found by name, in the request or the response, wherever a version has them. A LeaveGroup of several members
has a row for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from kwire.codec.columnar import Lists, Numbers, Slices, Structs
from kwire.schema import keys
from kwire.schema.keys import JOIN_GROUP, LEAVE_GROUP
from kwire.session.decoded import Bodies, Decoded
from kwire.tables.arrow import first_of, numbers, slices, take
from kwire.tables.schemas import Makes, record_batch
from kwire.wire.columns import Ints

GROUP_TYPES = {
    JOIN_GROUP: "classic", keys.HEARTBEAT: "classic", LEAVE_GROUP: "classic", keys.SYNC_GROUP: "classic",
    keys.CONSUMER_GROUP_HEARTBEAT: "consumer", keys.SHARE_GROUP_HEARTBEAT: "share",
    keys.STREAMS_GROUP_HEARTBEAT: "streams",
}  # fmt: skip


def rows_of(
    decoded: Decoded, number: int, head: pa.RecordBatch, _: Collection[str], wanted: Collection[str] | None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Takes and gives the same as partitions.rows_of."""
    kind = decoded.batch.kinds[number]
    assert kind is not None
    key, rows = kind.key, decoded.rows(number)
    if not len(rows):
        return
    asked, answered = (_Side(bodies, rows) for bodies in (decoded.requests(number), decoded.responses(number)))

    def text(*said: tuple[_Side, str]) -> pa.Array:
        """For each row the first text that is neither null nor empty."""
        return first_of(*(side.text(name, empty=False) for side, name in said))

    def count(*said: tuple[_Side, str], unknown: int | None = None) -> pa.Array:
        """For each row the first number that is not null."""
        return first_of(*(side.number(name, unknown) for side, name in said))

    def generation() -> pa.Array:
        said = ((side, name) for side in (answered, asked) for name in ("GenerationId", "MemberEpoch"))
        return count(*said, unknown=-1 if key == JOIN_GROUP else None)

    makes: Makes = {name: partial(take, head.column(name), rows) for name in head.schema.names} | {
        "group": lambda: asked.text("GroupId"),
        "group_type": lambda: pa.repeat(pa.scalar(GROUP_TYPES[key]), len(rows)),
        "member": lambda: text((answered, "MemberId"), (asked, "MemberId")),
        "instance": lambda: text((asked, "GroupInstanceId"), (asked, "InstanceId")),
        "generation": generation,
        "protocol": lambda: text((answered, "ProtocolName"), (asked, "ProtocolName")),
        "leader": lambda: text((answered, "Leader")),
        "members": lambda: answered.counts("Members") if key == JOIN_GROUP else pa.nulls(len(rows), pa.int32()),
        "session_timeout_ms": lambda: count((asked, "SessionTimeoutMs")),
        "rebalance_timeout_ms": lambda: count((asked, "RebalanceTimeoutMs")),
    }  # fmt: skip
    if key == LEAVE_GROUP and "Members" in asked.bodies.columns.fields:
        makes = _leaving(makes, asked)
    yield "group_events", record_batch("group_events", makes, wanted)


@dataclass(frozen=True, slots=True)
class _Side:
    """Columns of one side of these rows; null where there is no body."""

    bodies: Bodies
    rows: Ints

    def _taken(self, found: pa.Array) -> pa.Array:
        if len(self.bodies.rows) == len(self.rows):
            return found
        places = self.bodies.places(self.rows)
        return take(found, places, places >= 0)

    def text(self, name: str, empty: bool = True) -> pa.Array:
        """A text column. empty: keep empty texts, else they are null."""
        column = self.bodies.columns.fields.get(name)
        if not isinstance(column, Slices):
            return pa.nulls(len(self.rows), pa.string())
        valid = column.valid if empty else column.lengths > 0
        return self._taken(slices(self.bodies.buffer, column.starts, column.lengths, valid, pa.string()))

    def number(self, name: str, unknown: int | None = None) -> pa.Array:
        """An int32 column. unknown: a value that means null."""
        column = self.bodies.columns.fields.get(name)
        if not isinstance(column, Numbers):
            return pa.nulls(len(self.rows), pa.int32())
        return self._taken(numbers(column.values, pa.int32(), None if unknown is None else column.values != unknown))

    def counts(self, name: str) -> pa.Array:
        """The number of elements of an array; null where it is 0."""
        column = self.bodies.columns.fields.get(name)
        if not isinstance(column, Lists):
            return pa.nulls(len(self.rows), pa.int32())
        counts = np.diff(column.offsets)
        return self._taken(numbers(counts, pa.int32(), counts > 0))


def _leaving(makes: Makes, asked: _Side) -> Makes:
    """The same columns with a row for each member in the request."""
    members = asked.bodies.columns.fields["Members"]
    assert isinstance(members, Lists)
    assert isinstance(members.flat, Structs)
    flat, places = members.flat, asked.bodies.places(asked.rows)
    counts = np.append(np.diff(members.offsets), 0)[places]  # the last one where there is no body
    which = np.arange(len(counts)).repeat(np.maximum(counts, 1))
    named = counts[which] > 0
    begins = np.append(members.offsets[:-1], 0)[places] - (np.cumsum(counts) - counts)
    member = np.where(named, np.cumsum(named) - 1 + begins[which], -1)
    out: Makes = {name: lambda make=make: take(make(), which) for name, make in makes.items()}  # type: ignore[misc]

    def text(name: str, empty: bool) -> pa.Array:
        column = flat.fields.get(name)
        if not isinstance(column, Slices):
            return pa.nulls(len(which), pa.string())
        valid = column.valid if empty else column.lengths > 0
        found = slices(asked.bodies.buffer, column.starts, column.lengths, valid, pa.string())
        return take(found, member, member >= 0)

    return out | {"member": lambda: text("MemberId", False), "instance": lambda: text("GroupInstanceId", True)}
