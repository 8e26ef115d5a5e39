"""The bodies of ConsumerGroupHeartbeat and ConsumerGroupDescribe: partitions in and out, answers, members described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from kwire.coordinator.assignors import Assignment
from kwire.coordinator.consumer.members import ConsumerMember
from kwire.coordinator.consumer.reconciliation import Partition
from kwire.coordinator.types import Check
from kwire.schema import codes


def owned_of(topics: Iterable[Mapping[str, Any]] | None) -> frozenset[Partition] | None:
    """A request's TopicPartitions; None when they are null."""
    if topics is None:
        return None
    return frozenset((topic["TopicId"], partition) for topic in topics for partition in topic["Partitions"])


def flat(assignment: Assignment) -> list[Partition]:
    """A target's partitions."""
    return [(topic, partition) for topic, partitions in assignment.items() for partition in partitions]


def by_topic(held: Iterable[Partition]) -> list[dict[str, Any]]:
    """TopicPartitions as bodies have them."""
    topics: dict[UUID, list[int]] = {}
    for topic, partition in sorted(held):
        topics.setdefault(topic, []).append(partition)
    return [{"TopicId": topic, "Partitions": partitions} for topic, partitions in topics.items()]


def refusal(check: Check) -> dict[str, Any]:
    """An answer that says no. Kafka's has nothing else in it either."""
    return {
        "ThrottleTimeMs": 0,
        "ErrorCode": check.error,
        "ErrorMessage": check.why or None,
        "MemberId": None,
        "MemberEpoch": 0,
        "HeartbeatIntervalMs": 0,
        "Assignment": None,
    }


def accepted(member: ConsumerMember, interval_ms: int, told: bool) -> dict[str, Any]:
    """An answer to a member that stays. told: it hears what it has."""
    assignment = {"TopicPartitions": by_topic(member.hold.assigned)} if told else None
    return _answer(member.id, member.hold.epoch, interval_ms, assignment)


def left(member_id: str, epoch: int) -> dict[str, Any]:
    """An answer to a member that left, with the epoch that it left by."""
    return _answer(member_id, epoch, 0, None)


def _answer(member_id: str, epoch: int, interval_ms: int, assignment: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "ThrottleTimeMs": 0,
        "ErrorCode": codes.NONE,
        "ErrorMessage": None,
        "MemberId": member_id,
        "MemberEpoch": epoch,
        "HeartbeatIntervalMs": interval_ms,
        "Assignment": assignment,
    }


def described_group(
    name: str, state: str, epochs: tuple[int, int], assignor: str, members: list[dict[str, Any]]
) -> dict[str, Any]:
    """A DescribedGroup. epochs: the group's and its target's."""
    return {
        "ErrorCode": codes.NONE,
        "ErrorMessage": None,
        "GroupId": name,
        "GroupState": state,
        "GroupEpoch": epochs[0],
        "AssignmentEpoch": epochs[1],
        "AssignorName": assignor,
        "Members": members,
        "AuthorizedOperations": -(2**31),
    }


def described(
    member: ConsumerMember, target: Assignment, names: Mapping[UUID, str], version: int, era: tuple[int, int]
) -> dict[str, Any]:
    """A member of a DescribedGroup. names: of the topics that exist; others are left out. From 4.3 on its assignment
    has what it has yet to give up too."""
    held = (*member.hold.assigned, *(member.hold.revoking if era >= (4, 3) else ()))
    body = {
        "MemberId": member.id,
        "InstanceId": member.instance,
        "RackId": member.rack,
        "MemberEpoch": member.hold.epoch,
        "ClientId": member.client_id,
        "ClientHost": member.client_host,
        "SubscribedTopicNames": sorted(member.names),
        "SubscribedTopicRegex": member.regex,  # "", not null, for none
        "Assignment": _named(held, names),
        "TargetAssignment": _named(flat(target), names),
    }
    return body | ({"MemberType": 0 if member.classic else 1} if version >= 1 else {})


def _named(held: Iterable[Partition], names: Mapping[UUID, str]) -> dict[str, Any]:
    topics = [topic for topic in by_topic(held) if topic["TopicId"] in names]
    return {"TopicPartitions": [{"TopicName": names[topic["TopicId"]], **topic} for topic in topics]}
