"""Records in flight of a share partition: what state each of them is in, batch by batch or offset by offset.

A batch is what was acquired in one go. As long as all of it shares one state, there is one state for the whole; as soon
as a part goes its own way, every offset gets a state of its own (Kafka's InFlightBatch and InFlightState).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

NOBODY = ""


class RecordState(IntEnum):
    """By the numbers that they have in stored state. ACKNOWLEDGED and ARCHIVED are final."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def final(self) -> bool:
        return self >= RecordState.ACKNOWLEDGED


class Acquired(NamedTuple):
    """Offsets first to last, delivered so often, with this one."""

    first: int
    last: int
    deliveries: int


class SavedState(NamedTuple):
    """A state as it was, for taking a change back."""

    state: RecordState
    deliveries: int
    member: str
    lock: int | None


@dataclass(slots=True)
class InFlight:
    """deliveries: so far. lock: when the acquisition ends by itself, ns; None when nobody holds it. moving: the state
    is being stored, and nobody may have the record yet."""

    state: RecordState
    deliveries: int
    member: str = NOBODY
    lock: int | None = None
    moving: bool = False

    @property
    def available(self) -> bool:
        return self.state is RecordState.AVAILABLE and not self.moving

    def save(self) -> SavedState:
        return SavedState(self.state, self.deliveries, self.member, self.lock)

    def restore(self, saved: SavedState) -> None:
        self.state, self.deliveries, self.member, self.lock = saved

    def acquire(self, member: str, lock: int) -> None:
        self.state, self.member, self.lock = RecordState.ACQUIRED, member, lock
        self.deliveries += 1

    def settle(self, state: RecordState, limit: int) -> RecordState:
        """The member is done with it. What would become available again is archived when it was delivered often
        enough."""
        if state is RecordState.AVAILABLE and self.deliveries >= limit:
            state = RecordState.ARCHIVED
        self.state, self.member, self.lock = state, NOBODY, None
        return state

    def archive(self) -> None:
        self.state, self.member, self.lock = RecordState.ARCHIVED, NOBODY, None


class InFlightBatch:
    """Offsets first to last. whole: their common state, None once each has its own in each."""

    __slots__ = ("each", "first", "last", "whole")

    def __init__(self, first: int, last: int, whole: InFlight) -> None:
        self.first, self.last = first, last
        self.whole: InFlight | None = whole
        self.each: list[InFlight] = []

    def __len__(self) -> int:
        return self.last - self.first + 1

    def split(self) -> None:
        """Every offset gets a state of its own."""
        if self.whole is not None:
            state, count, member, lock = self.whole.save()
            self.each = [InFlight(state, count, member, lock) for _ in range(len(self))]
            self.whole = None

    def within(self, first: int, last: int) -> Iterator[tuple[int, InFlight]]:
        """The offsets of a split batch from first to last, with their states."""
        for offset in range(max(first, self.first), min(last, self.last) + 1):
            yield offset, self.each[offset - self.first]

    def pieces(self) -> Iterator[tuple[int, int, InFlight]]:
        """(first, last, state): one piece for the whole, or one for each offset."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        else:
            for offset, state in self.within(self.first, self.last):
                yield offset, offset, state

    def lies_in(self, first: int, last: int) -> bool:
        return self.first >= first and self.last <= last


class Window:
    """The batches in flight, by their first offset; they do not overlap."""

    __slots__ = ("_batches", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return (self._batches[first] for first in tuple(self._firsts))

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._firsts[0]]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[self._firsts[-1]]

    def put(self, batch: InFlightBatch) -> None:
        if batch.first not in self._batches:
            insort(self._firsts, batch.first)
        self._batches[batch.first] = batch

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before offset."""
        at = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[at - 1]] if at else None

    def after(self, offset: int) -> InFlightBatch:
        """The first batch that begins behind offset; there is one."""
        return self._batches[self._firsts[bisect_right(self._firsts, offset)]]

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin from first to last."""
        found = self._firsts[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]
        return [self._batches[key] for key in found]

    def forget_before(self, first: int) -> None:
        """Drops the batches that begin before first."""
        at = bisect_left(self._firsts, first)
        for key in self._firsts[:at]:
            del self._batches[key]
        del self._firsts[:at]

    def clear(self) -> None:
        self._firsts.clear()
        self._batches.clear()
