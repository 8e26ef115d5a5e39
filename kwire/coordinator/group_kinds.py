"""What the coordinator asks of a group whatever its kind: one table entry for each kind of group.

Kafka's Group interface (group-coordinator) asks the same questions; validateOffsetCommit, validateOffsetFetch,
validateOffsetDelete and validateDeleteGroup are the names there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from kwire.coordinator import classic, modern
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context
from kwire.coordinator.group import CONSUMER, Group, GroupState
from kwire.coordinator.share.group import ShareGroup
from kwire.coordinator.streams.group import StreamsGroup
from kwire.coordinator.types import Check
from kwire.schema.codes import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
)


class Commit(NamedTuple):
    """Who commits offsets: member "" and generation -1 for a consumer that is no member. partition: set where a group
    wants to be asked for each one, (topic id, index)."""

    member: str
    instance: str | None
    generation: int
    transactional: bool
    version: int
    partition: tuple[UUID, int] | None = None


class GroupKind(NamedTuple):
    """Questions and orders. Checks with error NONE let pass."""

    type: str
    state: Callable[[Any], str]
    protocol_type: Callable[[Any], str]
    may_commit: Callable[[Context, Any, Commit], Check]
    each_partition: bool  # may_commit is asked for each partition
    may_fetch: Callable[[Any, str | None, int], Check]
    subscribed: Callable[[Any, str], bool]
    may_delete_offsets: Callable[[Any], Check]
    is_empty: Callable[[Any], bool]
    expire: Callable[[Context, Any, str], bool]
    end: Callable[[Context, Any, str], None]


# classic


def _may_commit(context: Context, group: Group, commit: Commit) -> Check:
    """ClassicGroup.validateOffsetCommit; doCommitOffsets before 3.0, which looked at CompletingRebalance first."""
    member, instance, generation, transactional, _, _ = commit
    if group.state is GroupState.DEAD:
        return Check(5, "group", COORDINATOR_NOT_AVAILABLE, f"group {group.id} is Dead")
    if generation < 0 and group.state is GroupState.EMPTY:
        return Check(0, "no member", NONE, f"no member, and group {group.id} is Empty")
    completing = group.state is GroupState.COMPLETING and not transactional
    state = Check(
        6, "state", REBALANCE_IN_PROGRESS, f"group {group.id} is CompletingRebalance: the assignment is not there yet"
    )
    if completing and not context.since(2, 4):
        return state
    if generation >= 0 or member or instance is not None:
        refused = group.refuses(member, instance)
        if refused:
            name, why = group.why_refused(member, instance)
            return Check(7, name, refused, why)
        if generation != group.generation:
            return Check(
                8, "generation", ILLEGAL_GENERATION, f"generation {generation}, the group is at {group.generation}"
            )
    elif not transactional:
        why = f"no member, but group {group.id} is {group.state}: only its members may commit"
        return Check(7, "member", UNKNOWN_MEMBER_ID, why)
    if completing:
        return state
    if not transactional and group.state in (GroupState.STABLE, GroupState.PREPARING):
        classic.keep_alive(context, group, group.members[member], "OffsetCommit")
    return Check(8, "generation", NONE, f"generation {group.generation} stands")


def _may_fetch(group: Group, member: str | None, epoch: int) -> Check:  # noqa: ARG001
    return Check(0, "fetched", NONE, "anyone may fetch a classic group's offsets")


def _may_delete_offsets(group: Group) -> Check:
    if group.state is GroupState.EMPTY or group.protocol_type == CONSUMER:
        return Check(0, "deleted", NONE, f"group {group.id} is {group.state}")
    why = (
        f"group {group.id} is {group.state} and of type {group.protocol_type}, whose topics the coordinator cannot read"
    )
    return Check(0, "group", NON_EMPTY_GROUP, why)


def _expire(context: Context, group: Group, member_id: str) -> bool:
    member = group.members.get(member_id)
    if member is not None:
        classic.evict(context, group, member, "its session was ended on purpose")
    return member is not None


# consumer groups (KIP-848)


def _consumer_commit(context: Context, group: ConsumerGroup, commit: Commit) -> Check:  # noqa: ARG001
    member, instance, epoch, transactional, version, partition = commit
    check = group.offset_check(member, epoch, True, version, instance, transactional, partition)
    if transactional and check.error == STALE_MEMBER_EPOCH:
        return Check(check.number, check.name, ILLEGAL_GENERATION, check.why)
    return check


def _consumer_fetch(group: ConsumerGroup, member: str | None, epoch: int) -> Check:
    return group.offset_check(member, epoch, False)


def _consumer_delete_offsets(group: ConsumerGroup) -> Check:
    return Check(0, "deleted", NONE, f"group {group.name} is {group.state}")


def _consumer_expire(context: Context, group: ConsumerGroup, member_id: str) -> bool:
    return group.expire(member_id, context.now)


# share groups (KIP-932)


def _no_offsets(*asked: Any) -> Check:
    group = next(each for each in asked if isinstance(each, ShareGroup))
    return Check(0, "group kind", GROUP_ID_NOT_FOUND, f"group {group.name} is a share group, which commits no offsets")


def _share_fetch(group: ShareGroup, member: str | None, epoch: int) -> Check:  # noqa: ARG001
    return Check(0, "group kind", NONE, f"group {group.name} is a share group, which has no offsets")


def _share_expire(context: Context, group: ShareGroup, member_id: str) -> bool:
    return group.expire(member_id, context.now)


# streams groups (KIP-1071)


def _streams_commit(context: Context, group: StreamsGroup, commit: Commit) -> Check:
    member, _, epoch, transactional, version, partition = commit
    if transactional and epoch == -1 and not member:
        return Check(0, "no member", NONE, "a transaction of no member")
    named = None
    if partition is not None:
        names = {topic.id: topic.name for topic in context.all_topics().values()}
        named = (names.get(partition[0], ""), partition[1])
    check = group.offset_check(member, epoch, True, 9 if transactional else version, named)
    if transactional and check.error == STALE_MEMBER_EPOCH:
        return Check(check.number, check.name, ILLEGAL_GENERATION, check.why)
    return check


def _streams_fetch(group: StreamsGroup, member: str | None, epoch: int) -> Check:
    return group.offset_check(member, epoch, False)


def _streams_delete_offsets(group: StreamsGroup) -> Check:
    return Check(0, "deleted", NONE, f"group {group.name} is {group.state}")


def _streams_expire(context: Context, group: StreamsGroup, member_id: str) -> bool:
    return group.expire(member_id, context.now)


KINDS: dict[type, GroupKind] = {
    Group: GroupKind(
        "classic",
        lambda group: str(group.state),
        lambda group: group.protocol_type or "",
        _may_commit,
        False,
        _may_fetch,
        Group.subscribed_to,
        _may_delete_offsets,
        lambda group: group.state is GroupState.EMPTY,
        _expire,
        classic.bury,
    ),
    ConsumerGroup: GroupKind(
        "consumer",
        lambda group: group.state,
        lambda _: CONSUMER,
        _consumer_commit,
        True,
        _consumer_fetch,
        ConsumerGroup.subscribes,
        _consumer_delete_offsets,
        lambda group: not group.members,
        _consumer_expire,
        modern.bury,
    ),
    StreamsGroup: GroupKind(
        "streams",
        lambda group: group.state,
        lambda group: group.protocol_type,
        _streams_commit,
        True,
        _streams_fetch,
        StreamsGroup.subscribes,
        _streams_delete_offsets,
        lambda group: not group.members,
        _streams_expire,
        modern.bury,
    ),
    ShareGroup: GroupKind(
        "share",
        lambda group: group.state,
        lambda group: group.protocol_type,
        _no_offsets,
        False,
        _share_fetch,
        ShareGroup.subscribes,
        _no_offsets,
        lambda group: not group.members,
        _share_expire,
        modern.bury,
    ),
}


def kind_of(group: object) -> GroupKind:
    """The table's entry for the group."""
    return KINDS[type(group)]
