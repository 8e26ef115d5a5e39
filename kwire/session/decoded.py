"""Bodies of a batch as columns: all of one kind and side are decoded together, on demand and once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kwire.codec.columnar import Structs
from kwire.codec.columnar_values import decode_messages
from kwire.session.batch import ExchangeBatch, Side
from kwire.wire.columns import Ints


class Bodies(NamedTuple):
    """columns: the bodies that can be decoded; rows: for each body its row in the batch, ascending; buffer: the bytes
    that the columns' offsets refer to."""

    columns: Structs
    rows: Ints
    buffer: bytes

    def places(self, rows: Ints) -> Ints:
        """For each of these rows of the batch (ascending) the index of its body, -1 where there is none."""
        at = np.searchsorted(self.rows, rows)
        at[at == len(self.rows)] = 0
        return np.where(self.rows[at] == rows, at, -1) if len(self.rows) else np.full(len(rows), -1)


class Decoded:
    """requests(kind) and responses(kind) give the bodies of the exchanges that have a request. kind: an index into
    batch.kinds."""

    def __init__(self, batch: ExchangeBatch) -> None:
        self.batch = batch
        self._known: dict[tuple[int, bool], Bodies] = {}

    def kinds(self, key: int) -> list[int]:
        """The indexes into batch.kinds of all versions of an API."""
        return [number for number, kind in enumerate(self.batch.kinds) if kind is not None and kind.key == key]

    def rows(self, number: int) -> Ints:
        """The rows of a kind that have a request, decodable or not."""
        return np.flatnonzero((self.batch.kind == number) & self.batch.request.there)

    def requests(self, number: int) -> Bodies:
        return self._of(number, False)

    def responses(self, number: int) -> Bodies:
        return self._of(number, True)

    def _of(self, number: int, response: bool) -> Bodies:
        known = self._known.get((number, response))
        if known is None:
            side = self.batch.response if response else self.batch.request
            known = self._known[number, response] = bodies_of(self.batch, self.rows(number), side)
        return known


def bodies_of(batch: ExchangeBatch, rows: Ints, side: Side) -> Bodies:
    """The bodies of one side (batch.request or batch.response) of rows of one kind."""
    kind = batch.kinds[batch.kind[rows[0]]] if len(rows) else None
    rows = rows[(side.body[rows] >= 0) & ~batch.token[rows]]
    if side is batch.response:
        rows = rows[~batch.refused[rows]]
    if kind is None or not kind.supported or not len(rows):
        return Bodies(Structs({}, 0), rows[:0], batch.buffer)
    name, turn = ("response", 1) if side is batch.response else ("request", 0)
    read = decode_messages(
        kind.plan(name), kind.codecs[turn], batch.buffer, side.body[rows], side.end[rows], kind.thresholds
    )
    return Bodies(read.columns, rows[read.there], read.buffer)
