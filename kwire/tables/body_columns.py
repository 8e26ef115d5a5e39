"""Columns of the table exchanges that come from bodies: waits, acks, isolation level, group, transactional id.

Most of these fields follow others of known length: their offsets are computed for all bodies of a kind at once, and
nothing else is read. Bodies are decoded only for fields that follow arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.codec.columnar import DTYPES, Lists, Numbers, Slices, Structs
from kwire.codec.columnar_values import Messages, decode_messages
from kwire.codec.plan import Slot, StructPlan
from kwire.schema.keys import FETCH, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP
from kwire.session.about_columns import abouts_of, distinct_bodies
from kwire.session.api_versions import Kind
from kwire.session.batch import ExchangeBatch, Side
from kwire.session.topics import Topics
from kwire.tables.arrow import chosen, numbers
from kwire.tables.schemas import Makes
from kwire.wire.columns import Columns, Ints, places_of, tally

Mask = NDArray[np.bool_]
MS = 1_000_000  # ns
ISOLATION = ("read_uncommitted", "read_committed")
GROUP, TRANSACTION = "groupId", "transactionalId"


class BodyColumns:
    """makes: a maker for each of the columns, for all exchanges of a batch."""

    def __init__(self, batch: ExchangeBatch) -> None:
        self._batch, self._data = batch, Columns(batch.buffer)
        self._waits: tuple[Ints, Mask] | None = None
        self._known: dict[bool, list[tuple[Kind, StructPlan, Ints]]] = {}

    @property
    def makes(self) -> Makes:
        batch, request = self._batch, self._batch.request

        def number(name: str, side: Side, kind: pa.DataType) -> pa.Array:
            values, there = self._numbers(name, side)
            return numbers(values, kind, there)

        def throttle() -> pa.Array:
            values, there = self._numbers("ThrottleTimeMs", batch.response)
            return numbers(values * MS, pa.int64(), there)

        def isolation() -> pa.Array:
            values, there = self._numbers("IsolationLevel", request)
            return chosen(ISOLATION, values, pa.string(), there & (values >= 0) & (values < len(ISOLATION)))

        def max_wait() -> pa.Array:
            values, there = self._max_wait()
            return numbers(values, pa.int32(), there)

        return {
            "throttle_ns": throttle, "held_ns": self._held, "acks": partial(number, "Acks", request, pa.int16()),
            "isolation_level": isolation, "max_wait_ms": max_wait,
            "rack": partial(self._texts, lambda slot: slot.name == "RackId"),
            "group": partial(self._texts, lambda slot: slot.field.entity == GROUP, GROUP),
            "transactional_id": partial(self._texts, lambda slot: slot.field.entity == TRANSACTION, TRANSACTION),
        }  # fmt: skip

    def _max_wait(self) -> tuple[Ints, Mask]:
        """Kept here and not by a closure, which would make a circle of references that holds the batch's bytes."""
        if self._waits is None:
            self._waits = self._numbers("MaxWaitMs", self._batch.request)
        return self._waits

    def _kinds(self, side: Side) -> list[tuple[Kind, StructPlan, Ints]]:
        """The kinds that there are, their plans, and the rows whose body there is."""
        batch, answers = self._batch, side is self._batch.response
        if answers in self._known:
            return self._known[answers]
        there = (side.body >= 0) & ~batch.token
        name = "request"
        if answers:
            there, name = there & ~batch.refused, "response"
        found = self._known[answers] = []
        for kind, rows in zip(batch.kinds, places_of(batch.kind, len(batch.kinds)), strict=True):
            rows = rows[there[rows]]
            if kind is not None and kind.supported and len(rows):
                found.append((kind, kind.plan(name).root, rows))
        return found

    def _decoded(self, kind: Kind, side: Side, rows: Ints) -> Messages:
        name, turn = ("response", 1) if side is self._batch.response else ("request", 0)
        starts, ends = side.body[rows], side.end[rows]
        return decode_messages(kind.plan(name), kind.codecs[turn], self._batch.buffer, starts, ends, kind.thresholds)

    def _numbers(self, name: str, side: Side) -> tuple[Ints, Mask]:
        """A number that bodies begin with or hold; and which exchanges have it."""
        values, there = np.zeros(len(self._batch), np.int64), np.zeros(len(self._batch), bool)
        for kind, plan, rows in self._kinds(side):
            slot = _slot(plan, lambda slot: slot.name == name)
            if slot is None or slot.type not in DTYPES or slot.array:
                continue
            at = self._place(plan, slot, side.body[rows])
            if at is None:
                first, of = distinct_bodies(self._batch.buffer, side.body[rows], side.end[rows])
                read = self._decoded(kind, side, rows[first])
                column = read.columns.fields[name]
                assert isinstance(column, Numbers)
                place = (np.cumsum(read.there) - 1)[of]
                found, rows = column.values[place[read.there[of]]], rows[read.there[of]]
            else:
                whole = at + np.dtype(DTYPES[slot.type]).itemsize <= side.end[rows]
                found, rows = self._data.numbers(DTYPES[slot.type], at[whole]), rows[whole]
            values[rows], there[rows] = found, True
        return values, there

    def _place(self, plan: StructPlan, wanted: Slot, at: Ints) -> Ints | None:
        """Where a field begins in bodies that begin at these places; None where arrays lie before it."""
        for slot in plan.slots:
            if slot is wanted:
                return at
            if slot.size is not None:
                at = at + slot.size
            elif slot.type == "string" and not slot.array:
                length, at = self._length(slot, at)
                at = at + np.maximum(length, 0)
            else:
                return None
        return None

    def _length(self, slot: Slot, at: Ints) -> tuple[Ints, Ints]:
        """How long the texts are, below zero where they are null, and where they begin."""
        if not slot.compact:
            length = self._data.u16(at)
            return np.where(length > 0x7FFF, -1, length), at + 2
        length = self._data.u8(at)
        long = length > 127
        length = np.where(long, length - 128 + (self._data.u8(at + 1) << 7), length)
        return length - 1, at + 1 + long

    def _texts(self, wanted: Callable[[Slot], bool], entity: str = "") -> pa.Array:
        """A text of requests, null where it is empty. entity: of what it is the name, where a request may hold several:
        of those the first."""
        batch, side = self._batch, self._batch.request
        known: dict[bytes, int] = {}
        which, within = np.full(len(batch), -1), []
        for kind, plan, rows in self._kinds(side):
            slot = _slot(plan, wanted)
            buffer, starts, lengths = batch.buffer, None, None
            if slot is not None and slot.type == "string" and not slot.array:
                at = self._place(plan, slot, side.body[rows])
                if at is not None:
                    lengths, starts = self._length(slot, at)
                    whole = (lengths > 0) & (starts + lengths <= side.end[rows])
                    starts, lengths, rows = starts[whole], lengths[whole], rows[whole]
                elif not entity:
                    rows = rows[self._speaks(slot, plan, rows)]
                    read = self._decoded(kind, side, rows)
                    column = read.columns.fields[slot.name]
                    assert isinstance(column, Slices)
                    buffer, starts, lengths, rows = read.buffer, column.starts, column.lengths, rows[read.there]
            if starts is not None and lengths is not None:
                ends = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
                which[rows] = [
                    known.setdefault(buffer[low:high], len(known)) if high > low else -1 for low, high in ends
                ]
            elif entity and (slot is not None or _holds(plan, entity) or kind.key == FIND_COORDINATOR):
                within.append(batch.kinds.index(kind))
        if within:
            found = abouts_of(batch, frozenset(within), Topics())
            of = [value.groups if entity == GROUP else value.transactions for value in found.values]
            first = [known.setdefault(names[0].encode("utf-8", "surrogateescape"), len(known)) if names else -1
                     for names in of]  # fmt: skip
            which = np.where(which >= 0, which, np.array(first, np.int64)[found.which])
        if not known:
            return pa.nulls(len(batch), pa.string())
        texts = [name.decode("utf-8", "surrogateescape") for name in known]
        return chosen(texts, which, pa.string(), which >= 0)

    def _speaks(self, slot: Slot, plan: StructPlan, rows: Ints) -> Mask:
        """Mask of the bodies in which this text is not empty, as far as their last bytes tell."""
        if slot is not plan.slots[-1]:
            return np.ones(len(rows), bool)
        last = self._batch.request.end[rows] - 1
        before = self._data.u8(last - 1)
        silent = (self._data.u8(last) == 0) & (before == (1 if plan.flexible else 0))
        return np.asarray(~silent)

    def _held(self) -> pa.Array:
        """The part of the latency that is intended: for an empty Fetch up to MaxWaitMs, for JoinGroup and SyncGroup,
        which wait for other members, all."""
        batch = self._batch
        keys = np.array([-1 if kind is None else kind.key for kind in batch.kinds], np.int64)[batch.kind]
        both = batch.request.there & batch.response.there & (batch.latency > 0)
        held = both & (batch.errors == 0) & ((keys == JOIN_GROUP) | (keys == SYNC_GROUP))
        ns = batch.latency.copy()
        waits, told = self._max_wait()
        long = both & told & (waits > 0) & (keys == FETCH) & (batch.latency * 10 >= waits * (9 * MS))
        for kind, _, rows in self._kinds(batch.response):
            rows = rows[long[rows]]
            if kind.key == FETCH and len(rows):
                read = self._decoded(kind, batch.response, rows)
                empty = rows[read.there][_record_bytes(read.columns) == 0]
                held[empty] = True
                ns[empty] = np.minimum(ns[empty], waits[empty] * MS)
        return numbers(ns, pa.int64(), held)


def _record_bytes(body: Structs) -> Ints:
    """The number of bytes of records in each Fetch response."""
    total = np.zeros(len(body), np.int64)
    topics = body.fields["Responses"]
    if isinstance(topics, Lists) and isinstance(topics.flat, Structs):
        partitions = topics.flat.fields["Partitions"]
        if isinstance(partitions, Lists) and isinstance(partitions.flat, Structs):
            records = partitions.flat.fields["Records"]
            if isinstance(records, Slices):
                owner = np.arange(len(body)).repeat(np.diff(topics.offsets)).repeat(np.diff(partitions.offsets))
                total = tally(owner, records.lengths, len(body)).astype(np.int64)
    return total


def _slot(plan: StructPlan, wanted: Callable[[Slot], bool]) -> Slot | None:
    return next((slot for slot in plan.slots if wanted(slot)), None)


def _holds(plan: StructPlan, entity: str) -> bool:
    return any(
        slot.field.entity == entity or (slot.struct is not None and _holds(slot.struct, entity)) for slot in plan.slots
    )
