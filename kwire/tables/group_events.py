"""Rows of the table group_events from what the fast path read, a kind at a time.

Which field says what follows its name alone, on whichever side a version has it. A LeaveGroup may name several members:
it is left to be read by itself, being the last of its member.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.codec.columnar import Lists, Numbers, Slices, Structs
from kwire.schema.keys import JOIN_GROUP, LEAVE_GROUP
from kwire.session.decoded import Decoded
from kwire.tables.arrow import slices
from kwire.tables.body_rows import GROUP_TYPES
from kwire.tables.schemas import Makes, record_batch


def rows_of(
    decoded: Decoded, at: int, head: pa.RecordBatch, _: Collection[str], wanted: Collection[str] | None
) -> tuple[list[tuple[str, pa.RecordBatch]], list[int]]:
    """As partitions.rows_of."""
    batch, kind = decoded.batch, decoded.batch.kinds[at]
    assert kind is not None
    key = kind.key
    if key == LEAVE_GROUP:
        return [], np.flatnonzero((batch.kind == at) & batch.request.there).tolist()
    bodies = decoded.of(at)
    if not len(bodies.rows):
        return [], bodies.left.tolist()
    asked, answered, count = bodies.asked, bodies.answered, len(bodies.rows)
    rows = pa.array(bodies.rows)

    def text(*said: tuple[Structs, str]) -> pa.Array:
        """The first that is there, and not empty."""
        found = [column for body, name in said if isinstance(column := body.fields.get(name), Slices)]
        return pc.coalesce(*(_filled(column, batch.buffer) for column in found), pa.nulls(count, pa.string()))

    def number(*said: tuple[Structs, str]) -> pa.Array:
        """The first that the version has."""
        found = [column for body, name in said if isinstance(column := body.fields.get(name), Numbers)]
        return pa.array(found[0].values, pa.int32()) if found else pa.nulls(count, pa.int32())

    def generation() -> pa.Array:
        sides = [(body, name) for body in (answered, asked) for name in ("GenerationId", "MemberEpoch")]
        found = number(*sides)
        return pc.if_else(pc.equal(found, -1), None, found) if key == JOIN_GROUP else found

    makes: Makes = {
        "group": lambda: _text(asked, "GroupId", batch.buffer),
        "group_type": lambda: pa.repeat(pa.scalar(GROUP_TYPES[key]), count),
        "member": lambda: text((answered, "MemberId"), (asked, "MemberId")),
        "instance": lambda: text((asked, "GroupInstanceId"), (asked, "InstanceId")),
        "generation": generation,
        "protocol": lambda: text((answered, "ProtocolName"), (asked, "ProtocolName")),
        "leader": lambda: text((answered, "Leader")),
        "members": lambda: _members(answered, key, count),
        "session_timeout_ms": lambda: number((asked, "SessionTimeoutMs")),
        "rebalance_timeout_ms": lambda: number((asked, "RebalanceTimeoutMs")),
    }  # fmt: skip
    heads = {name: partial(head.column(name).take, rows) for name in head.schema.names}
    return [("group_events", record_batch("group_events", heads | makes, wanted))], bodies.left.tolist()


def _text(body: Structs, name: str, buffer: bytes) -> pa.Array:
    column = body.fields.get(name)
    if not isinstance(column, Slices):
        return pa.nulls(len(body), pa.string())
    return slices(buffer, column.starts, column.lengths, column.valid, pa.string())


def _filled(column: Slices, buffer: bytes) -> pa.Array:
    """Texts; null where they are empty."""
    return slices(buffer, column.starts, column.lengths, column.lengths > 0, pa.string())


def _members(answered: Structs, key: int, count: int) -> pa.Array:
    """How many the leader is told."""
    column = answered.fields.get("Members")
    if key != JOIN_GROUP or not isinstance(column, Lists):
        return pa.nulls(count, pa.int32())
    told = np.diff(column.offsets)
    return pa.array(told, pa.int32(), mask=told == 0)
