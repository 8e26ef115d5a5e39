"""Batches in the order of time: what began later than a request that is still open waits, so far as memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kwire.session.batch import ExchangeBatch, concatenated

WAITING = 50_000  # exchanges that wait for an older one
WAITING_BYTES = 64 << 20


class Order:
    """release(batch, oldest) gives what need not wait any longer."""

    def __init__(self) -> None:
        self._waiting: ExchangeBatch | None = None

    def release(self, batch: ExchangeBatch | None, oldest: int | None) -> list[ExchangeBatch]:
        """batch: what is new; oldest: when the oldest request was sent that is still open, ns, None when none is. Gives
        no batch or one."""
        parts = [part for part in (self._waiting, batch) if part is not None]
        if not parts:
            return []
        ready = concatenated(parts).in_order()
        end = len(ready) if oldest is None else int(np.searchsorted(ready.time, oldest))
        waiting = len(ready) - end
        if waiting > WAITING or (waiting and len(ready.buffer) > WAITING_BYTES):
            end = max(end, len(ready) // 2, 1)
        if end == len(ready):
            self._waiting = None
            return [ready]
        rows = np.arange(len(ready))
        self._waiting = ready.take(rows[end:]).compact()
        return [ready.take(rows[:end])] if end else []


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
