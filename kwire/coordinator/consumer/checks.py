"""The checks of ConsumerGroupHeartbeat (KIP-848) in Kafka's order, and those of offsets in a consumer group.

1 request (INVALID_REQUEST), 2 assignor (UNSUPPORTED_ASSIGNOR), both before the group is looked at: check_request.
3 group (GROUP_ID_NOT_FOUND), 4 size (GROUP_MAX_SIZE_REACHED), 5 member (UNKNOWN_MEMBER_ID), 6 instance
(UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID), 7 epoch (FENCED_MEMBER_EPOCH), 8 regex (INVALID_REGULAR_EXPRESSION): by
ConsumerGroup with the functions here. The order and the rules are those of GroupCoordinatorService's and
GroupMetadataManager's throwIf methods; each function gives the Check that refuses, or None.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from kwire.coordinator.consumer.members import LEAVE_STATIC, ConsumerMember, Members
from kwire.coordinator.consumer.reconciliation import Hold, MemberState, Partition
from kwire.coordinator.types import Check
from kwire.schema import codes

JOIN, LEAVE = 0, -1  # the member epochs that mean something else, beside LEAVE_STATIC


def check_request(
    version: int, body: Mapping[str, Any], assignors: Collection[str], era: tuple[int, int]
) -> Check | None:
    """Checks 1 and 2."""
    fault = _fault_before_4(body) if era < (4, 0) else _fault(version, body)
    if fault:
        return Check(1, "request", codes.INVALID_REQUEST, fault)
    asked = body.get("ServerAssignor")
    if asked is not None and asked not in assignors:
        why = f"ServerAssignor {asked!r} is none of {', '.join(assignors)}"
        return Check(2, "assignor", codes.UNSUPPORTED_ASSIGNOR, why)
    return None


def _fault(version: int, body: Mapping[str, Any]) -> str | None:
    epoch = body["MemberEpoch"]
    if (version >= 1 or epoch > 0 or epoch == LEAVE) and is_blank(body.get("MemberId")):
        return f"MemberId is empty, and MemberEpoch is {epoch} at version {version}"
    for name in ("GroupId", "InstanceId", "RackId"):
        if is_blank(body.get(name)):
            return f"{name} is blank"
    if epoch == JOIN:
        return _join_fault(body) or (
            "a join needs SubscribedTopicNames or SubscribedTopicRegex, both are null"
            if body.get("SubscribedTopicNames") is None and body.get("SubscribedTopicRegex") is None
            else None
        )
    if epoch == LEAVE_STATIC and body.get("InstanceId") is None:
        return "MemberEpoch -2 needs an InstanceId, it is null"
    return f"MemberEpoch is {epoch}, less than -2" if epoch < LEAVE_STATIC else None


def _fault_before_4(body: Mapping[str, Any]) -> str | None:
    for name in ("GroupId", "InstanceId", "RackId"):
        if is_blank(body.get(name)):
            return f"{name} is blank"
    if body.get("SubscribedTopicRegex") is not None:
        return "SubscribedTopicRegex is not null, and this release knows none"
    epoch = body["MemberEpoch"]
    if epoch == JOIN:
        return _join_fault(body) or (
            None if body.get("SubscribedTopicNames") else "a join needs SubscribedTopicNames, there are none"
        )
    if epoch < LEAVE_STATIC:
        return f"MemberEpoch is {epoch}, less than -2"
    if is_blank(body.get("MemberId")):
        return f"MemberId is empty, and MemberEpoch is {epoch}"
    if epoch == LEAVE_STATIC and body.get("InstanceId") is None:
        return "MemberEpoch -2 needs an InstanceId, it is null"
    return None


def _join_fault(body: Mapping[str, Any]) -> str | None:
    if body.get("RebalanceTimeoutMs", -1) == -1:
        return "a join needs RebalanceTimeoutMs, it is -1"
    if body.get("TopicPartitions") is None:
        return "a join needs empty TopicPartitions, they are null"
    if body["TopicPartitions"]:
        return f"a join needs empty TopicPartitions, there are {len(body['TopicPartitions'])}"
    return None


def is_blank(value: str | None) -> bool:
    """Java's String.trim() leaves nothing."""
    return value is not None and all(each <= " " for each in value)


def unknown_member(group: str, member: str) -> Check:
    return Check(5, "member", codes.UNKNOWN_MEMBER_ID, f"{member} is no member of group {group}")


def check_member(
    group: str,
    members: Members,
    body: Mapping[str, Any],
    owned: Collection[Partition] | None,
    era: tuple[int, int],
) -> Check | None:
    """Checks 5 to 7 of a heartbeat that does not leave."""
    member_id, epoch, instance = body["MemberId"], body["MemberEpoch"], body.get("InstanceId")
    member = members.by_id.get(member_id)
    if instance is not None:
        member = members.static(instance)
        if epoch == JOIN:
            return check_released(member, member_id, instance)
        if refused := check_instance(member, member_id, instance):
            return refused
    if member is None:
        return None if epoch == JOIN else unknown_member(group, member_id)
    return check_epoch(member.hold, epoch, owned, era)


def check_instance(holder: ConsumerMember | None, member: str, instance: str) -> Check | None:
    """Whether the static member `instance` exists and is this one: checks 5 and 6 of all but joins."""
    if holder is None:
        return Check(5, "member", codes.UNKNOWN_MEMBER_ID, f"no member has instance id {instance}")
    if holder.id != member:
        why = f"instance id {instance} belongs to member {holder.id}, this is {member}"
        return Check(6, "instance", codes.FENCED_INSTANCE_ID, why)
    return None


def check_released(holder: ConsumerMember | None, member: str, instance: str) -> Check | None:
    """Whether a join may take the instance id: the one who had it must have left with epoch -2, or use
    the classic protocol."""
    if holder is None or holder.classic is not None or holder.hold.epoch == LEAVE_STATIC:
        return None
    why = f"instance id {instance} is held by member {holder.id} at epoch {holder.hold.epoch}, {member} must wait"
    return Check(6, "instance", codes.UNRELEASED_INSTANCE_ID, why)


def check_epoch(hold: Hold, epoch: int, owned: Collection[Partition] | None, era: tuple[int, int]) -> Check | None:
    """Check 7: the member's epoch, or the one before it if what it owns was given to it (the answer was lost)."""
    if epoch == JOIN and era >= (4, 2):
        return None
    if epoch > hold.epoch:
        return _fenced(f"member epoch {epoch} is ahead of {hold.epoch}, which the coordinator knows")
    if hold.state is MemberState.UNKNOWN and (owned is None or owned):
        return _fenced("the member's state is unknown; it must give up its partitions and join again")
    if epoch == hold.epoch:
        return None
    behind = f"member epoch {epoch} is behind {hold.epoch}, which the coordinator knows"
    if epoch != hold.previous_epoch:
        return _fenced(f"{behind}, and is not the one before it, {hold.previous_epoch}")
    if owned is None:
        return _fenced(f"{behind}; it is the one before it, but the request does not say what the member owns")
    if any(partition not in hold.assigned for partition in owned):
        return _fenced(f"{behind}; it is the one before it, but the member owns more than it was given")
    return None


def _fenced(why: str) -> Check:
    return Check(7, "epoch", codes.FENCED_MEMBER_EPOCH, why)


class OffsetRequest(NamedTuple):
    """Who asks for offsets: the member that it says to be, and of a commit one partition, None for the whole."""

    member: str
    epoch: int
    commit: bool
    version: int
    instance: str | None
    transactional: bool
    partition: Partition | None

    def is_outside(self, members: Mapping[str, ConsumerMember], unnamed: bool, era: tuple[int, int]) -> bool:
        """Whether it comes from no member: a tool, or a consumer that manages its partitions itself."""
        if not self.commit:
            return unnamed and self.epoch < 0
        if self.epoch < 0 and not members:
            return True
        anonymous = self.epoch == -1 and not self.member and self.instance is None
        return self.transactional and anonymous and era >= (4, 2)


def check_offsets(
    group: str, members: Mapping[str, ConsumerMember], asked: OffsetRequest, unnamed: bool, era: tuple[int, int]
) -> Check:
    """Whether offsets may be committed or fetched: ConsumerGroup.validateOffsetCommit and validateOffsetFetch."""
    if asked.is_outside(members, unnamed, era):
        return Check(0, "no member", codes.NONE, "asked without being a member")
    member = members.get(asked.member)
    if member is None:
        return unknown_member(group, repr(asked.member))
    if member.classic is not None:
        if asked.epoch == member.hold.epoch:
            return Check(8, "generation", codes.NONE, f"generation {asked.epoch} stands")
        why = f"generation {asked.epoch}, the member's epoch is {member.hold.epoch}"
        return Check(8, "generation", codes.ILLEGAL_GENERATION, why)
    if asked.commit and not asked.transactional and asked.version < 9:
        why = f"OffsetCommit v{asked.version} from a member of a consumer group, which needs v9"
        return Check(0, "version", codes.UNSUPPORTED_VERSION, why)
    epoch = asked.epoch
    refused = _commit_fault(member, epoch, asked.partition, era) if asked.commit else _unlike(member, epoch)
    why = f"member epoch {epoch}, the member is at {member.hold.epoch}"
    return _stale(refused) if refused else Check(7, "epoch", codes.NONE, why)


def _commit_fault(member: ConsumerMember, epoch: int, partition: Partition | None, era: tuple[int, int]) -> str | None:
    """KIP-1251, from 4.2 on: an older epoch will do for a partition that the member has held since."""
    current = member.hold.epoch
    if epoch >= current or era < (4, 2):
        return _unlike(member, epoch)
    if partition is None:
        return None
    since = member.hold.assigned.get(partition, member.hold.revoking.get(partition))
    if since is None:
        return f"member epoch {epoch} is behind {current}, and the partition is not the member's"
    return f"member epoch {epoch} is behind {since}, at which the member got the partition" if epoch < since else None


def _unlike(member: ConsumerMember, epoch: int) -> str | None:
    current = member.hold.epoch
    return None if epoch == current else f"member epoch {epoch} is not {current}, which the coordinator knows"


def _stale(why: str) -> Check:
    return Check(7, "epoch", codes.STALE_MEMBER_EPOCH, why)
