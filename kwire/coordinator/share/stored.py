"""A share group as the records that Kafka keeps of it, by the names of their messages; and the group again from them.

A group that comes back has its epochs, members and targets; its members have a whole session to be heard of. What is
stored of its partitions must be there before. Records: GroupCoordinatorRecordHelpers; what follows their loading:
GroupMetadataManager.onLoaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from kwire.coordinator.consumer.bodies import by_topic
from kwire.coordinator.share.group import SESSION, ShareGroup, ShareMember
from kwire.coordinator.stored_records import Fields, RecordKey, Rows, target_epoch_record, target_records
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS

KINDS: Final = {  # the number that a record's key begins with
    "MemberMetadata": 10, "Metadata": 11, "TargetAssignmentMetadata": 12, "TargetAssignmentMember": 13,
    "CurrentMemberAssignment": 14, "StatePartitionMetadata": 15,
}  # fmt: skip


def stored(group: ShareGroup, kind: str) -> dict[RecordKey, Fields]:
    """Its records of that kind."""
    name, members = group.name, group.members.values()
    if kind == "Metadata":
        return {(name,): {"Epoch": group.epoch, "MetadataHash": group.topics_hash}}
    if kind == "TargetAssignmentMetadata":
        return target_epoch_record(group)
    if kind == "TargetAssignmentMember":
        return target_records(group)
    if kind == "MemberMetadata":
        return {(name, each.id): _said(each) for each in members}
    if kind == "StatePartitionMetadata":
        names = {topic.id: topic.name for topic in group.all_topics().values()}
        initialised, waiting = _named(group.initialised, names), _named(group.waiting, names)
        rows = {"InitializingTopics": waiting, "InitializedTopics": initialised, "DeletingTopics": []}
        return {(name,): rows} if initialised or waiting else {}
    return {(name, each.id): _current(each) for each in members}


def _said(member: ShareMember) -> Fields:
    return {
        "RackId": member.rack, "ClientId": member.client_id, "ClientHost": member.client_host,
        "SubscribedTopicNames": sorted(member.names),
    }  # fmt: skip


def _current(member: ShareMember) -> Fields:
    """A member's state is always 0: it has nothing to give up."""
    return {
        "MemberEpoch": member.epoch, "PreviousMemberEpoch": member.previous_epoch, "State": 0,
        "AssignedPartitions": by_topic(member.assigned),
    }  # fmt: skip


def _named(partitions: Mapping[UUID, Iterable[int]], names: Mapping[UUID, str]) -> list[Fields]:
    return [
        {"TopicId": topic, "TopicName": names[topic], "Partitions": sorted(found)}
        for topic, found in sorted(partitions.items())
        if topic in names
    ]


def restore(group: ShareGroup, found: Mapping[str, Rows], now: int) -> None:
    """found: its records by kind; there is one that says its epoch."""
    name, metadata = (group.name,), found["Metadata"][group.name,]
    group.epoch = metadata["Epoch"]
    target = found["TargetAssignmentMetadata"].get(name, {})
    group.target_epoch = target.get("AssignmentEpoch", group.epoch)
    group.target_time = target.get("AssignmentTimestamp", 0) * MS or None
    for (_, who), row in found["TargetAssignmentMember"].items():
        group.targets[who] = {each["TopicId"]: frozenset(each["Partitions"]) for each in row["TopicPartitions"]}
    for (_, who), row in found["MemberMetadata"].items():
        names = frozenset(row["SubscribedTopicNames"])
        member = ShareMember(who, row["RackId"], row["ClientId"], row["ClientHost"], names, heard=now)
        current = found["CurrentMemberAssignment"].get((group.name, who))
        if current is not None:
            member.epoch, member.previous_epoch = current["MemberEpoch"], current["PreviousMemberEpoch"]
            held = current["AssignedPartitions"]
            member.assigned = frozenset((each["TopicId"], part) for each in held for part in each["Partitions"])
        group.members[who] = member
        group.timers.set(Key(SESSION, group.name, who), now + group.settings.group_share_session_timeout_ms * MS)
    group.restore(metadata["MetadataHash"])
