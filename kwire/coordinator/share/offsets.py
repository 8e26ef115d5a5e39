"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets: where share groups stand.

A share group commits no offsets; what they show is the stored state of its partitions. Only an empty group's can be
altered or deleted. Rules: GroupCoordinatorService and GroupMetadataManager; the lag is KIP-1226's.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from kwire.coordinator import modern, preconditions
from kwire.coordinator.bodies import Body
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.share.context import fresh
from kwire.coordinator.share.group import ShareGroup
from kwire.coordinator.share.states import UNINITIALISED, SharePartitionKey
from kwire.coordinator.types import Check
from kwire.schema.codes import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NONE, UNKNOWN_TOPIC_OR_PARTITION

NO_ID: Final = UUID(int=0)
DONE: Final = Check(0, "done", NONE, "every topic has its own error")
UNKNOWN_PARTITION: Final = "there is no such partition"
UNKNOWN_TOPIC: Final = "there is no such topic"


def describe(context: Context, request: CoordinatorRequest) -> Reply:
    groups = []
    decided = Check(0, "described", NONE, "every group has its own error")
    for asked in request.body["Groups"]:
        name = asked["GroupId"]
        check = preconditions.stopped(context, context.preconditions, request.api, request.caller, name)
        if check is not None:
            decided = check
            groups.append({"GroupId": name, "Topics": [], "ErrorCode": check.error, "ErrorMessage": check.why})
            continue
        topics = _everything(context, name) if asked["Topics"] is None else _named(context, name, asked["Topics"])
        groups.append({"GroupId": name, "Topics": topics, "ErrorCode": NONE, "ErrorMessage": None})
    return Reply({"Groups": groups}, decided)


def _everything(context: Context, name: str) -> list[Body]:
    group = context.groups.get(name)
    names = {topic.id: topic.name for topic in context.all_topics().values()}
    ready = group.initialised if isinstance(group, ShareGroup) else {}
    return [_topic(context, name, names[topic], topic, sorted(ready[topic])) for topic in ready if topic in names]


def _named(context: Context, name: str, asked: list[Body]) -> list[Body]:
    there = context.all_topics()
    known = [each for each in asked if each["TopicName"] in there]
    unknown = [each for each in asked if each["TopicName"] not in there]
    rows = [_topic(context, name, each["TopicName"], there[each["TopicName"]].id, each["Partitions"]) for each in known]
    for each in unknown:
        nothing = [_partition(index, UNINITIALISED, 0, -1) for index in each["Partitions"]]
        rows.append({"TopicName": each["TopicName"], "TopicId": NO_ID, "Partitions": nothing})
    return rows


def _topic(context: Context, group: str, name: str, topic: UUID, partitions: list[int]) -> Body:
    rows = []
    for index in partitions:
        stored = context.share_states.known.get(SharePartitionKey(group, topic, index))
        if stored is None or index < 0:
            rows.append(_partition(index, UNINITIALISED, 0, -1))
            continue
        end = context.ends(topic, index) if stored.start >= 0 and stored.complete >= 0 else None
        lag = -1 if end is None else end - stored.start - stored.complete
        rows.append(_partition(index, stored.start, stored.leader_epoch, lag))
    return {"TopicName": name, "TopicId": topic, "Partitions": rows}


def _partition(index: int, start: int, epoch: int, lag: int) -> Body:
    row: Body = {"PartitionIndex": index, "StartOffset": start, "LeaderEpoch": epoch, "Lag": lag}
    return row | {"ErrorCode": NONE, "ErrorMessage": None}


def _empty_group(context: Context, name: str, create: bool) -> ShareGroup | Check:
    """The group, when its offsets may be touched."""
    group: Any = context.groups.get(name)
    if group is None and create:
        return fresh(context, name)
    if not isinstance(group, ShareGroup):
        why = f"there is no group {name}" if group is None else f"group {name} is no share group"
        return Check(1, "group", GROUP_ID_NOT_FOUND, why)
    if group.members:
        return Check(2, "empty", NON_EMPTY_GROUP, f"group {name} has {len(group.members):,} members")
    return group


def alter(context: Context, request: CoordinatorRequest) -> Reply:
    """The group is made if it is not there."""
    body = request.body
    group = _empty_group(context, body["GroupId"], create=True)
    if isinstance(group, Check):
        return Reply({"ErrorCode": group.error, "ErrorMessage": group.why, "Responses": []}, group)
    there, rows = context.all_topics(), []
    for asked in body["Topics"]:
        topic = there.get(asked["TopicName"])
        partitions = []
        for part in asked["Partitions"]:
            index, start = part["PartitionIndex"], part["StartOffset"]
            why = UNKNOWN_TOPIC if topic is None else None if index < topic.partitions else UNKNOWN_PARTITION
            if why is None and topic is not None and index >= 0:
                group.set_start(topic.id, index, start)
            error = NONE if why is None else UNKNOWN_TOPIC_OR_PARTITION
            partitions.append({"PartitionIndex": index, "ErrorCode": error, "ErrorMessage": why})
        topic_id = NO_ID if topic is None else topic.id
        rows.append({"TopicName": asked["TopicName"], "TopicId": topic_id, "Partitions": partitions})
    context.groups[group.name] = group
    modern.settle(context, group)
    return Reply({"ErrorCode": NONE, "Responses": rows}, DONE)


def delete(context: Context, request: CoordinatorRequest) -> Reply:
    body = request.body
    group = _empty_group(context, body["GroupId"], create=False)
    if isinstance(group, Check):
        return Reply({"ErrorCode": group.error, "ErrorMessage": group.why, "Responses": []}, group)
    there, rows = context.all_topics(), []
    for asked in body["Topics"]:
        topic = there.get(asked["TopicName"])
        if topic is not None and group.initialised.pop(topic.id, None) is not None:
            context.share_states.forget(group.name, topic.id)
            rows.append({"TopicName": topic.name, "TopicId": topic.id, "ErrorCode": NONE, "ErrorMessage": None})
            continue
        why = UNKNOWN_TOPIC if topic is None else "there is no offset of it to delete"
        row = {"TopicName": asked["TopicName"], "TopicId": NO_ID, "ErrorCode": UNKNOWN_TOPIC_OR_PARTITION}
        rows.append(row | {"ErrorMessage": why})
    return Reply({"ErrorCode": NONE, "Responses": rows}, DONE)
