"""A consumer group as the records that Kafka keeps of it, by the names of their messages; and the group again.

A group that comes back has its epochs, members, patterns and targets; its members have a whole session to be heard of.
Records: GroupCoordinatorRecordHelpers; what follows their loading: GroupMetadataManager.onLoaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kwire.coordinator.assignors import Assignment
from kwire.coordinator.consumer.bodies import by_topic
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.consumer.members import ClassicTerms, ConsumerMember
from kwire.coordinator.consumer.reconciliation import Hold, MemberState, Partition
from kwire.coordinator.consumer.seating import REBALANCE, SESSION
from kwire.coordinator.consumer.topic_patterns import BadPattern, TopicPattern
from kwire.coordinator.stored_records import Fields, RecordKey, Rows, target_epoch_record, target_records
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS

KINDS: Final = {  # the number that a record's key begins with
    "Metadata": 3, "MemberMetadata": 5, "TargetAssignmentMetadata": 6, "TargetAssignmentMember": 7,
    "CurrentMemberAssignment": 8, "RegularExpression": 16,
}  # fmt: skip
STATES: Final = {
    MemberState.STABLE: 0, MemberState.UNREVOKED_PARTITIONS: 1, MemberState.UNRELEASED_PARTITIONS: 2,
    MemberState.UNKNOWN: 127,
}  # fmt: skip
BY_NUMBER: Final = {number: state for state, number in STATES.items()}


def stored(group: ConsumerGroup, kind: str) -> dict[RecordKey, Fields]:
    """Its records of that kind. Tagged fields that have their default are left out, as Kafka does."""
    name, members = group.name, group.members.values()
    if kind == "Metadata":
        tagged = {"MetadataHash": group.topics.hash} if group.topics.hash else {}
        return {(name,): {"Epoch": group.epoch, **tagged}}
    if kind == "TargetAssignmentMetadata":
        return target_epoch_record(group)
    if kind == "TargetAssignmentMember":
        return target_records(group)
    if kind == "MemberMetadata":
        return {(name, each.id): _said(each) for each in members}
    if kind == "RegularExpression":
        time = (group.topics.resolved_at or 0) // MS
        found = group.topics.resolved.items()
        return {(name, regex): {"Topics": sorted(names), "Version": 0, "Timestamp": time} for regex, names in found}
    return {(name, each.id): _current(each.hold) for each in members}


def _said(member: ConsumerMember) -> Fields:
    fields: Fields = {
        "InstanceId": member.instance, "RackId": member.rack, "ClientId": member.client_id,
        "ClientHost": member.client_host, "SubscribedTopicNames": sorted(member.names),
        "SubscribedTopicRegex": member.regex, "RebalanceTimeoutMs": member.rebalance_timeout_ms,
        "ServerAssignor": member.assignor,
    }  # fmt: skip
    if member.classic is not None:
        protocols = [{"Name": name, "Metadata": data} for name, data in member.classic.protocols]
        timeout = member.classic.session_timeout_ms
        fields["ClassicMemberMetadata"] = {"SessionTimeoutMs": timeout, "SupportedProtocols": protocols}
    return fields


def _current(hold: Hold) -> Fields:
    return {
        "MemberEpoch": hold.epoch, "PreviousMemberEpoch": hold.previous_epoch, "State": STATES[hold.state],
        "AssignedPartitions": _held(hold.assigned), "PartitionsPendingRevocation": _held(hold.revoking),
    }  # fmt: skip


def _held(partitions: Mapping[Partition, int]) -> list[Fields]:
    """With the epochs at which they were given."""
    rows = by_topic(partitions)
    for row in rows:
        row["AssignmentEpochs"] = [partitions[row["TopicId"], partition] for partition in row["Partitions"]]
    return rows


def restore(group: ConsumerGroup, found: Mapping[str, Rows], now: int) -> None:
    """found: its records by kind; there is one that says its epoch."""
    name, metadata = (group.name,), found["Metadata"][group.name,]
    group.fresh, group.epoch = False, metadata["Epoch"]
    target = found["TargetAssignmentMetadata"].get(name, {})
    group.target_epoch = target.get("AssignmentEpoch", group.epoch)
    group.target_time = target.get("AssignmentTimestamp", 0) * MS or None
    for (_, who), row in found["TargetAssignmentMember"].items():
        group.targets[who] = _target(row["TopicPartitions"])
    for (_, who), row in found["MemberMetadata"].items():
        _seat(group, _member(who, row, found["CurrentMemberAssignment"].get((group.name, who))), now)
    patterns = found["RegularExpression"]
    resolved = {regex: frozenset(row["Topics"]) for (_, regex), row in patterns.items()}
    at = min((row["Timestamp"] * MS for row in patterns.values()), default=None)
    group.topics.restore(resolved, at, metadata.get("MetadataHash", 0))


def _seat(group: ConsumerGroup, member: ConsumerMember, now: int) -> None:
    pattern = None
    if member.regex and not group.topics.has_pattern(member.regex):
        try:
            pattern = TopicPattern(member.regex)
        except BadPattern:
            member.regex = ""
    group.roster.put(member)
    group.topics.rename((), member.names)
    if member.regex:
        group.topics.repattern("", member.regex, pattern)
    if member.hold.is_reconciled_to(group.target_epoch):
        group.reconciled.add(member.id)
    member.heard = now
    own = member.classic
    session = own.session_timeout_ms if own else group.settings.group_consumer_session_timeout_ms
    group.timers.set(Key(SESSION, group.name, member.id), now + session * MS)
    if member.hold.state is MemberState.UNREVOKED_PARTITIONS and own is None:
        member.fence_epoch = member.hold.epoch
        group.timers.set(Key(REBALANCE, group.name, member.id), now + max(member.rebalance_timeout_ms, 0) * MS)


def _member(name: str, said: Fields, current: Fields | None) -> ConsumerMember:
    member = ConsumerMember(
        name, said["InstanceId"], said["RackId"], said["RebalanceTimeoutMs"], said["ClientId"], said["ClientHost"],
        frozenset(said["SubscribedTopicNames"]), said["SubscribedTopicRegex"] or "", said["ServerAssignor"],
    )  # fmt: skip
    terms = said.get("ClassicMemberMetadata")
    if terms is not None:
        protocols = tuple((each["Name"], each["Metadata"]) for each in terms["SupportedProtocols"])
        member.classic = ClassicTerms(terms["SessionTimeoutMs"], protocols)
    if current is not None:
        epoch = current["MemberEpoch"]
        member.hold = Hold(
            BY_NUMBER.get(current["State"], MemberState.UNKNOWN), epoch, current["PreviousMemberEpoch"],
            _since(current["AssignedPartitions"], epoch), _since(current["PartitionsPendingRevocation"], epoch),
        )  # fmt: skip
    return member


def _since(rows: Iterable[Fields], epoch: int) -> dict[Partition, int]:
    """Records from before 4.3 do not say since when."""
    return {
        (row["TopicId"], partition): since
        for row in rows
        for partition, since in zip(
            row["Partitions"], row.get("AssignmentEpochs") or [epoch] * len(row["Partitions"]), strict=False
        )
    }


def _target(rows: Iterable[Fields]) -> Assignment:
    return {row["TopicId"]: frozenset(row["Partitions"]) for row in rows}
