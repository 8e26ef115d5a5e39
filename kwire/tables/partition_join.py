"""Joins request and response rows of the same partition in the same exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.codec.columnar import Numbers
from kwire.tables.arrow import numbers
from kwire.tables.partition_columns import NamedPartitions
from kwire.wire.columns import Ints

Mask = NDArray[np.bool_]
MOST_KEYS = 1 << 62  # keys must fit into an int64


@dataclass(frozen=True, slots=True, eq=False)
class JoinedPartitions:
    """Partitions, one row each: owner, group, topic and number as in NamedPartitions; at: for requests and responses,
    the row in sides, -1 where there is none; rows: the reverse, for each row of a side its row here."""

    sides: tuple[NamedPartitions, NamedPartitions]
    owner: Ints
    group: Ints
    topic: Ints
    number: Ints
    at: tuple[Ints, Ints]
    rows: tuple[Ints, Ints]

    def __len__(self) -> int:
        return len(self.owner)

    def field(self, turn: int, name: str, unknown: int | None = None) -> tuple[NDArray[Any], Mask]:
        """A numeric field of requests (turn 0) or responses (1), and a mask of where it is set. unknown: a value that
        means null."""
        side = self.sides[turn]
        column = side.fields.get(name)
        if not isinstance(column, Numbers):
            return self.spread(turn, np.zeros(0, np.int64))
        values = column.values[side.places]
        return self.spread(turn, values, None if unknown is None else values != unknown)

    def spread(self, turn: int, values: NDArray[Any], valid: Mask | None = None) -> tuple[NDArray[Any], Mask]:
        """Values of one side's rows brought to the joined rows, and a mask of where there are some."""
        if not len(values):
            return np.zeros(len(self), np.int64), np.zeros(len(self), bool)
        at = self.at[turn]
        return values[at], at >= 0 if valid is None else (at >= 0) & valid[at]

    def numbers(self, turn: int, name: str, kind: pa.DataType, unknown: int | None = None) -> pa.Array:
        """field() as an Arrow array."""
        values, there = self.field(turn, name, unknown)
        return numbers(values, kind, there)

    def taken(self, turn: int, values: NDArray[Any], kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
        """spread() as an Arrow array."""
        found, there = self.spread(turn, values, valid)
        return numbers(found, kind, there)

    @property
    def ident(self) -> Ints:
        """The number of the topic id: the request's if it has one, else the response's."""
        first, second = (np.append(side.ident, -1)[at] for side, at in zip(self.sides, self.at, strict=True))
        return np.where(first >= 0, first, second)


def join(sides: tuple[NamedPartitions, NamedPartitions], most: int = MOST_KEYS) -> JoinedPartitions:
    """Joins by exchange, group, topic and partition, in the order of exchanges. A partition that an exchange names n
    times has n rows, matched in order. most: bound of the combined integer keys."""
    names = "owner", "group", "topic", "number"
    columns = [np.concatenate([getattr(side, name) for side in sides]) for name in names]
    keys = _keys(most, *columns)
    count = len(sides[0])
    if any(len(np.unique(part)) < len(part) for part in (keys[:count], keys[count:])):
        keys = _keys(most, *columns, np.concatenate([_times(keys[:count]), _times(keys[count:])]))
    _, first, key = np.unique(keys, return_index=True, return_inverse=True)
    rows = key[:count], key[count:]
    at = []
    for mine in rows:
        found = np.full(len(first), -1)
        found[mine] = np.arange(len(mine))
        at.append(found)
    owner, group, topic, number = (column[first] for column in columns)
    return JoinedPartitions(sides, owner, group, topic, number, (at[0], at[1]), rows)


def _times(keys: Ints) -> Ints:
    """For each key the number of equal keys before it."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    begins = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])[: len(keys)])
    out = np.empty(len(keys), np.int64)
    out[order] = np.arange(len(keys)) - begins.repeat(np.diff(np.append(begins, len(keys))))
    return out


def _keys(limit: int, *columns: Ints) -> Ints:
    """Combines columns into one integer key per row, ordered by the first column, then the second, and so on."""
    keys, most = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        size = int(column.max(initial=0)) - low + 1
        if most * size > limit:
            keys = np.unique(keys, return_inverse=True)[1]
            most = int(keys.max(initial=0)) + 1
        keys, most = keys * size + column - low, most * size
    return keys
