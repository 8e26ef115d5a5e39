"""Batches in the order of time: what began later than a request that is still open waits, so far as memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kwire.session.batch import ExchangeBatch, concatenated

WAITING = 50_000  # exchanges that wait for an older one
WAITING_BYTES = 64 << 20
SMALL = 1 << 20  # bytes of a batch that is joined with others
PIECE = 16 << 20  # bytes from which on a batch is given by itself: joining copies, and so does what is made of a batch


class Order:
    """release(batch, oldest) gives what need not wait any longer."""

    def __init__(self) -> None:
        self._waiting: list[ExchangeBatch] = []  # each in order

    def release(self, batch: ExchangeBatch | None, oldest: int | None) -> list[ExchangeBatch]:
        """batch: what is new; oldest: when the oldest request was sent that is still open, ns, None when none is. Gives
        no batch or one, several where one would be large. What goes on waiting is not copied again."""
        if batch is not None and len(batch):
            self._add(batch.in_order())
        ready, waiting = _split(self._waiting, oldest)
        if sum(map(len, waiting)) > WAITING or sum(len(part.buffer) for part in waiting) > WAITING_BYTES:
            times = np.concatenate([part.time for part in waiting])
            middle = len(times) // 2
            first, waiting = _split(waiting, int(np.partition(times, middle)[middle]) + 1)
            ready += first
        self._waiting = waiting
        return _in_pieces(ready)

    def _add(self, part: ExchangeBatch) -> None:
        """Small parts join those before them that are no larger, so that there are never many."""
        while self._waiting and len(self._waiting[-1]) <= 2 * len(part) and len(self._waiting[-1].buffer) < SMALL:
            part = concatenated((self._waiting.pop(), part)).in_order()
        self._waiting.append(part)


def _in_pieces(parts: list[ExchangeBatch]) -> list[ExchangeBatch]:
    """The rows of all parts in order, as batches that follow each other; parts is empty then."""
    begins = [int(part.time[0]) for part in parts]
    left = sorted(enumerate(parts), key=lambda one: -begins[one[0]])  # the last one begins first
    parts.clear()
    found: list[ExchangeBatch] = []
    joined: list[tuple[int, ExchangeBatch]] = []
    while left:
        joined.append(left.pop())
        if left and sum(len(part.buffer) for _, part in joined) < PIECE:
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
    """What began before end, ns since the epoch, and the rest; None: all of it did. The rest, which may stay long,
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
    """Streams of batches, each in the order of time, as one."""
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
