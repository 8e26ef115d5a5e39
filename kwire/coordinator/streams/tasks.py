"""Tasks of a streams group's members: what one has, what it is to have, and its way there, heartbeat by heartbeat.

A task is (subtopology id, partition). An active task is in one member's hands at a time; a standby task may not be in a
process that has the same task already. Rules: CurrentAssignmentBuilder of Kafka's streams groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

Task = tuple[str, int]
NO_TASKS: Final[frozenset[Task]] = frozenset()


class TaskState(StrEnum):
    """By their names in Kafka."""

    STABLE = "stable"
    UNREVOKED = "unrevoked tasks"
    UNRELEASED = "unreleased tasks"


class Tasks(NamedTuple):
    """Active ones, standbys, warm-ups."""

    active: frozenset[Task] = NO_TASKS
    standby: frozenset[Task] = NO_TASKS
    warmup: frozenset[Task] = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def meets(self, other: Tasks) -> bool:
        """Whether a task is in both, in the same role."""
        return any(not mine.isdisjoint(theirs) for mine, theirs in zip(self, other, strict=True))


NONE: Final = Tasks()


@dataclass(slots=True)
class StreamsMember:
    """since: the epoch at which each active task, held or to be given up, came. heard: its last accepted heartbeat."""

    id: str
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = -1
    process: str = ""
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    epoch: int = 0
    previous_epoch: int = -1
    state: TaskState = TaskState.STABLE
    assigned: Tasks = NONE
    revoking: Tasks = NONE
    since: dict[Task, int] = field(default_factory=dict)
    heard: int = 0

    def said(self) -> tuple[Any, ...]:
        """What the member says of itself; a change of it changes the group."""
        return (
            self.rack, self.rebalance_timeout_ms, self.client_id, self.client_host, self.topology_epoch, self.process,
            self.endpoint, self.tags,
        )  # fmt: skip

    def is_at(self, epoch: int) -> bool:
        return self.state is TaskState.STABLE and self.epoch == epoch


class TaskHolders(NamedTuple):
    """The processes that have a task now: by active task, and by task in any other role."""

    active: dict[Task, str]
    others: dict[Task, set[str]]


def holders(members: Iterable[StreamsMember]) -> TaskHolders:
    found = TaskHolders({}, {})
    for member in members:
        for held in (member.assigned, member.revoking):
            found.active.update(dict.fromkeys(held.active, member.process))
            for task in (*held.standby, *held.warmup):
                found.others.setdefault(task, set()).add(member.process)
    return found


def reconcile(member: StreamsMember, target: Tasks, target_epoch: int, owned: Tasks | None, held: TaskHolders) -> bool:
    """Moves the member one step towards its target; says whether anything has changed. owned: what the heartbeat says
    that it has, None when it says nothing."""
    if member.is_at(target_epoch):
        return False
    epoch = member.epoch
    if member.state is TaskState.UNREVOKED:
        if owned is None or owned.meets(member.revoking):
            return False
        epoch += 1
    kept = Tasks(*(have & want for have, want in zip(member.assigned, target, strict=True)))
    gone = Tasks(*(have - want for have, want in zip(member.assigned, target, strict=True)))
    before = (member.state, member.epoch, member.assigned, member.revoking)
    if gone and (owned is None or owned.meets(gone)):
        _take(member, TaskState.UNREVOKED, epoch, kept, gone, target_epoch)
        return before != (member.state, member.epoch, member.assigned, member.revoking)
    mine = member.process
    roles: tuple[Callable[[Task], bool], ...] = (
        lambda task: task in held.active or mine in held.others.get(task, ()),
        lambda task: held.active.get(task) == mine or mine in held.others.get(task, ()),
        lambda task: held.active.get(task) == mine or mine in held.others.get(task, ()),
    )
    missing = [want - have for want, have in zip(target, kept, strict=True)]
    given = [frozenset(t for t in tasks if not busy(t)) for tasks, busy in zip(missing, roles, strict=True)]
    state = TaskState.STABLE if given == missing else TaskState.UNRELEASED
    assigned = Tasks(*(have | more for have, more in zip(kept, given, strict=True)))
    _take(member, state, target_epoch, assigned, Tasks(), target_epoch)
    return before != (member.state, member.epoch, member.assigned, member.revoking)


def _take(
    member: StreamsMember, state: TaskState, epoch: int, assigned: Tasks, revoking: Tasks, target_epoch: int
) -> None:
    member.since = {task: member.since.get(task, target_epoch) for task in assigned.active | revoking.active}
    member.state, member.assigned, member.revoking = state, assigned, revoking
    if epoch != member.epoch:
        member.previous_epoch, member.epoch = member.epoch, epoch


def read(body: Mapping[str, Any]) -> Tasks | None:
    """The tasks that a heartbeat names; None when it names none of the three roles."""
    rows = [body.get(name) for name in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
    if any(row is None for row in rows):
        return None
    found = [
        frozenset((each["SubtopologyId"], index) for each in row for index in each["Partitions"])
        for row in rows
        if row is not None
    ]
    return Tasks(*found)


def rows(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """TaskIds as bodies have them."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return [{"SubtopologyId": name, "Partitions": partitions} for name, partitions in found.items()]


def assignment(tasks: Tasks) -> dict[str, Any]:
    """An Assignment of StreamsGroupDescribe."""
    return {
        "ActiveTasks": rows(tasks.active), "StandbyTasks": rows(tasks.standby), "WarmupTasks": rows(tasks.warmup),
    }  # fmt: skip
