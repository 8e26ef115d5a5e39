"""A consumer group's member as it says that it is: seated when it joins, its words noted, taken out with its timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from kwire.coordinator.assignors import Assignment
from kwire.coordinator.consumer.checks import JOIN
from kwire.coordinator.consumer.members import ConsumerMember, Members
from kwire.coordinator.consumer.topic_patterns import TopicPattern
from kwire.coordinator.consumer.topics import ConsumerTopics
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.types import ClientIdentity

SESSION: Final = "session"
REBALANCE: Final = "rebalance"
JOINING: Final = "joining"  # a member of the classic protocol must come back with a JoinGroup
SYNCING: Final = "syncing"  # and then with a SyncGroup


class SeatingGroup(Protocol):
    """A consumer group, as far as its members' coming and going touches it; see ConsumerGroup."""

    name: str
    fresh: bool
    new_id: Callable[[str], str]
    roster: Members
    members: dict[str, ConsumerMember]
    targets: dict[str, Assignment]
    reconciled: set[str]
    topics: ConsumerTopics
    timers: Timers

    def remove(self, member: ConsumerMember, time: int, kind: str, why: str, facts: Mapping[str, Any]) -> None: ...

    def event(self, time: int, kind: str, member: ConsumerMember, why: str, facts: Mapping[str, Any]) -> None: ...


def seat(group: SeatingGroup, body: Mapping[str, Any], caller: ClientIdentity, now: int) -> ConsumerMember:
    """The member, new if it joins. A static member that comes back takes over what it left."""
    member_id = body["MemberId"] or group.new_id(caller.client_id)
    instance = body.get("InstanceId")
    holder = group.roster.static(instance)
    group.fresh = False
    if body["MemberEpoch"] == JOIN and holder is not None:
        unseat(group, holder)
        if (other := group.members.get(member_id)) is not None:
            group.remove(other, now, "left", "another member took its id", {"instance": instance})
        group.targets[member_id] = group.targets.pop(holder.id, {})
        old, holder.id = holder.id, member_id
        holder.hold = holder.hold._replace(epoch=0, previous_epoch=0)
        group.roster.put(holder)
        why = f"instance id {instance} comes back, after member {old}"
        group.event(now, "rejoined", holder, why, {"instance": instance, "replaced": old})
        return holder
    member = group.members.get(member_id)
    if member is None:
        member = ConsumerMember(member_id, client_id=caller.client_id)
        group.roster.put(member)
        group.event(now, "joined", member, "a new member", {"instance": instance})
    elif body["MemberEpoch"] == JOIN:
        group.event(now, "rejoined", member, f"joins again, at epoch {member.hold.epoch}", {"instance": instance})
    return member


def unseat(group: SeatingGroup, member: ConsumerMember) -> None:
    """Takes a member and its timers out; what it asks for stays counted."""
    group.roster.take_out(member)
    group.reconciled.discard(member.id)
    for kind in (SESSION, REBALANCE, JOINING, SYNCING):
        group.timers.discard(Key(kind, group.name, member.id))


def note(
    group: SeatingGroup,
    member: ConsumerMember,
    body: Mapping[str, Any],
    pattern: TopicPattern | None,
    caller: ClientIdentity,
) -> tuple[list[str], bool]:
    """Writes down what the member says of itself: why the group epoch must grow, and whether it asks for others."""
    member.classic = None
    group.roster.name(member, body.get("InstanceId"))
    if body.get("RackId") is not None:
        member.rack = body["RackId"]
    if body.get("RebalanceTimeoutMs", -1) != -1:
        member.rebalance_timeout_ms = body["RebalanceTimeoutMs"]
    if body.get("ServerAssignor") is not None:
        member.assignor = body["ServerAssignor"]
    member.client_id, member.client_host = caller.client_id, caller.host
    names, regex = body.get("SubscribedTopicNames"), body.get("SubscribedTopicRegex")
    reasons: list[str] = []
    if names is not None and (asked := frozenset(names)) != member.names:
        group.topics.rename(member.names, asked)
        member.names = asked
        reasons.append("subscribed names changed")
    changed = bool(reasons)
    if regex is not None and regex != member.regex:
        changed = True
        if group.topics.repattern(member.regex, regex, pattern):
            reasons.append("subscribed pattern changed")
        member.regex = regex
    return reasons, changed
