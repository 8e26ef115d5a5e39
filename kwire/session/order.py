"""Batches in time order: exchanges that began after a request that is still open wait, as far as memory allows.

Where the capture's clock went back, exchanges before the step come before those after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kwire.session.batch import ExchangeBatch, concatenated

if TYPE_CHECKING:
    from kwire.capture.segmenter import CaptureMoment, ClockStep

WAITING = 50_000  # most exchanges that wait for an older one
WAITING_BYTES = 64 << 20
SMALL = 1 << 20  # bytes; larger batches are not joined with others
PIECE = 16 << 20  # bytes of a batch that is given out: joining copies, and so do consumers


class Order:
    """release(batch, oldest) gives the exchanges that need not wait any longer. steps: where the capture's clock went
    back; what was captured before a step comes first, whatever its time. waiting, held: most exchanges and bytes that
    wait for an older one; piece: bytes of a batch that is given out."""

    def __init__(
        self, steps: Sequence[ClockStep] = (), waiting: int = WAITING, held: int = WAITING_BYTES, piece: int = PIECE
    ) -> None:
        self._steps, self._bounds, self._piece = steps, (waiting, held), piece
        self._waiting: dict[int, list[ExchangeBatch]] = {}  # by era, each part in order

    def release(self, batch: ExchangeBatch | None, oldest: CaptureMoment | None) -> list[ExchangeBatch]:
        """batch: new exchanges; oldest: the moment of the oldest open request, None when none is open. Gives no batch
        or one, several where one would be large or the clock went back. What keeps waiting is not copied again."""
        if batch is not None and len(batch):
            for era, part in self._eras(batch):
                _add(self._waiting.setdefault(era, []), part.in_order())
        ready: list[ExchangeBatch] = []
        for era in sorted(self._waiting):
            if oldest is None or era <= oldest.era:
                end = oldest.time if oldest is not None and era == oldest.era else None
                first, self._waiting[era] = _split(self._waiting[era], end)
                if self._too_much:
                    first += self._half(era)
                ready += _in_pieces(first, self._piece)
            elif self._too_much:
                ready += _in_pieces(self._half(era), self._piece)
            if not self._waiting[era]:
                del self._waiting[era]
        return ready

    def _eras(self, batch: ExchangeBatch) -> Iterator[tuple[int, ExchangeBatch]]:
        """Splits a batch into eras, the times between two steps of the clock."""
        if not self._steps:
            yield 0, batch
            return
        eras = np.searchsorted([step.packet for step in self._steps], batch.packet, "right")
        for era in np.unique(eras).tolist():
            yield era, batch.take(np.flatnonzero(eras == era))

    @property
    def _too_much(self) -> bool:
        parts = [part for era in self._waiting.values() for part in era]
        waiting, held = self._bounds
        return sum(map(len, parts)) > waiting or sum(len(part.buffer) for part in parts) > held

    def _half(self, era: int) -> list[ExchangeBatch]:
        """Takes out the older half of an era's waiting exchanges."""
        if not self._waiting[era]:
            return []
        times = np.concatenate([part.time for part in self._waiting[era]])
        middle = len(times) // 2
        first, self._waiting[era] = _split(self._waiting[era], int(np.partition(times, middle)[middle]) + 1)
        return first


def _add(waiting: list[ExchangeBatch], part: ExchangeBatch) -> None:
    """Adds a part, joined with small ones before it, so that there are never many."""
    while waiting and len(waiting[-1]) <= 2 * len(part) and len(waiting[-1].buffer) < SMALL:
        part = concatenated((waiting.pop(), part)).in_order()
    waiting.append(part)


def _in_pieces(parts: list[ExchangeBatch], size: int) -> list[ExchangeBatch]:
    """The rows of all parts in time order, as consecutive batches of about size bytes; empties parts."""
    begins = [int(part.time[0]) for part in parts]
    left = sorted(enumerate(parts), key=lambda one: -begins[one[0]])  # the last one begins first
    parts.clear()
    found: list[ExchangeBatch] = []
    joined: list[tuple[int, ExchangeBatch]] = []
    while left:
        joined.append(left.pop())
        if left and sum(len(part.buffer) for _, part in joined) < size:
            continue
        joined.sort(key=lambda one: one[0])  # of the same packet what was complete first comes first
        end = begins[left[-1][0]] if left else None
        split = [(number, *_split((part,), end)) for number, part in joined]
        joined = [(number, part) for number, _, rest in split for part in rest]
        ready = [part for _, before, _ in split for part in before]
        del split
        if ready:
            found.append(concatenated(ready).in_order())
    return found


def _split(parts: Sequence[ExchangeBatch], end: int | None) -> tuple[list[ExchangeBatch], list[ExchangeBatch]]:
    """The exchanges that began before end (ns since the epoch, None: all), and the rest, which may stay long and so
    holds its own bytes only."""
    before: list[ExchangeBatch] = []
    rest: list[ExchangeBatch] = []
    for part in parts:
        count = len(part) if end is None else int(np.searchsorted(part.time, end))
        if not 0 < count < len(part):
            (before if count else rest).append(part)
            continue
        rows = np.arange(len(part))
        first = part.take(rows[:count])
        before.append(first if 2 * count >= len(part) else first.compact())
        rest.append(part.take(rows[count:]).compact())
    return before, rest


def merged(streams: Sequence[Iterator[ExchangeBatch]]) -> Iterator[ExchangeBatch]:
    """Merges streams of batches, each in time order."""
    heads = [(next(stream, None), stream) for stream in streams]
    while left := [(head, stream) for head, stream in heads if head is not None]:
        if len(left) == 1:
            yield left[0][0]
            yield from left[0][1]
            return
        limit = min(int(head.time[-1]) for head, _ in left)
        parts, heads = [], []
        for head, stream in left:
            rows = np.arange(len(head))
            end = int(np.searchsorted(head.time, limit, "right"))
            if end:
                parts.append(head.take(rows[:end]))
            heads.append((head.take(rows[end:]) if end < len(head) else next(stream, None), stream))
        yield concatenated(parts).in_order()
