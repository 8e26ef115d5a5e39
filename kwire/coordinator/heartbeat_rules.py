"""What a heartbeat of a classic group is checked for, in the order of each release.

Sources: GroupCoordinator.handleHeartbeat (core/…/coordinator in 0.9 and 0.10, core/…/coordinator/group to 3.9) and
GroupMetadataManager.classicGroupHeartbeat (group-coordinator, since 4.0). What changed over time:
- 0.9.0: a group that is not Stable answers REBALANCE_IN_PROGRESS before it asks whether the member is known; such a
  heartbeat does not keep the member alive.
- 0.10.1: the member is looked up first; in PreparingRebalance the heartbeat counts, in AwaitingSync it does not.
- 2.3 (KIP-345): a Dead group answers COORDINATOR_NOT_AVAILABLE; static members may be fenced; the generation is
  compared in every state.
- 2.7: in CompletingRebalance members heartbeat as in Stable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.coordinator.group import Group, GroupState
from kwire.schema.codes import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)


class Beat(NamedTuple):
    """A heartbeat's values, and the group as it is found."""

    group: Group
    member: str
    instance: str | None
    generation: int


class HeartbeatRule(NamedTuple):
    """fails gives the reason when this rule decides. counts: the member is kept alive all the same."""

    number: int
    name: str
    error: int
    fails: Callable[[Beat], str | None]
    counts: bool = False


def _dead(beat: Beat) -> str | None:
    return f"group {beat.group.id} is Dead" if beat.group.state is GroupState.DEAD else None


def _not_stable(beat: Beat) -> str | None:
    group = beat.group
    return None if group.state is GroupState.STABLE else f"group {group.id} is {group.state}, not Stable"


def _empty(beat: Beat) -> str | None:
    return f"group {beat.group.id} is Empty: it has no members" if beat.group.state is GroupState.EMPTY else None


def _preparing(beat: Beat) -> str | None:
    group = beat.group
    if group.state is not GroupState.PREPARING:
        return None
    return f"group {group.id} is PreparingRebalance, {group.joining} of {len(group.members)} members have joined"


def _completing(beat: Beat) -> str | None:
    group = beat.group
    if group.state is not GroupState.COMPLETING:
        return None
    return f"group {group.id} is CompletingRebalance: leader {group.leader} has not brought the assignment"


def _instance(beat: Beat) -> str | None:
    known = None if beat.instance is None else beat.group.instances.get(beat.instance)
    if known is None or known == beat.member:
        return None
    return f"instance {beat.instance} is {known} now, not {beat.member}"


def _no_instance(beat: Beat) -> str | None:
    if beat.instance is None or beat.instance in beat.group.instances:
        return None
    return f"group {beat.group.id} has no instance {beat.instance}"


def _member(beat: Beat) -> str | None:
    if beat.member in beat.group.members:
        return None
    return f"{beat.member or 'an empty id'} is no member of group {beat.group.id}"


def _generation(beat: Beat) -> str | None:
    if beat.generation == beat.group.generation:
        return None
    return f"generation {beat.generation}, the group is at {beat.group.generation}"


DEAD = HeartbeatRule(5, "group", UNKNOWN_MEMBER_ID, _dead)
GONE = HeartbeatRule(5, "group", COORDINATOR_NOT_AVAILABLE, _dead)
NOT_STABLE = HeartbeatRule(6, "state", REBALANCE_IN_PROGRESS, _not_stable)
EMPTY = HeartbeatRule(6, "state", UNKNOWN_MEMBER_ID, _empty)
COMPLETING = HeartbeatRule(6, "state", REBALANCE_IN_PROGRESS, _completing)
PREPARING = HeartbeatRule(6, "state", REBALANCE_IN_PROGRESS, _preparing, counts=True)
NO_INSTANCE = HeartbeatRule(7, "instance", UNKNOWN_MEMBER_ID, _no_instance)
INSTANCE = HeartbeatRule(7, "instance", FENCED_INSTANCE_ID, _instance)
MEMBER = HeartbeatRule(7, "member", UNKNOWN_MEMBER_ID, _member)
GENERATION = HeartbeatRule(8, "generation", ILLEGAL_GENERATION, _generation)

ERAS: tuple[
    tuple[tuple[int, int], tuple[HeartbeatRule, ...]], ...
] = (  # newest first; (0, 10) stands for 0.10.1 and later
    ((3, 0), (GONE, NO_INSTANCE, INSTANCE, MEMBER, GENERATION, EMPTY, PREPARING)),
    ((2, 7), (GONE, INSTANCE, MEMBER, GENERATION, EMPTY, PREPARING)),
    ((2, 3), (GONE, INSTANCE, MEMBER, GENERATION, EMPTY, COMPLETING, PREPARING)),
    ((0, 10), (DEAD, EMPTY, MEMBER, COMPLETING, GENERATION, PREPARING)),
    ((0, 9), (DEAD, NOT_STABLE, MEMBER, GENERATION)),
)


def of_era(era: tuple[int, int]) -> tuple[HeartbeatRule, ...]:
    """The rules in that release's order."""
    return next((rules for start, rules in ERAS if era >= start), ERAS[-1][1])
