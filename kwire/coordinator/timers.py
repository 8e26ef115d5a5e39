"""Deadlines by key: a heap that is corrected when it is looked at, not when a deadline moves.

A heartbeat only writes its member's new deadline down. The key's entry in the heap stays where it is; when its time
comes, it goes back with the deadline of that moment. So a member costs one heap operation per session timeout, however
often it beats. tests/bench/coordinator.py has Kafka's hierarchical wheel beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

SLACK = 64  # entries that nobody wants any more are swept out when they outnumber the others by so many


class Key(NamedTuple):
    """What waits: the kind of operation, the group, and the member ("" for what concerns the group as a whole)."""

    kind: str
    group: str
    member: str = ""


class Deadline:
    """A key's deadline (None: forgotten) and the time under which it lies in the heap."""

    __slots__ = ("deadline", "key", "queued")

    def __init__(self, key: Key, deadline: int) -> None:
        self.key = key
        self.deadline: int | None = deadline
        self.queued = deadline


class Timers:
    """At most one deadline per key, ns. Equal deadlines come out in the order in which they were queued."""

    def __init__(self) -> None:
        self._entries: dict[Key, Deadline] = {}
        self._heap: list[tuple[int, int, Deadline]] = []
        self._queued = 0  # how many entries ever went into the heap

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._entries))

    def get(self, key: Key) -> int | None:
        """The key's deadline."""
        entry = self._entries.get(key)
        return None if entry is None else entry.deadline

    def set(self, key: Key, deadline: int) -> bool:
        """Sets or moves the key's deadline; says whether it had one."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = entry = Deadline(key, deadline)
            self._push(entry, deadline)
            return False
        entry.deadline = deadline
        if deadline < entry.queued:
            self._push(entry, deadline)
        return True

    def discard(self, key: Key) -> bool:
        """Forgets the key; says whether it was there."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.deadline = None
        return entry is not None

    @property
    def due(self) -> int | None:
        """When to look again: the earliest deadline, or a time before it, at which nothing will be found."""
        while self._heap and self._heap[0][2].deadline is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: int) -> tuple[Key, int] | None:
        """Takes out the earliest key whose deadline is not after now, with that deadline."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            time, _, entry = heappop(heap)
            if entry.deadline is None or entry.queued != time:
                continue
            if entry.deadline == time:
                del self._entries[entry.key]
                entry.deadline = None
                return entry.key, time
            self._push(entry, entry.deadline)
        return None

    def _push(self, entry: Deadline, deadline: int) -> None:
        entry.queued = deadline
        if len(self._heap) > 2 * len(self._entries) + SLACK:
            self._heap = [each for each in self._heap if each[2].deadline is not None and each[2].queued == each[0]]
            heapify(self._heap)
        self._queued += 1
        heappush(self._heap, (deadline, self._queued, entry))
