"""What groups of all kinds but the classic have in common at the coordinator: they answer heartbeats at once, and wait
for their own next deadline. Kafka calls them modern groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kwire.coordinator import offset_retention
from kwire.coordinator.context import Context
from kwire.coordinator.group import Group
from kwire.coordinator.purgatory import OperationKind
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS, Event

DUE = "consumer"  # the operation that waits for a group's next deadline
CLEANUP = "consumer cleanup"  # the one that takes away a group which holds nothing any more


class ModernGroup(Protocol):
    """fresh: not stored yet. lapses: an empty one is taken away some time after its last offset.
    makes_way: an empty one gives its place to a classic group of the same id."""

    name: str
    fresh: bool

    @property
    def lapses(self) -> bool: ...

    @property
    def makes_way(self) -> bool: ...

    @property
    def members(self) -> Mapping[str, Any]: ...

    @property
    def due(self) -> int | None: ...

    def tick(self, now: int) -> None: ...

    def events(self) -> list[Event]: ...

    def topics_changed(self) -> None: ...


def modern(group: object) -> ModernGroup | None:
    """The group, unless it is a classic one, or none."""
    return None if group is None or isinstance(group, Group) else group  # type: ignore[return-value]


def kinds(context: Context, settled: Callable[[Context, ModernGroup], None]) -> dict[str, OperationKind]:
    """The purgatory's table. settled: what follows after a group's time has passed."""

    def expire(key: Key, now: int) -> None:
        context.now = max(context.now, now)
        group = modern(context.groups.get(key.group))
        if group is not None:
            group.tick(now)
            settled(context, group)

    def clean_up(key: Key, now: int) -> None:
        context.now = max(context.now, now)
        group = modern(context.groups.get(key.group))
        if group is not None and not group.members:
            offset_retention.expire(context, key.group, None)
            if context.offsets.holds(key.group):
                settle(context, group)
            else:
                bury(context, group, "empty and without offsets")

    return {DUE: OperationKind(expire), CLEANUP: OperationKind(clean_up)}


def settle(context: Context, group: ModernGroup) -> None:
    """Passes the group's events on and waits for its next deadline."""
    context.events.extend(group.events())
    key = Key(DUE, group.name)
    due = group.due
    if due is None:
        context.purgatory.end(key)
    elif context.purgatory.deadline(key) != due:
        context.purgatory.wait(key, due)
    unused = Key(CLEANUP, group.name)
    if group.members or not group.lapses:
        context.purgatory.end(unused)
    elif unused not in context.purgatory:
        context.purgatory.wait(unused, context.now + context.settings.offsets_retention_check_interval_ms * MS)


def forget(context: Context, group: ModernGroup) -> None:
    """Another group takes its place: nothing of it waits any more."""
    for kind in (DUE, CLEANUP):
        context.purgatory.end(Key(kind, group.name))


def bury(context: Context, group: ModernGroup, why: str) -> None:
    """Takes the group away."""
    forget(context, group)
    del context.groups[group.name]
    context.tell_of(group.name, "dead", why)
