"""The checks of StreamsGroupHeartbeat in Kafka's order: 1 request, before the group is looked at; 2 group, 3 size,
4 member, 5 epoch, 6 topology, 7 tasks. Each gives the Check that refuses, or None.

Rules: GroupCoordinatorService and the throwIf methods of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kwire.coordinator.consumer.checks import JOIN, is_blank
from kwire.coordinator.consumer.members import LEAVE_STATIC
from kwire.coordinator.streams.tasks import StreamsMember, Tasks
from kwire.coordinator.types import Check
from kwire.schema import codes

ROLES: Final = ("ActiveTasks", "StandbyTasks", "WarmupTasks")


def check_request(body: Mapping[str, Any]) -> Check | None:
    """Check 1."""
    fault = _unsupported(body) or _fault(body)
    return Check(1, "request", codes.INVALID_REQUEST, fault) if fault else None


def _unsupported(body: Mapping[str, Any]) -> str | None:
    for name in ("InstanceId", "TaskOffsets", "TaskEndOffsets"):
        if body.get(name) is not None:
            return f"{name} is not supported yet"
    if body.get("WarmupTasks"):
        return "WarmupTasks are not supported yet"
    topology = body.get("Topology")
    if topology is not None and any(row["SourceTopicRegex"] for row in topology["Subtopologies"]):
        return "patterns for source topics are not supported yet"
    return None


def _fault(body: Mapping[str, Any]) -> str | None:
    for name in ("MemberId", "GroupId", "RackId"):
        if is_blank(body.get(name)):
            return f"{name} is blank"
    epoch, given = body["MemberEpoch"], [name for name in ROLES if body.get(name) is not None]
    if epoch == JOIN:
        if body.get("RebalanceTimeoutMs", -1) == -1:
            return "a join needs RebalanceTimeoutMs, it is -1"
        for name in ROLES:
            if body.get(name) is None or body[name]:
                return f"a join needs empty {name}"
        if body.get("Topology") is None:
            return "a join needs a Topology, it is null"
    elif epoch == LEAVE_STATIC:
        return "MemberEpoch -2 needs an InstanceId, it is null"
    elif epoch < LEAVE_STATIC:
        return f"MemberEpoch is {epoch}, less than -2"
    if given and len(given) < len(ROLES):
        return f"{', '.join(given)} but not the other tasks: all of them, or none"
    return "a Topology comes with a join only" if epoch != JOIN and body.get("Topology") is not None else None


def unknown_member(group: str, member: str) -> Check:
    return Check(4, "member", codes.UNKNOWN_MEMBER_ID, f"{member} is no member of group {group}")


def check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> Check | None:
    """The member's epoch, or the one before it if what it owns was given to it (the answer was lost)."""
    if epoch in (JOIN, member.epoch):
        return None
    if epoch > member.epoch:
        return _fenced(f"member epoch {epoch} is ahead of {member.epoch}, which the coordinator knows")
    behind = f"member epoch {epoch} is behind {member.epoch}, which the coordinator knows"
    if epoch != member.previous_epoch:
        return _fenced(f"{behind}, and is not the one before it, {member.previous_epoch}")
    if owned is None or any(not mine <= given for mine, given in zip(owned, member.assigned, strict=True)):
        return _fenced(f"{behind}; it is the one before it, but the member does not own what it was given")
    return None


def _fenced(why: str) -> Check:
    return Check(5, "epoch", codes.FENCED_MEMBER_EPOCH, why)


def check_tasks(owned: Tasks | None, counts: Mapping[str, int]) -> Check | None:
    """Check 7: tasks that the topology has."""
    for roles in owned or ():
        for subtopology, partition in sorted(roles):
            if not 0 <= partition < counts.get(subtopology, 0):
                why = f"task {subtopology}-{partition}, of {counts.get(subtopology, 0):,} that the subtopology has"
                return Check(7, "tasks", codes.INVALID_REQUEST, why)
    return None
