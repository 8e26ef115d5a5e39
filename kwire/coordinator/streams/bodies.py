"""Answers of a streams group: to StreamsGroupHeartbeat and, for a member, to StreamsGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kwire.coordinator.streams import tasks
from kwire.coordinator.streams.checks import ROLES
from kwire.coordinator.streams.tasks import StreamsMember, Task, Tasks
from kwire.coordinator.streams.topology import Subtopology
from kwire.coordinator.types import KnownTopic
from kwire.schema import codes

SHUTDOWN_WHY: Final = (
    "Streams group member {} encountered a fatal error and requested a shutdown for the entire application."
)


def answer(member: StreamsMember, told: bool, interval: int) -> dict[str, Any]:
    """An accepted heartbeat's. told: whether it says the member's tasks; interval: until its next heartbeat, ms."""
    body: dict[str, Any] = {
        "ErrorCode": codes.NONE, "MemberId": member.id, "MemberEpoch": member.epoch, "HeartbeatIntervalMs": interval,
        "PartitionsByUserEndpoint": None,
    }  # fmt: skip
    for name, held in zip(ROLES, member.assigned, strict=True):
        body[name] = tasks.rows(held) if told else None
    return body


def endpoints(
    members: Iterable[StreamsMember], subtopologies: Iterable[Subtopology], topics: Mapping[str, KnownTopic]
) -> list[dict[str, Any]]:
    """PartitionsByUserEndpoint: what the members that can be asked have."""
    subs, rows = list(subtopologies), []
    for member in members:
        if member.endpoint is not None:
            endpoint = {"Host": member.endpoint[0], "Port": member.endpoint[1]}
            active, standby = (_partitions(held, subs, topics) for held in member.assigned[:2])
            rows.append({"UserEndpoint": endpoint, "ActivePartitions": active, "StandbyPartitions": standby})
    return rows


def _partitions(
    held: frozenset[Task], subs: list[Subtopology], topics: Mapping[str, KnownTopic]
) -> list[dict[str, Any]]:
    """The partitions that tasks read."""
    rows = []
    for sub in subs:
        mine = sorted(index for name, index in held if name == sub.id)
        for topic in sorted(set(sub.inputs)) if mine else ():
            count = topics[topic].partitions if topic in topics else 0
            rows.append({"Topic": topic, "Partitions": mine[:count]})
    return rows


def described(member: StreamsMember, target: Tasks) -> dict[str, Any]:
    """A Member of StreamsGroupDescribe."""
    endpoint = member.endpoint
    return {
        "MemberId": member.id,
        "MemberEpoch": member.epoch,
        "InstanceId": None,
        "RackId": member.rack,
        "ClientId": member.client_id,
        "ClientHost": member.client_host,
        "TopologyEpoch": member.topology_epoch,
        "ProcessId": member.process,
        "UserEndpoint": None if endpoint is None else {"Host": endpoint[0], "Port": endpoint[1]},
        "ClientTags": [{"Key": key, "Value": value} for key, value in member.tags],
        "TaskOffsets": [],
        "TaskEndOffsets": [],
        "Assignment": tasks.assignment(member.assigned),
        "TargetAssignment": tasks.assignment(target),
        "IsClassic": False,
    }
