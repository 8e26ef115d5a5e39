"""The checks of ShareGroupHeartbeat in Kafka's order: 1 request, before the group is looked at; 2 group, 3 size,
4 member, 5 epoch. Each gives the Check that refuses, or None.

Rules: KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService and the throwIf methods of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kwire.coordinator.consumer.checks import JOIN, LEAVE, is_blank
from kwire.coordinator.types import Check
from kwire.schema import codes

LONGEST_ID: Final = 36  # a UUID's
RENEWS: Final = 2  # the version of ShareFetch and ShareAcknowledge from which locks can be renewed (KIP-1222)


def check_request(body: Mapping[str, Any]) -> Check | None:
    """Check 1."""
    fault = _fault(body)
    return Check(1, "request", codes.INVALID_REQUEST, fault) if fault else None


def id_fault(member: str | None) -> str | None:
    """What is wrong with a member id, of all requests of share groups."""
    if member and len(member) <= LONGEST_ID:
        return None
    return f"MemberId has {len(member or '')} characters, 1 to {LONGEST_ID} are allowed"


def _fault(body: Mapping[str, Any]) -> str | None:
    if fault := id_fault(body.get("MemberId")):
        return fault
    for name in ("MemberId", "GroupId", "RackId"):
        if is_blank(body.get(name)):
            return f"{name} is blank"
    epoch = body["MemberEpoch"]
    if epoch == JOIN and not body.get("SubscribedTopicNames"):
        return "a join needs SubscribedTopicNames, there are none"
    return f"MemberEpoch is {epoch}, less than -1" if epoch < LEAVE else None


def ack_fault(batches: Sequence[Mapping[str, Any]], version: int, renews: bool) -> str | None:
    """What is wrong with a partition's AcknowledgementBatches, before the partition is looked at
    (KafkaApis.validateAcknowledgementBatches)."""
    highest, before = (4 if version >= RENEWS else 3), -1
    for batch in batches:
        first, last, types = batch["FirstOffset"], batch["LastOffset"], batch["AcknowledgeTypes"]
        where = f"offsets {first} to {last}"
        if first > last:
            return f"{where}: the last one is before the first"
        if first < before:
            return f"{where}: the batch before goes to {before}"
        if not types or (len(types) > 1 and last - first != len(types) - 1):
            return f"{where}: {len(types):,} acknowledge types; one, or one for each offset"
        if any(not 0 <= each <= highest for each in types):
            return f"{where}: acknowledge types {sorted(set(types))}; version {version} has 0 to {highest}"
        if 4 in types and not renews:
            return f"{where}: acknowledge type 4, but IsRenewAck is false"
        before = last
    return None


def unknown_group(group: str, epoch: int) -> Check:
    return Check(2, "group", codes.GROUP_ID_NOT_FOUND, f"there is no share group {group}, and MemberEpoch is {epoch}")


def check_size(members: Mapping[str, object], member: str, most: int) -> Check | None:
    if len(members) < most or member in members:
        return None
    return Check(3, "size", codes.GROUP_MAX_SIZE_REACHED, f"{len(members):,} members, group.share.max.size is {most:,}")


def unknown_member(group: str, member: str) -> Check:
    return Check(4, "member", codes.UNKNOWN_MEMBER_ID, f"{member} is no member of group {group}")


def check_epoch(known: int, previous: int, epoch: int) -> Check | None:
    """The member's epoch, or the one before it: the answer may have been lost."""
    if epoch in (JOIN, known, previous) and epoch <= known:
        return None
    if epoch > known:
        why = f"member epoch {epoch} is ahead of {known}, which the coordinator knows"
    else:
        why = f"member epoch {epoch} is behind {known}, and is not the one before it, {previous}"
    return Check(5, "epoch", codes.FENCED_MEMBER_EPOCH, why)
