"""Topic names out of responses that the fast path read: those of thousands of responses at once.

Ids and names stand side by side in structs; of each connection's ids only the last name is made a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import numpy as np

from kwire.codec.columnar import Column, Lists, Slices, Structs, decode_columns
from kwire.session.bulk import Batch
from kwire.session.kinds import Kind
from kwire.session.single import exchange_at
from kwire.session.topics import Topics
from kwire.wire import uuids
from kwire.wire.columns import Columns, Ints

FEW = 8  # responses that are not worth columns
NAMES = ("Name", "TopicName", "Topic")


class Ahead:
    """A sink that looks for names alone: nothing comes of what the fast path reads, the reader learns from it."""

    scans = False

    def batch(self, _: Batch) -> tuple[()]:
        return ()

    def accepts(self, _: Kind) -> bool:
        return True


def learn(topics: Topics, batch: Batch) -> None:
    """As Topics.learn of each exchange."""
    for _, ident, name in told(batch):
        topics.names[ident] = name


def told(batch: Batch) -> Iterator[tuple[int, UUID, str]]:
    """The names that responses tell: which of the batch's conversations, the id, the name; the last ones last."""
    for number, kind in enumerate(batch.kinds):
        rows = np.flatnonzero(batch.kind == number) if kind.tells_names else ()
        if not len(rows):
            continue
        fine = np.zeros(len(rows), bool)
        if len(rows) >= FEW:
            ends = batch.response.start[rows] + batch.response.size[rows] + 4
            columns, fine = decode_columns(kind.plan("response"), batch.buffer, batch.answered[rows], ends)
            yield from _pairs(columns, batch.conversation[rows[fine]], batch.buffer)
        for row in rows[~fine].tolist():
            learned = Topics()
            learned.learn(exchange_at(batch, row))
            for ident, name in learned.names.items():
                yield int(batch.conversation[row]), ident, name


def _pairs(column: Column, owner: Ints, buffer: bytes) -> Iterator[tuple[int, UUID, str]]:
    """Those of a column and all that it holds. owner: whose each of its values is."""
    if isinstance(column, Lists):
        yield from _pairs(column.flat, np.repeat(owner, np.diff(column.offsets)), buffer)
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
    """Of each owner's ids the last name."""
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
