"""How classic groups move: rebalances begin and end, deadlines pass, members are removed.

After GroupMetadataManager of Kafka's group-coordinator (prepareRebalance, completeClassicGroupJoin, expire…) and, where
an era differs, GroupCoordinator.scala with DelayedHeartbeat, DelayedJoin, InitialDelayedJoin and DelayedSync. Three
kinds of operations wait in the purgatory: "heartbeat" for a member or an id that was handed out, "join" and "sync" for
a group; "cleanup" takes away groups that hold nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.coordinator import offset_retention
from kwire.coordinator.bodies import Body
from kwire.coordinator.context import Context, counted, elapsed, shown_ms
from kwire.coordinator.group import Group, GroupState, Member
from kwire.coordinator.hashorder import HashOrdered
from kwire.coordinator.purgatory import OperationKind
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS, Check
from kwire.schema.codes import (
    FENCED_INSTANCE_ID,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kwire.schema.errorcodes import errors

HEARTBEAT, JOIN, SYNC, CLEANUP = "heartbeat", "join", "sync", "cleanup"
NEW_MEMBER_JOIN_MS = 300_000  # how long a new member may wait for its first generation (GroupCoordinator, from 2.2 on)
LEAST_WAIT_MS = 1_000  # before nobody's rejoining is waited for again: members choose the timeout, 0 among others


Act = Callable[[Context, Group, str], None]  # the string is the member, "" for the group


def kinds(context: Context) -> dict[str, OperationKind]:
    """The purgatory's table."""

    def group(key: Key) -> Group | None:
        found = context.groups.get(key.group)
        return found if isinstance(found, Group) else None

    def on(act: Act) -> Callable[[Key, int], None]:
        def run(key: Key, now: int) -> None:
            context.now = max(context.now, now)
            found = group(key)
            if found is not None:
                act(context, found, key.member)

        return run

    def joined(key: Key) -> bool:
        found = group(key)
        return found is not None and can_complete(found)

    def synced(key: Key) -> bool:
        found = group(key)
        return found is not None and not found.unsynced

    return {
        HEARTBEAT: OperationKind(on(_heartbeat_missed)),
        JOIN: OperationKind(on(_join_expired), joined, on(lambda context, group, _: complete_join(context, group))),
        SYNC: OperationKind(on(_sync_expired), synced),
        CLEANUP: OperationKind(on(_clean_up)),
    }


def new_group(context: Context, group_id: str) -> Group:
    """An empty group, kept."""
    scala = not context.since(4, 0)
    made = context.groups[group_id] = Group(group_id, since=context.now, members=HashOrdered(scala), scala=scala)
    return made


# heartbeats


def keep_alive(context: Context, group: Group, member: Member, heard: str, timeout_ms: int | None = None) -> None:
    """Begins the member's wait for its next heartbeat anew."""
    member.last_heartbeat, member.heard = context.now, heard
    if member.key is None:
        member.key = Key(HEARTBEAT, group.id, member.id)
    ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    context.purgatory.wait(member.key, context.now + ms * MS)


def await_rejoin(context: Context, group: Group, member_id: str, session_timeout_ms: int) -> None:
    """An id was handed out; it must join within its session timeout."""
    group.pending[member_id] = session_timeout_ms
    context.purgatory.wait(Key(HEARTBEAT, group.id, member_id), context.now + session_timeout_ms * MS)


def _heartbeat_missed(context: Context, group: Group, member_id: str) -> None:
    """onExpireHeartbeat: looks once more whether the member must go."""
    if member_id in group.pending:
        why = f"handed out {shown_ms(group.pending[member_id])} ago and never used; session timeout the same"
        facts = {"cause": "pending", "session_timeout_ms": group.pending[member_id]}
        group.remove(member_id)
        context.tell(group, "evicted", why, member_id, facts)
        _after_eviction(context, group, why, None)
        return
    member = group.members.get(member_id)
    if member is not None and not stays(context, member):
        evict(context, group, member)


def stays(context: Context, member: Member) -> bool:
    """shouldKeepMemberAlive; from 2.2 on a new member may not wait for its join for ever (hasSatisfiedHeartbeat)."""
    if member.is_new and context.since(2, 2):
        return False
    return member.joining is not None or member.syncing is not None


def evict(context: Context, group: Group, member: Member, order: str = "") -> None:
    """Removes a member that was not heard of, or that somebody wants gone, and lets the group act on it."""
    ago = elapsed(member.last_heartbeat, context.now)
    if order:
        cause, why = "order", order
    elif member.is_new:
        cause, why = "join", f"its first join waited {ago}; a new member may wait {shown_ms(NEW_MEMBER_JOIN_MS)}"
    else:
        limit = shown_ms(member.session_timeout_ms)
        cause, why = "session", f"not heard of for {ago} (last: {member.heard}); session timeout {limit}"
    context.tell(group, "evicted", why, member.id, {"cause": cause, **heartbeat_facts(member, context.now)})
    remove(context, group, member)
    _after_eviction(context, group, f"{member.label} was evicted: {why}", member.id)


def heartbeat_facts(member: Member, now: int) -> dict[str, Any]:
    """The figures behind an eviction."""
    return {
        "last_heartbeat": member.last_heartbeat,
        "heard": member.heard,
        "silent_ms": (now - member.last_heartbeat) // MS,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "instance_id": member.instance_id,
    }


# rebalances


def rebalance_or_complete(context: Context, group: Group, why: str, member: str | None, trigger: str) -> None:
    """maybePrepareRebalanceOrCompleteJoin."""
    if group.can_rebalance:
        prepare(context, group, why, member, trigger)
    else:
        context.purgatory.check(Key(JOIN, group.id), context.now)


def prepare(context: Context, group: Group, why: str, member: str | None, trigger: str) -> None:
    """To PreparingRebalance; the first rebalance of an empty group is held back, later ones wait for the members."""
    if group.state is GroupState.COMPLETING:
        for each in group.members.values():
            each.assignment = b""
        propagate(context, group, REBALANCE_IN_PROGRESS, why)
    group.unsynced.clear()
    context.purgatory.end(Key(SYNC, group.id))
    context.purgatory.end(Key(CLEANUP, group.id))
    first = group.state is GroupState.EMPTY
    group.go(GroupState.PREPARING, context.now)
    group.rebalance_began = context.now
    facts = {"trigger": trigger, "from": str(group.before), "rebalance_timeout_ms": group.rebalance_timeout_ms}
    context.tell(group, "rebalance", why, member, facts)
    delay = context.settings.group_initial_rebalance_delay_ms if context.since(0, 11) else 0
    if first and delay > 0:
        group.grew = False
        group.hold_until = context.now + group.rebalance_timeout_ms * MS
        context.purgatory.wait(Key(JOIN, group.id), context.now + delay * MS)
    elif first or group.all_joined:
        complete_join(context, group)
    else:
        context.purgatory.wait(Key(JOIN, group.id), context.now + max(group.rebalance_timeout_ms, 0) * MS)


def can_complete(group: Group) -> bool:
    """maybeCompleteJoinPhase: not while the first rebalance is being held back."""
    return group.state is GroupState.PREPARING and group.before is not GroupState.EMPTY and group.all_joined


def _join_expired(context: Context, group: Group, _: str) -> None:
    """InitialDelayedJoin waits again while members keep coming, up to the rebalance timeout; DelayedJoin goes on."""
    if group.state is not GroupState.PREPARING:
        return
    if group.before is GroupState.EMPTY and group.grew:
        group.grew = False
        delay = context.settings.group_initial_rebalance_delay_ms * MS
        if context.now < group.hold_until:
            context.purgatory.wait(Key(JOIN, group.id), min(context.now + delay, group.hold_until))
            return
    complete_join(context, group)


def complete_join(context: Context, group: Group) -> None:
    """completeClassicGroupJoin: who has not rejoined is out, static members excepted; then the next generation."""
    context.purgatory.end(Key(JOIN, group.id))
    _drop_late(context, group)
    if group.members and not group.elect():
        wait = max(group.rebalance_timeout_ms, LEAST_WAIT_MS) * MS
        context.purgatory.wait(Key(JOIN, group.id), context.now + wait)
        return
    if not group.members and not context.since(0, 10):
        bury(context, group, "its last member is gone")  # in 0.9 there is no Empty (KAFKA-2720)
        return
    took = (context.now - group.rebalance_began) // MS
    group.next_generation(context.now)
    if group.state is GroupState.EMPTY:
        context.tell(group, "empty", f"generation {group.generation} has no members", None, {"took_ms": took})
        clean_up_later(context, group)
        return
    facts = {
        "leader": group.leader,
        "protocol": group.protocol,
        "protocol_type": group.protocol_type,
        "members": list(group.members),
        "took_ms": took,
    }
    members = counted(len(group.members), "member")
    why = f"{members}, leader {group.leader}, protocol {group.protocol}; joining took {shown_ms(took)}"
    context.tell(group, "generation", why, None, facts)
    for member in group.members.values():
        answer_join(context, group, member)
        keep_alive(context, group, member, f"generation {group.generation} began")
        member.is_new = False
        group.unsynced.add(member.id)
    if context.since(3, 0):
        context.purgatory.wait(Key(SYNC, group.id), context.now + max(group.rebalance_timeout_ms, 0) * MS)


def _drop_late(context: Context, group: Group) -> None:
    late = [member for member in group.missing() if member.instance_id is None]
    if not context.since(2, 3):
        late = list(group.missing())
    for member in late:
        group.remove(member.id)
        context.purgatory.end(Key(HEARTBEAT, group.id, member.id))
        why = f"did not rejoin in {elapsed(group.rebalance_began, context.now)}; rebalance timeout " + shown_ms(
            member.rebalance_timeout_ms
        )
        context.tell(group, "evicted", why, member.id, {"cause": "rebalance", **heartbeat_facts(member, context.now)})


def joined_body(group: Group, member: Member, skip: bool = False, leader: str | None = None) -> Body:
    """JoinGroupResponse for a member of the present generation; the leader gets the roster."""
    return {
        "ErrorCode": NONE,
        "GenerationId": group.generation,
        "ProtocolType": group.protocol_type,
        "ProtocolName": group.protocol,
        "Leader": group.leader if leader is None else leader,
        "SkipAssignment": skip,
        "MemberId": member.id,
        "Members": group.roster() if group.leader == member.id else [],
    }


def unjoined_body(error: int, member_id: str) -> Body:
    """JoinGroupResponse with an error. The protocol's name is null, below v7 empty."""
    return {"ErrorCode": error, "GenerationId": -1, "ProtocolName": None, "MemberId": member_id}


def answer_join(context: Context, group: Group, member: Member) -> None:
    """The member's JoinGroup is answered with the new generation."""
    check = Check(
        0, "joined", NONE, f"generation {group.generation} began with {counted(len(group.members), 'member')}"
    )
    context.release(group.await_join(member, None), joined_body(group, member), check)


def _sync_expired(context: Context, group: Group, _: str) -> None:
    """expirePendingSync (from 3.0 on): who has not sent SyncGroup within the rebalance timeout is out."""
    if group.state not in (GroupState.COMPLETING, GroupState.STABLE) or not group.unsynced:
        return
    late = [group.members[member_id] for member_id in group.members if member_id in group.unsynced]
    for member in late:
        group.remove(member.id)
        context.purgatory.end(Key(HEARTBEAT, group.id, member.id))
        why = f"sent no SyncGroup for generation {group.generation} within the rebalance timeout"
        context.tell(group, "evicted", why, member.id, {"cause": "sync", **heartbeat_facts(member, context.now)})
    names = ", ".join(member.id for member in late)
    prepare(context, group, f"no SyncGroup from {names}", late[0].id, "evicted")


# assignments


def propagate(context: Context, group: Group, error: int, why: str) -> None:
    """Answers every SyncGroup that waits, with the assignment or the error."""
    for member in group.members.values():
        if member.syncing is None:
            continue
        ticket, member.syncing = member.syncing, None
        context.release(ticket, synced_body(group, member, error), Check(0, "synced", error, why))
        keep_alive(context, group, member, "SyncGroup answered")


def synced_body(group: Group, member: Member, error: int = NONE) -> Body:
    """SyncGroupResponse; with an error there is no protocol."""
    named = error == NONE
    return {
        "ErrorCode": error,
        "ProtocolType": group.protocol_type if named else None,
        "ProtocolName": group.protocol if named else None,
        "Assignment": member.assignment,
    }


# members go


def remove(context: Context, group: Group, member: Member) -> None:
    """Takes a member out; its JoinGroup, if one waits, learns that it is unknown. (A waiting SyncGroup is left alone by
    Kafka; here it is answered too, so that no request waits for ever.)"""
    check = Check(0, "removed", UNKNOWN_MEMBER_ID, f"{member.label} was removed from group {group.id}")
    context.release(group.await_join(member, None), unjoined_body(UNKNOWN_MEMBER_ID, ""), check)
    ticket, member.syncing = member.syncing, None
    context.release(ticket, {"ErrorCode": UNKNOWN_MEMBER_ID}, check)
    context.purgatory.end(Key(HEARTBEAT, group.id, member.id))
    group.remove(member.id)


def _after_eviction(context: Context, group: Group, why: str, member: str | None) -> None:
    """removeMemberAndUpdateClassicGroup, removePendingMemberAndUpdateClassicGroup. From 4.0 on they do not wait for the
    end of the time for which a first rebalance is held back."""
    if member is not None and group.state in (GroupState.STABLE, GroupState.COMPLETING):
        prepare(context, group, why, member, "evicted")
    elif group.state is GroupState.PREPARING and group.all_joined and context.since(4, 0):
        complete_join(context, group)
    elif group.state is GroupState.PREPARING:
        context.purgatory.check(Key(JOIN, group.id), context.now)


def after_leaving(context: Context, group: Group, why: str, member: str, pending: bool) -> None:
    """What a group does when members have left of their own will. pending: only ids that were handed out; for those
    only 4.0 and later begin a rebalance."""
    if group.state in (GroupState.STABLE, GroupState.COMPLETING) and (not pending or context.since(4, 0)):
        prepare(context, group, why, member, "left")
    elif group.state is GroupState.PREPARING:
        context.purgatory.check(Key(JOIN, group.id), context.now)


def replace(context: Context, group: Group, old: Member, new_id: str) -> Member:
    """replaceStaticMember: what waits for the old incarnation is answered with FENCED_INSTANCE_ID."""
    why = f"instance {old.instance_id} joined anew as {new_id}"
    check = Check(0, "fenced", FENCED_INSTANCE_ID, why)
    context.release(group.await_join(old, None), unjoined_body(FENCED_INSTANCE_ID, old.id), check)
    ticket, old.syncing = old.syncing, None
    context.release(ticket, {"ErrorCode": FENCED_INSTANCE_ID}, check)
    context.purgatory.end(Key(HEARTBEAT, group.id, old.id))
    new = group.replace(old, new_id)
    context.tell(group, "fenced", why, old.id, {"by": new_id, "instance_id": old.instance_id})
    keep_alive(context, group, new, "JoinGroup")
    return new


# groups go


def clean_up_later(context: Context, group: Group) -> None:
    """cleanupGroupMetadata: an empty group that holds no offsets is forgotten at the next round."""
    wait = context.settings.offsets_retention_check_interval_ms
    context.purgatory.wait(Key(CLEANUP, group.id), context.now + wait * MS)


def _clean_up(context: Context, group: Group, _: str) -> None:
    if group.state is not GroupState.EMPTY:
        return
    offset_retention.expire(context, group.id, group.since if group.protocol_type else None)
    if group.pending or context.offsets.holds(group.id):
        clean_up_later(context, group)
        return
    bury(context, group, f"empty for {elapsed(group.since, context.now)} and without offsets")


def bury(context: Context, group: Group, why: str, error: int = NOT_COORDINATOR) -> None:
    """To Dead and out of the coordinator; whoever still waits gets the error."""
    check = Check(0, "group dead", error, f"{errors[error].name}: {why}")
    for member in list(group.members.values()):
        context.release(group.await_join(member, None), unjoined_body(error, member.id), check)
        ticket, member.syncing = member.syncing, None
        context.release(ticket, {"ErrorCode": error}, check)
        context.purgatory.end(Key(HEARTBEAT, group.id, member.id))
    for member_id in group.pending:
        context.purgatory.end(Key(HEARTBEAT, group.id, member_id))
    for kind in (JOIN, SYNC, CLEANUP):
        context.purgatory.end(Key(kind, group.id))
    group.go(GroupState.DEAD, context.now)
    context.groups.pop(group.id, None)
    context.tell(group, "dead", why)
