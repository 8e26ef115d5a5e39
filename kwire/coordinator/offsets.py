"""Committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete, all versions.

After OffsetMetadataManager (group-coordinator) and the handlers of the same name in KafkaApis, which look at the topics
before the group is asked. Offsets of open transactions wait beside the committed ones until their producer's
transaction ends. Version 0 of commit and fetch dealt with ZooKeeper, where no group had a say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from kwire.coordinator import classic, preconditions
from kwire.coordinator.bodies import Body
from kwire.coordinator.committed_offsets import CommittedOffset, Place
from kwire.coordinator.context import Context, CoordinatorRequest, Reply, counted
from kwire.coordinator.group_kinds import Commit, kind_of
from kwire.coordinator.types import Check, KnownTopic
from kwire.schema.codes import (
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)

METADATA_MAX = 4096  # offset.metadata.max.bytes; Kafka counts characters
BY_ID = {"OffsetCommit": 10, "OffsetFetch": 10, "TxnOffsetCommit": 6}  # the version that names topics by id
NO_ID = UUID(int=0)


class NamedTopic(NamedTuple):
    """A topic of a request. error: it is not known, in which case name or id may be missing."""

    name: str
    id: UUID
    topic: KnownTopic | None
    error: int
    given: Mapping[str, Any]

    def answer(self, partitions: list[Body]) -> Body:
        """The topic as responses name it."""
        return {"Name": self.name, "TopicId": self.id, "Partitions": partitions}


def _named(context: Context, request: CoordinatorRequest, given: list[dict[str, Any]]) -> Iterator[NamedTopic]:
    """The request's topics, looked up by name or by id."""
    by_id = request.version >= BY_ID.get(request.api, 99)
    known = None if context.topics is None else context.topics()
    ids = {topic.id: topic for topic in known.values()} if by_id and known is not None else {}
    for each in given:
        if by_id:
            topic = ids.get(each["TopicId"])
            error = UNKNOWN_TOPIC_ID if topic is None and known is not None else NONE
            name = topic.name if topic else str(each["TopicId"]) if known is None else ""
            yield NamedTopic(name, each["TopicId"], topic, error, each)
        else:
            topic = None if known is None else known.get(each["Name"])
            error = UNKNOWN_TOPIC_OR_PARTITION if topic is None and known is not None else NONE
            yield NamedTopic(each["Name"], topic.id if topic else NO_ID, topic, error, each)


# commit


def commit(context: Context, request: CoordinatorRequest) -> Reply:
    """OffsetCommit and TxnOffsetCommit: topics first, then the group, then each partition's metadata."""
    body, transactional = request.body, request.api == "TxnOffsetCommit"
    generation = body.get("GenerationIdOrMemberEpoch", -1)
    who = Commit(body.get("MemberId", ""), body.get("GroupInstanceId"), generation, transactional, request.version)
    named = list(_named(context, request, body["Topics"]))
    reachable = any(_exists(topic, part["PartitionIndex"]) for topic in named for part in topic.given["Partitions"])
    check = Check(0, "topics", UNKNOWN_TOPIC_OR_PARTITION, "none of the partitions exists")
    if request.version == 0 and not transactional:
        check = Check(0, "no member", NONE, "version 0 commits past the group, to ZooKeeper in its day")
    elif reachable or not named:
        check = request.barred or _may_commit(context, body["GroupId"], who)
    places: dict[Place, CommittedOffset] = {}
    answers = []
    for topic in named:
        results = []
        for part in topic.given["Partitions"]:
            error = _judge(context, body["GroupId"], topic, part, who, check)
            if error == NONE:
                places[topic.name, part["PartitionIndex"]] = _committed(context, topic, part, who)
            results.append({"PartitionIndex": part["PartitionIndex"], "ErrorCode": error})
        answers.append(topic.answer(results))
    _store(context, request, places, who)
    return Reply({"Topics": answers}, check)


def _exists(named: NamedTopic, partition: int) -> bool:
    return named.error == NONE and (named.topic is None or 0 <= partition < named.topic.partitions)


def _may_commit(context: Context, group_id: str, who: Commit) -> Check:
    """validateOffsetCommit, validateTransactionalOffsetCommit: a group that nobody knows is made for a non-member."""
    group = context.groups.get(group_id)
    if group is None:
        if who.generation < 0:
            classic.clean_up_later(context, classic.new_group(context, group_id))
            return Check(0, "no member", NONE, "no member; a group for offsets only")
        error = (
            GROUP_ID_NOT_FOUND
            if who.version >= 9 and not who.transactional and context.since(4, 0)
            else ILLEGAL_GENERATION
        )
        return Check(5, "group", error, f"there is no group {group_id}, and generation {who.generation} is given")
    return kind_of(group).may_commit(context, group, who)


def _judge(
    context: Context, group_id: str, topic: NamedTopic, part: Mapping[str, Any], who: Commit, check: Check
) -> int:
    """A partition's error."""
    if not _exists(topic, part["PartitionIndex"]):
        return topic.error or UNKNOWN_TOPIC_OR_PARTITION
    if check.error:
        return check.error
    group = context.groups.get(group_id)
    if group is not None and kind_of(group).each_partition:
        asked = who._replace(partition=(topic.id, part["PartitionIndex"]))
        error = kind_of(group).may_commit(context, group, asked).error
        if error:
            return error
    return OFFSET_METADATA_TOO_LARGE if len(part["CommittedMetadata"] or "") > METADATA_MAX else NONE


def _committed(context: Context, topic: NamedTopic, part: Mapping[str, Any], who: Commit) -> CommittedOffset:
    epoch, metadata = part.get("CommittedLeaderEpoch", -1), part["CommittedMetadata"] or ""
    topic_id = topic.given.get("TopicId", NO_ID)
    return CommittedOffset(part["CommittedOffset"], epoch, metadata, context.now, who.member, topic_id)


def _store(context: Context, request: CoordinatorRequest, places: dict[Place, CommittedOffset], who: Commit) -> None:
    if not places:
        return
    group = request.body["GroupId"]
    if who.transactional:
        open_ = context.offsets.pending.setdefault(group, {})
        open_.setdefault(request.body["ProducerId"], {}).update(places)
    else:
        context.offsets.committed.setdefault(group, {}).update(places)
    facts = {
        "offsets": {f"{topic}-{index}": each.offset for (topic, index), each in places.items()},
        "transactional": who.transactional,
    }
    why = counted(len(places), "partition") + (f" by {who.member}" if who.member else " by no member")
    context.tell_of(group, "committed", why, who.member or None, who.generation, facts)


# fetch


def fetch(context: Context, request: CoordinatorRequest) -> Reply:
    """OffsetFetch: one group (below v8) or several."""
    body = request.body
    if request.version >= 8:
        groups, checks = [], []
        for each in body["Groups"]:
            fetched, check = _fetch_group(context, request, each)
            groups.append(fetched)
            checks.append(check)
        first = next((check for check in checks if check.error), checks[0] if checks else None)
        return Reply({"Groups": groups}, first)
    fetched, check = _fetch_group(context, request, body)
    if check.error and request.version < 2:
        fetched["Topics"] = _failed(body["Topics"], check.error)
    return Reply(fetched, check)


def _fetch_group(context: Context, request: CoordinatorRequest, asked: Mapping[str, Any]) -> tuple[Body, Check]:
    group_id = asked["GroupId"]
    check = preconditions.stopped(context, context.preconditions, request.api, request.caller, group_id)
    group = context.groups.get(group_id)
    if check is None and group is not None:
        check = kind_of(group).may_fetch(group, asked.get("MemberId"), asked.get("MemberEpoch", -1))
    if check is None:
        check = Check(0, "fetched", NONE, f"there is no group {group_id}; it has no offsets")
    if check.error:
        return {"GroupId": group_id, "Topics": [], "ErrorCode": check.error}, check
    stable = bool(request.body.get("RequireStable"))
    topics = asked["Topics"]
    if topics is None:
        answers = _all_topics(context, request, group_id, stable)
    else:
        answers = [_fetch_topic(context, group_id, each, stable) for each in _named(context, request, topics)]
    return {"GroupId": group_id, "Topics": answers, "ErrorCode": NONE}, check


def _fetch_topic(context: Context, group: str, named: NamedTopic, stable: bool) -> Body:
    # A topic that is not known by its name may still have offsets; one that is not known by its id has no name.
    error = named.error if named.error == UNKNOWN_TOPIC_ID else NONE
    indexes = named.given["PartitionIndexes"]
    wanted = named.given.get("TopicId", NO_ID)
    return named.answer([_fetched(context, group, (named.name, index), stable, error, wanted) for index in indexes])


def _fetched(
    context: Context, group: str, place: Place, stable: bool, error: int = NONE, topic_id: UUID = NO_ID
) -> Body:
    """A partition's offset; not one that was committed to a former topic of that name (isMismatchedTopicId)."""
    found = None if error else context.offsets.committed.get(group, {}).get(place)
    if not error and stable and context.offsets.is_pending(group, place):
        found, error = None, UNSTABLE_OFFSET_COMMIT
    if found is not None and NO_ID not in (found.topic_id, topic_id) and found.topic_id != topic_id:
        found = None
    return {
        "PartitionIndex": place[1],
        "CommittedOffset": -1 if found is None else found.offset,
        "CommittedLeaderEpoch": -1 if found is None else found.leader_epoch,
        "Metadata": "" if found is None else found.metadata,
        "ErrorCode": error,
    }


def _all_topics(context: Context, request: CoordinatorRequest, group: str, stable: bool) -> list[Body]:
    """Every partition that has an offset; by id only topics that still exist."""
    found: dict[str, list[Body]] = {}
    for place in context.offsets.committed.get(group, {}):
        found.setdefault(place[0], []).append(_fetched(context, group, place, stable))
    known = {} if context.topics is None else context.topics()
    by_id = request.version >= BY_ID["OffsetFetch"] and context.topics is not None
    return [
        {"Name": name, "TopicId": known[name].id if name in known else NO_ID, "Partitions": parts}
        for name, parts in found.items()
        if not by_id or name in known
    ]


def _failed(topics: list[dict[str, Any]], error: int) -> list[Body]:
    """Before v2 there is no error but a partition's."""
    blank = {"CommittedOffset": -1, "CommittedLeaderEpoch": -1, "Metadata": "", "ErrorCode": error}
    return [
        {"Name": each["Name"], "Partitions": [{"PartitionIndex": index, **blank} for index in each["PartitionIndexes"]]}
        for each in topics
    ]


# delete


def delete(context: Context, request: CoordinatorRequest) -> Reply:
    """OffsetDelete: not of topics that members still subscribe to."""
    group_id = request.body["GroupId"]
    group = context.groups.get(group_id)
    if group is None:
        check = Check(0, "group", GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    else:
        check = kind_of(group).may_delete_offsets(group)
    if check.error:
        return Reply({"ErrorCode": check.error}, check)
    answers = []
    for topic in _named(context, request, request.body["Topics"]):
        subscribed = kind_of(group).subscribed(group, topic.name)
        results = []
        for part in topic.given["Partitions"]:
            index = part["PartitionIndex"]
            error = NONE if _exists(topic, index) else UNKNOWN_TOPIC_OR_PARTITION
            if error == NONE and subscribed:
                error = GROUP_SUBSCRIBED_TO_TOPIC
            if error == NONE:
                context.offsets.committed.get(group_id, {}).pop((topic.name, index), None)
            results.append({"PartitionIndex": index, "ErrorCode": error})
        answers.append(topic.answer(results))
    return Reply({"Topics": answers}, check)


def refused(request: CoordinatorRequest, check: Check) -> Body:
    """A commit that a precondition stopped: the error stands at each partition."""
    topics = [
        {
            **each,
            "Partitions": [
                {"PartitionIndex": p["PartitionIndex"], "ErrorCode": check.error} for p in each["Partitions"]
            ],
        }
        for each in request.body["Topics"]
    ]
    return {"Topics": topics}
