"""Bodies of a batch, a kind at a time, as columns; each kind is decoded once, when it is asked for.

Exchanges of which the columnar codec leaves a body alone, and kinds of which there are few, are named instead: they are
read one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.codec.columnar import Structs, decode_columns
from kwire.session.batch import ExchangeBatch, Side
from kwire.wire.columns import Columns

Ints = NDArray[np.int64]
FEW = 24  # exchanges up to which columns are not worth it
ROUNDS = 3  # of decoding both sides, until both have the same exchanges


class Bodies(NamedTuple):
    """Requests and responses, row by row, of the exchanges rows of the batch; left: the kind's other exchanges."""

    rows: Ints
    asked: Structs
    answered: Structs
    left: Ints


class Decoded:
    """of(kind) gives the bodies of a kind, by its number in the batch; data: the buffer's numbers."""

    def __init__(self, batch: ExchangeBatch) -> None:
        self.batch, self.data = batch, Columns(batch.buffer)
        self._known: dict[int, Bodies] = {}

    def of(self, number: int) -> Bodies:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._decode(number)
        return known

    def _decode(self, number: int) -> Bodies:
        batch = self.batch
        every = np.flatnonzero((batch.kind == number) & batch.request.there)
        fine = batch.whole[every]
        for _ in range(ROUNDS if np.count_nonzero(fine) > FEW else 0):
            rows = every[fine]
            answered, good = self._side(number, rows, batch.response)
            fine[fine] = good
            asked, also = self._side(number, rows[good], batch.request)
            fine[fine] = also
            if also.all():
                return Bodies(every[fine], asked, answered, every[~fine])
        return Bodies(every[:0], Structs({}, 0), Structs({}, 0), every)

    def _side(self, number: int, rows: Ints, side: Side) -> tuple[Structs, NDArray[np.bool_]]:
        kind = self.batch.kinds[number]
        assert kind is not None
        plan = kind.plan("response" if side is self.batch.response else "request")
        return decode_columns(plan, self.batch.buffer, side.body[rows], side.end[rows])
