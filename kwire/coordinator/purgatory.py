"""Operations that wait: for a member's next heartbeat, for a group's joins or syncs.

After Kafka's DelayedOperationPurgatory (kafka.server.DelayedOperation, later CoordinatorTimer): an operation ends
exactly once, completed because what it waited for came, or expired because its time came first. Who puts a new one
under the same key ends the old one as completed, as a heartbeat does with the wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.coordinator.timers import Key, Timers


def never(_: Key) -> bool:
    """For operations that only who began them can complete."""
    return False


def nothing(_: Key, __: int) -> None:
    """For operations whose completion changes nothing."""


class OperationKind(NamedTuple):
    """How operations of a kind behave. ready: whether what they wait for is there (Kafka's tryComplete); complete and
    expire get the key and the time, ns, and act when the operation has ended."""

    expire: Callable[[Key, int], None]
    ready: Callable[[Key], bool] = never
    complete: Callable[[Key, int], None] = nothing


class Purgatory:
    """begun == completed + expired + len() at any time."""

    def __init__(self) -> None:
        self.kinds: dict[str, OperationKind] = {}
        self.begun = 0
        self.completed = 0
        self.expired = 0
        self._timers = Timers()

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Key) -> bool:
        return key in self._timers

    @property
    def due(self) -> int | None:
        """When the next operation expires, ns."""
        return self._timers.due

    def deadline(self, key: Key) -> int | None:
        """When this operation expires, ns."""
        return self._timers.get(key)

    def wait(self, key: Key, deadline: int) -> None:
        """Begins an operation; one that waits under the same key completes."""
        self.begun += 1
        self.completed += self._timers.set(key, deadline)

    def end(self, key: Key) -> bool:
        """Completes an operation without acting on it; False if there is none."""
        ended = self._timers.discard(key)
        self.completed += ended
        return ended

    def check(self, key: Key, now: int) -> bool:
        """Completes an operation if it is ready, and lets it act."""
        kind = self.kinds[key.kind]
        if key not in self._timers or not kind.ready(key):
            return False
        self.end(key)
        kind.complete(key, now)
        return True

    def tick(self, now: int) -> None:
        """Expires what is due, in the order of the deadlines, each as of its own deadline."""
        while (found := self._timers.pop(now)) is not None:
            key, deadline = found
            self.expired += 1
            self.kinds[key.kind].expire(key, deadline)
