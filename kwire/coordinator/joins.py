"""JoinGroup, SyncGroup and LeaveGroup: the checks, in Kafka's order, and what follows.

After GroupMetadataManager.classicGroupJoin, classicGroupSync and classicGroupLeave; GroupCoordinator.scala's
doJoinGroup, doSyncGroup and handleLeaveGroup before 4.0. What stops a request before its group is looked at is in
preconditions.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.coordinator import classic
from kwire.coordinator.consumer import migration
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.consumer.migration import NEEDS_MEMBER_ID
from kwire.coordinator.context import Context, CoordinatorRequest, Reply, shown_ms
from kwire.coordinator.group import Group, GroupState, Member
from kwire.coordinator.group_kinds import kind_of
from kwire.coordinator.join_request import JoinRequest, read
from kwire.coordinator.modern import modern
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS, Check
from kwire.schema.codes import (
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)

SKIPS_ASSIGNMENT = 9  # JoinGroup version from which a static leader that comes back is told to keep the assignment
NAMES_PROTOCOL = 5  # SyncGroup version from which type and name must be given


def _refused(error: int, name: str, why: str, member: str = "") -> Reply:
    return Reply(classic.unjoined_body(error, member), Check(0, name, error, why))


def join(context: Context, request: CoordinatorRequest) -> Reply | None:
    """JoinGroup: answered at once with an error or the present generation, or when the rebalance ends."""
    asked = read(request)
    low, high = context.settings.group_min_session_timeout_ms, context.settings.group_max_session_timeout_ms
    if not low <= asked.session_ms <= high:
        why = f"session timeout {shown_ms(asked.session_ms)} is not within {low:,} to {high:,} ms"
        return _refused(INVALID_SESSION_TIMEOUT, "session timeout", why, asked.member)
    other = context.groups.get(request.body["GroupId"])
    served = modern(other)
    if served is not None and (served.members or not served.makes_way):
        return _join_other(context, request, asked, served)
    group = _group(context, request.body["GroupId"], create=not asked.member)
    if group is None:
        why = f"there is no group {request.body['GroupId']}, so {asked.member} cannot be its member"
        return _refused(UNKNOWN_MEMBER_ID, "group", why, asked.member)
    limit = context.settings.group_max_size
    if context.since(2, 2) and not _has_room(group, asked.member, limit):
        group.remove(asked.member)
        context.purgatory.end(Key(classic.HEARTBEAT, group.id, asked.member))
        why = f"group.max.size is {limit:,}, and as many are members or joining"
        return _refused(GROUP_MAX_SIZE_REACHED, "group size", why)
    if not group.supports(asked.protocol_type, asked.names):
        return _refused(INCONSISTENT_GROUP_PROTOCOL, "protocol", _unsupported(group, asked), asked.member)
    return _join_known(context, request, group, asked) if asked.member else _join_new(context, request, group, asked)


def _join_other(context: Context, request: CoordinatorRequest, asked: JoinRequest, group: object) -> Reply:
    """A group of another kind with members, or one that makes no way."""
    if isinstance(group, ConsumerGroup):
        return migration.join(context, request, group, asked)
    why = f"group {request.body['GroupId']} is of another kind and has members"
    return _refused(INCONSISTENT_GROUP_PROTOCOL, "group kind", why)


def _group(context: Context, group_id: str, create: bool) -> Group | None:
    """The classic group; made if need be, also in place of an empty group of another kind."""
    found = context.groups.get(group_id)
    if isinstance(found, Group):
        return found
    if not create:
        return None
    if found is not None:
        kind_of(found).end(context, found, "a classic group takes its place")
    made = classic.new_group(context, group_id)
    classic.clean_up_later(context, made)
    return made


def _has_room(group: Group, member_id: str, limit: int) -> bool:
    """acceptJoiningMember."""
    member = group.members.get(member_id)
    match group.state:
        case GroupState.PREPARING:
            return (member is not None and member.joining is not None) or group.joining < limit
        case GroupState.COMPLETING | GroupState.STABLE:
            return member is not None or len(group.members) < limit
        case _:
            return True


def _unsupported(group: Group, asked: JoinRequest) -> str:
    if not asked.protocol_type or not asked.protocols:
        return "a member must name a protocol type and at least one protocol"
    if group.protocol_type != asked.protocol_type:
        return f"protocol type {asked.protocol_type}, but group {group.id} is of type {group.protocol_type}"
    size = len(group.members)
    common = sorted(name for name, count in group.supported.items() if count == size)
    return f"none of {', '.join(asked.names)} is among those that all members support: {', '.join(common)}"


# new members


def _join_new(context: Context, request: CoordinatorRequest, group: Group, asked: JoinRequest) -> Reply | None:
    if asked.instance is not None:
        new_id = context.new_id(asked.instance)
        old = group.members.get(group.instances.get(asked.instance, ""))
        if old is not None:
            return _rejoin_static(context, request, group, asked, old, new_id)
        _add(context, request, group, asked, new_id)
        return None
    new_id = context.new_id(request.caller.client_id)
    if request.version < NEEDS_MEMBER_ID or not context.since(2, 2):
        _add(context, request, group, asked, new_id)
        return None
    classic.await_rejoin(context, group, new_id, asked.session_ms)
    why = f"JoinGroup v{request.version} without a member id; it must come back with the id that it was given"
    facts = {"session_timeout_ms": asked.session_ms, "client_id": request.caller.client_id}
    context.tell(group, "id handed out", why, new_id, facts)
    return _refused(MEMBER_ID_REQUIRED, "member id", why, new_id)


def _add(context: Context, request: CoordinatorRequest, group: Group, asked: JoinRequest, member_id: str) -> None:
    """addMemberThenRebalanceOrCompleteJoin."""
    caller = request.caller
    member = Member(
        member_id,
        asked.instance,
        caller.client_id,
        caller.host,
        asked.session_ms,
        asked.rebalance_ms,
        asked.protocol_type,
        asked.protocols,
        is_new=True,
        joining=context.wait(request),
    )
    first = group.before is GroupState.EMPTY if context.since(4, 0) else group.generation == 0
    if group.state is GroupState.PREPARING and first:
        group.grew = True
    group.add(member)
    timeout = classic.NEW_MEMBER_JOIN_MS if context.since(2, 2) else None
    classic.keep_alive(context, group, member, "JoinGroup", timeout)
    why = f"{member.label} joined; reason: {asked.reason}"
    context.tell(group, "joined", why, member.id, _facts(member, asked))
    classic.rebalance_or_complete(context, group, why, member.id, "joined")


def _facts(member: Member, asked: JoinRequest) -> dict[str, Any]:
    return {
        "client_id": member.client_id,
        "host": member.client_host,
        "instance_id": member.instance_id,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "protocol_type": member.protocol_type,
        "protocols": asked.names,
        "reason": asked.reason,
    }


# members that come back


def _join_known(context: Context, request: CoordinatorRequest, group: Group, asked: JoinRequest) -> Reply | None:
    """classicGroupJoinExistingMember."""
    if asked.member in group.pending:
        if asked.instance is not None:  # Kafka: IllegalStateException
            return _refused(UNKNOWN_SERVER_ERROR, "pending member", "an id that was handed out is no static member's")
        _add(context, request, group, asked, asked.member)
        return None
    refused = group.refuses(asked.member, asked.instance)
    if refused:
        return _refused(refused, *group.why_refused(asked.member, asked.instance), asked.member)
    member = group.members[asked.member]
    same = member.protocols == asked.protocols
    match group.state:
        case GroupState.PREPARING:
            _update(context, request, group, asked, member, "rejoined")
        case GroupState.COMPLETING if same:
            why = f"{member.id} asked again with the same protocols; generation {group.generation} stands"
            return Reply(classic.joined_body(group, member), Check(0, "joined", NONE, why))
        case GroupState.STABLE if same and group.leader != member.id:
            why = f"a follower that changes nothing; generation {group.generation} stands"
            return Reply(classic.joined_body(group, member), Check(0, "joined", NONE, why))
        case GroupState.STABLE if group.leader == member.id:
            _update(context, request, group, asked, member, "leader rejoined")
        case GroupState.STABLE | GroupState.COMPLETING:
            _update(context, request, group, asked, member, "metadata changed")
        case _:
            why = f"group {group.id} is {group.state}"
            return _refused(UNKNOWN_MEMBER_ID, "state", why, asked.member)
    return None


def _update(
    context: Context, request: CoordinatorRequest, group: Group, asked: JoinRequest, member: Member, trigger: str
) -> None:
    """updateMemberThenRebalanceOrCompleteJoin. Of two JoinGroups of one member Kafka forgets the first."""
    group.update(member, asked.protocols, asked.session_ms, asked.rebalance_ms)
    before = group.await_join(member, context.wait(request))
    superseded = before if context.drop(before) else None
    why = f"{member.label}: {trigger}; reason: {asked.reason}"
    context.tell(group, "rejoined", why, member.id, {**_facts(member, asked), "superseded": superseded})
    classic.rebalance_or_complete(context, group, why, member.id, trigger)


def _rejoin_static(
    context: Context, request: CoordinatorRequest, group: Group, asked: JoinRequest, old: Member, new_id: str
) -> Reply | None:
    """updateStaticMemberThenRebalanceOrCompleteJoin: in a stable group a static member that restarts takes the place of
    its former self; the generation stays unless its protocols change the group's."""
    leader = group.leader
    member = classic.replace(context, group, old, new_id)
    group.update(member, asked.protocols, asked.session_ms, asked.rebalance_ms)
    why = f"static member {member.label} joined in place of {old.id}; reason: {asked.reason}"
    context.tell(group, "rejoined", why, member.id, {**_facts(member, asked), "replaces": old.id})
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol:
        skips = request.version >= SKIPS_ASSIGNMENT
        body = classic.joined_body(group, member, skip=skips and group.leader == member.id, leader=group.leader)
        if not skips:
            body |= {"Members": [], "Leader": leader}
        return Reply(body, Check(0, "joined", NONE, f"{why}; generation {group.generation} stands"))
    group.await_join(member, context.wait(request))
    if group.state is GroupState.COMPLETING:
        classic.prepare(context, group, why, member.id, "static member rejoined")
    else:
        classic.rebalance_or_complete(context, group, why, member.id, "static member rejoined")
    return None


# SyncGroup


def sync(context: Context, request: CoordinatorRequest) -> Reply | None:
    """SyncGroup: the leader's brings the assignment, the others wait for it."""
    body = request.body
    if request.version >= NAMES_PROTOCOL and None in (body.get("ProtocolType"), body.get("ProtocolName")):
        return _unsynced(
            INCONSISTENT_GROUP_PROTOCOL, "protocol", "SyncGroup must name protocol type and name from v5 on"
        )
    group = context.groups.get(body["GroupId"])
    if isinstance(group, ConsumerGroup) and group.members:
        return migration.sync(context, request, group)
    if not isinstance(group, Group) or group.state is GroupState.EMPTY:
        return _unsynced(UNKNOWN_MEMBER_ID, "group", f"group {body['GroupId']} has no members")
    refusal = _refuse_sync(group, request)
    if refusal is not None:
        return refusal
    member = group.members[body["MemberId"]]
    if group.state is GroupState.PREPARING:
        return _unsynced(REBALANCE_IN_PROGRESS, "state", f"group {group.id} is {group.state}: join again")
    group.unsynced.discard(member.id)
    context.purgatory.check(Key(classic.SYNC, group.id), context.now)
    if group.state is GroupState.STABLE:
        if not context.since(4, 0):
            classic.keep_alive(context, group, member, "SyncGroup")
        why = f"generation {group.generation} is complete; this is the assignment"
        return Reply(classic.synced_body(group, member), Check(0, "synced", NONE, why))
    before, member.syncing = member.syncing, context.wait(request)
    context.drop(before)
    if group.leader == member.id:
        _assign(context, group, body["Assignments"])
    return None


def _refuse_sync(group: Group, request: CoordinatorRequest) -> Reply | None:
    """validateSyncGroup."""
    body = request.body
    member, instance, generation = body["MemberId"], body.get("GroupInstanceId"), body["GenerationId"]
    refused = group.refuses(member, instance)
    if refused:
        return _unsynced(refused, *group.why_refused(member, instance))
    if generation != group.generation:
        return _unsynced(
            ILLEGAL_GENERATION, "generation", f"generation {generation}, the group is at {group.generation}"
        )
    for field, own in (("ProtocolType", group.protocol_type), ("ProtocolName", group.protocol)):
        given = body.get(field)
        if None not in (given, own) and given != own:
            return _unsynced(INCONSISTENT_GROUP_PROTOCOL, "protocol", f"{field} {given}, the group's is {own}")
    return None


def _unsynced(error: int, name: str, why: str) -> Reply:
    return Reply({"ErrorCode": error}, Check(0, name, error, why))


def _assign(context: Context, group: Group, assignments: list[dict[str, Any]]) -> None:
    """setAndPropagateAssignment: members left out get nothing."""
    given = {each["MemberId"]: each["Assignment"] for each in assignments}
    for member in group.members.values():
        member.assignment = given.get(member.id, b"")
    group.go(GroupState.STABLE, context.now)
    why = f"leader {group.leader} brought the assignment of generation {group.generation}"
    classic.propagate(context, group, NONE, why)
    took = (context.now - group.rebalance_began) // MS
    facts = {"leader": group.leader, "took_ms": took, "left_out": [each for each in group.members if each not in given]}
    context.tell(group, "stable", f"{why}; the rebalance took {shown_ms(took)}", group.leader, facts)


# LeaveGroup


def leave(context: Context, request: CoordinatorRequest) -> Reply:
    """LeaveGroup: one member (below v3), or several with an error each."""
    group = context.groups.get(request.body["GroupId"])
    before = len(group.members) if isinstance(group, Group) else 0
    left: list[str] = []
    results, errors = [], []
    for member, instance, reason in _leavers(request):
        error = UNKNOWN_MEMBER_ID
        if isinstance(group, Group):
            error = _leave_one(context, group, member, instance, reason)
        elif isinstance(group, ConsumerGroup):
            error = migration.leave(context, group, member, instance, reason)
        errors.append(error)
        results.append({"MemberId": member, "GroupInstanceId": instance, "ErrorCode": error})
        if error == NONE:
            left.append(member or instance or "")
    why = f"{', '.join(left)} left"
    if left and isinstance(group, Group):
        classic.after_leaving(context, group, why, left[0], len(group.members) == before)
    elif left and isinstance(group, ConsumerGroup):
        migration.settle(context, group, why)
    first = next((error for error in errors if error), NONE)
    top = first if request.version < 3 else NONE
    why = f"{len(left)} of {len(results)} left group {request.body['GroupId']}"
    return Reply({"ErrorCode": top, "Members": results}, Check(0, "left", first, why))


def _leavers(request: CoordinatorRequest) -> Iterator[tuple[str, str | None, str]]:
    if request.version < 3:
        yield request.body["MemberId"], None, "not provided"
        return
    for each in request.body["Members"]:
        yield each["MemberId"], each.get("GroupInstanceId"), each.get("Reason") or "not provided"


def _leave_one(context: Context, group: Group, member_id: str, instance: str | None, reason: str) -> int:
    """classicGroupLeaveToClassicGroup, for one: an administrator names the instance alone, a member itself."""
    if not member_id:
        member_id = group.instances.get(instance or "", "")
        if instance is None or not member_id:
            return UNKNOWN_MEMBER_ID
    elif member_id in group.pending:
        group.remove(member_id)
        context.purgatory.end(Key(classic.HEARTBEAT, group.id, member_id))
        context.tell(group, "left", f"before it joined; reason: {reason}", member_id, {"reason": reason})
        return NONE
    else:
        refused = group.refuses(member_id, instance)
        if refused:
            return refused
    member = group.members[member_id]
    facts = {"reason": reason, **classic.heartbeat_facts(member, context.now)}
    context.tell(group, "left", f"of its own will; reason: {reason}", member_id, facts)
    classic.remove(context, group, member)
    return NONE
