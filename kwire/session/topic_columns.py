"""Reads topic names from responses, thousands at once.

Structs hold id and name side by side; only the last name of each id and connection is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import numpy as np

from kwire.codec.columnar import Column, Lists, Slices, Structs
from kwire.session.batch import ExchangeBatch
from kwire.session.decoded import bodies_of
from kwire.session.topics import Topics
from kwire.wire import uuids
from kwire.wire.columns import Columns, Ints, repeat

NAMES = ("Name", "TopicName", "Topic")


def learn(topics: Topics, batch: ExchangeBatch) -> None:
    """Adds the topic names in a batch's responses to topics.names."""
    for _, ident, name in names_of(batch):
        topics.names[ident] = name


def names_of(batch: ExchangeBatch) -> Iterator[tuple[int, UUID, str]]:
    """(index into batch.connections, topic id, name) of the responses; a later one replaces an earlier one."""
    response = batch.response
    for number, kind in enumerate(batch.kinds):
        if kind is None or not kind.tells_names:
            continue
        rows = np.flatnonzero((batch.kind == number) & response.there)
        bodies = bodies_of(batch, rows, response)
        yield from _pairs(bodies.columns, batch.connection[bodies.rows], bodies.buffer)


def _pairs(column: Column, owner: Ints, buffer: bytes) -> Iterator[tuple[int, UUID, str]]:
    """The pairs in a column and the columns nested in it. owner: for each value, the index of its connection."""
    if isinstance(column, Lists):
        yield from _pairs(column.flat, repeat(owner, np.diff(column.offsets)), buffer)
    if not isinstance(column, Structs):
        return
    if column.valid is not None:
        owner = owner[column.valid]
    ident = column.fields.get("TopicId")
    name = next((column.fields[field] for field in NAMES if field in column.fields), None)
    if isinstance(ident, Slices) and isinstance(name, Slices) and ident.kind == "uuid" and name.kind == "string":
        yield from _last(ident, name, owner, buffer)
    for inner in column.fields.values():
        yield from _pairs(inner, owner, buffer)


def _last(ident: Slices, name: Slices, owner: Ints, buffer: bytes) -> Iterator[tuple[int, UUID, str]]:
    """For each owner and id, the last name."""
    data = Columns(buffer)
    high, low = data.u64(ident.starts), data.u64(ident.starts + 8)
    there = ((high | low) != 0) & (name.lengths > 0)
    if name.valid is not None:
        there &= name.valid
    rows = np.flatnonzero(there)
    rows = rows[np.lexsort((low[rows], high[rows], owner[rows]))]
    if not len(rows):
        return
    last = np.ones(len(rows), bool)
    last[:-1] = np.any([each[rows[1:]] != each[rows[:-1]] for each in (owner, high, low)], axis=0)
    for row in rows[last].tolist():
        at, begin, size = int(ident.starts[row]), int(name.starts[row]), int(name.lengths[row])
        text = buffer[begin : begin + size].decode("utf-8", "surrogateescape")
        yield int(owner[row]), uuids.from_bytes(buffer[at : at + 16]), text
