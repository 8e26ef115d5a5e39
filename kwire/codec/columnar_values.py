"""Many messages of one version to columns, every one of them: what the columnar codec leaves alone comes from the
values codec, in its place.

Left alone are messages with tagged fields, with arrays much longer than there are messages, and few messages, which are
not worth columns. Their texts are laid behind the buffer's bytes, so that all slices count in one buffer.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.codec.columnar import DTYPES, Column, Lists, Numbers, Slices, Structs, decode_columns, joined
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.codec.values import Codec
from kwire.errors import DecodeError
from kwire.wire.columns import Ints, repeat

Mask = NDArray[np.bool_]


class Messages(NamedTuple):
    """columns: of the messages that could be decoded, in their order; there: which these are; buffer: what the columns'
    offsets count in. Tagged fields are not among the columns."""

    columns: Structs
    there: Mask
    buffer: bytes


def decode_messages(
    plan: Plan, codec: Codec, buffer: bytes, starts: Ints, ends: Ints, thresholds: Thresholds = DEFAULT
) -> Messages:
    """The messages that lie in buffer from starts to ends; few of them are left to the values codec."""
    if len(starts) > thresholds.bodies:
        columns, fine = decode_columns(plan, buffer, starts, ends, thresholds)
        if fine.all():
            return Messages(columns, fine, buffer)
    else:
        fine = np.zeros(len(starts), bool)
    texts = _Texts(len(buffer) if fine.any() else 0)
    parts, there = _read_singly(plan, codec, buffer, starts, ends, fine, texts, thresholds.values)
    if not fine.any():
        return Messages(parts, there, texts.bytes)
    both = joined([columns, parts])
    by_columns = fine[there]
    order = np.empty(len(by_columns), np.int64)
    order[by_columns] = np.arange(len(columns))
    order[~by_columns] = len(columns) + np.arange(len(parts))
    taken = take(both, order)
    assert isinstance(taken, Structs)
    return Messages(taken, there, buffer + texts.bytes if texts.parts else buffer)


def _read_singly(
    plan: Plan, codec: Codec, buffer: bytes, starts: Ints, ends: Ints, fine: Mask, texts: _Texts, most: int
) -> tuple[Structs, Mask]:
    """Those that are not fine yet, so many bytes at most at a time, since values take many times the room of columns;
    and which can be read at all."""
    there, values, size = fine.copy(), [], 0
    parts = []
    for row in np.flatnonzero(~fine).tolist():
        data = buffer[starts[row] : ends[row]]
        try:
            values.append(codec.decode_at(data, 0)[0])
        except DecodeError:
            continue
        there[row] = True
        size += len(data)
        if size > most:
            parts.append(texts.structs(plan.root, values))
            values, size = [], 0
    parts.append(texts.structs(plan.root, values))
    made = joined(parts) if len(parts) > 1 else parts[0]
    assert isinstance(made, Structs)
    return made, there


def take(column: Column, rows: Ints) -> Column:
    """These rows of a column."""
    if isinstance(column, Numbers):
        return Numbers(column.values[rows])
    valid = None if column.valid is None else column.valid[rows]
    if isinstance(column, Slices):
        return Slices(column.kind, column.starts[rows], column.lengths[rows], valid)
    if isinstance(column, Lists):
        begin, counts = column.offsets[:-1][rows], np.diff(column.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        places = repeat(begin - offsets[:-1], counts) + np.arange(offsets[-1])
        return Lists(offsets, take(column.flat, places), valid)
    if column.valid is not None:
        rows = (np.cumsum(column.valid) - 1)[rows[column.valid[rows]]]
    return Structs({name: take(inner, rows) for name, inner in column.fields.items()}, len(rows), valid)


class _Texts:
    """Makes columns of values; the bytes of texts are collected, of which the first lies at base."""

    def __init__(self, base: int) -> None:
        self.parts: list[bytes] = []
        self._end = base

    @property
    def bytes(self) -> bytes:
        return b"".join(self.parts)

    def structs(self, plan: StructPlan, rows: list[Any]) -> Structs:
        """A struct's columns of these dicts."""
        return Structs(
            {slot.name: self._column(slot, [row[slot.name] for row in rows]) for slot in plan.slots}, len(rows)
        )

    def _column(self, slot: Slot, values: list[Any]) -> Column:
        if not slot.array:
            return self._values(slot, values)
        lists = [value or () for value in values]
        offsets = np.array([0, *accumulate(map(len, lists))], np.int64)
        flat = self._values(slot._replace(nullable=False), list(chain.from_iterable(lists)))
        return Lists(offsets, flat, _valid(values))

    def _values(self, slot: Slot, values: list[Any]) -> Column:
        if slot.struct is not None:
            if not slot.nullable:
                return self.structs(slot.struct, values)
            inner = self.structs(slot.struct, [value for value in values if value is not None])
            return Structs(inner.fields, inner.count, np.array([value is not None for value in values], bool))
        if slot.type in DTYPES:
            return Numbers(np.array(values, np.dtype(DTYPES[slot.type]).newbyteorder("=")))
        if slot.type == "uuid":
            raw = [value.bytes for value in values]
        elif slot.type == "string":
            raw = [b"" if value is None else value.encode("utf-8", "surrogateescape") for value in values]
        else:
            raw = [value or b"" for value in values]
        lengths = np.array([len(each) for each in raw], np.int64)
        starts = self._end + np.cumsum(lengths) - lengths
        self.parts += raw
        self._end += int(lengths.sum())
        return Slices(slot.type, starts, lengths, _valid(values))


def _valid(values: list[Any]) -> Mask | None:
    """Which are not null; None when all are."""
    there = [value is not None for value in values]
    return None if all(there) else np.array(there, bool)
