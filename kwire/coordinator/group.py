"""A classic group: its state, its generation, its members, and what follows from them alone.

After ClassicGroup and ClassicGroupMember of Kafka's group-coordinator (GroupMetadata and MemberMetadata in Scala,
before 4.0). Nothing here knows of time, answers or other groups: joins.py and classic.py act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kwire.coordinator.hashorder import HashOrdered, trie_order
from kwire.coordinator.subscriptions import topics_of
from kwire.coordinator.timers import Key
from kwire.schema.codes import FENCED_INSTANCE_ID, NONE, UNKNOWN_MEMBER_ID

CONSUMER = "consumer"  # the protocol type whose metadata the coordinator reads a little of


class GroupState(StrEnum):
    """What ListGroups calls it. CompletingRebalance was AwaitingSync before 1.1."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


COMES_FROM: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING}),
    GroupState.PREPARING: frozenset({GroupState.STABLE, GroupState.COMPLETING, GroupState.EMPTY}),
    GroupState.COMPLETING: frozenset({GroupState.PREPARING}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING}),
    GroupState.DEAD: frozenset(GroupState),
}


@dataclass(slots=True)
class Member:
    """A member, or one that is joining. Times are ns; joining and syncing hold the ticket of the request that waits.

    is_new: it has not come through its first join yet. heard: what last moved its deadline.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    last_heartbeat: int = 0
    heard: str = ""
    is_new: bool = False
    joining: int | None = None
    syncing: int | None = None
    key: Key | None = None  # of its wait for the next heartbeat

    def metadata(self, protocol: str | None) -> bytes:
        """What it said under this protocol; empty if it does not support it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The first of its protocols that all support."""
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def label(self) -> str:
        """Its id; with the instance id if it is static."""
        return self.id if self.instance_id is None else f"{self.id} (instance {self.instance_id})"


@dataclass(slots=True)
class Group:
    """A classic group. leader, protocol and protocol_type are None while there is none."""

    id: str
    state: GroupState = GroupState.EMPTY
    before: GroupState = GroupState.DEAD  # the state that it was in before
    since: int = 0  # when it came into this state, ns
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: HashOrdered[Member] = field(default_factory=HashOrdered)
    instances: dict[str, str] = field(default_factory=dict)  # group.instance.id -> member id
    pending: dict[str, int] = field(default_factory=dict)  # ids handed out, not joined yet -> session timeout, ms
    unsynced: set[str] = field(default_factory=set)  # members whose SyncGroup of this generation has not come
    joining: int = 0  # members whose JoinGroup waits
    grew: bool = False  # somebody joined while the first rebalance is being held back
    hold_until: int = 0  # how long at most, ns
    rebalance_began: int = 0  # ns
    topics: frozenset[str] | None = None  # what the members subscribe to; None: not known
    supported: Counter[str] = field(default_factory=Counter)  # protocol -> members that support it
    scala: bool = False  # kept by the coordinator that was written in Scala, which breaks ties in its own way

    type = "classic"

    def go(self, state: GroupState, now: int) -> None:
        """Raises ValueError for a transition that the table does not allow."""
        if self.state not in COMES_FROM[state]:
            raise ValueError(f"group {self.id} cannot go from {self.state} to {state}")
        self.before, self.state, self.since = self.state, state, now

    @property
    def can_rebalance(self) -> bool:
        return self.state in COMES_FROM[GroupState.PREPARING]

    @property
    def all_joined(self) -> bool:
        return self.joining == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def missing(self) -> Iterator[Member]:
        """Members that have not rejoined."""
        return (member for member in self.members.values() if member.joining is None)

    # members

    def add(self, member: Member) -> None:
        """Takes a member in, as the leader if there is none."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self.supported.update({name for name, _ in member.protocols})
        self.joining += member.joining is not None
        self.pending.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        """Takes a member, or an id that was only handed out, away; the next member becomes leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._uncount(member)
            self.joining -= member.joining is not None
            if member.instance_id is not None:
                self.instances.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.unsynced.discard(member_id)

    def replace(self, old: Member, new_id: str) -> Member:
        """Gives a static member's place to its next incarnation; nothing of the old one waits any more."""
        new = Member(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.session_timeout_ms,
            old.rebalance_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
        )
        self.members.pop(old.id)
        self.members[new_id] = new
        if self.leader == old.id:
            self.leader = new_id
        if old.instance_id is not None:
            self.instances[old.instance_id] = new_id
        return new

    def update(
        self, member: Member, protocols: tuple[tuple[str, bytes], ...], session_ms: int, rebalance_ms: int
    ) -> None:
        """What a member says when it rejoins."""
        self._uncount(member)
        member.protocols = protocols
        self.supported.update({name for name, _ in protocols})
        member.session_timeout_ms, member.rebalance_timeout_ms = session_ms, rebalance_ms

    def await_join(self, member: Member, ticket: int | None) -> int | None:
        """The member's JoinGroup waits (or no longer, for None); returns the ticket that waited until now."""
        before, member.joining = member.joining, ticket
        self.joining += (ticket is not None) - (before is not None)
        return before

    def _uncount(self, member: Member) -> None:
        self.supported.subtract({name for name, _ in member.protocols})

    # questions

    def refuses(self, member_id: str, instance_id: str | None) -> int:
        """ClassicGroup.validateMember: NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        if instance_id is not None:
            known = self.instances.get(instance_id)
            if known is None:
                return UNKNOWN_MEMBER_ID
            if known != member_id:
                return FENCED_INSTANCE_ID
        return NONE if member_id in self.members else UNKNOWN_MEMBER_ID

    def why_refused(self, member_id: str, instance_id: str | None) -> tuple[str, str]:
        """Name and reason of the check that refuses() made."""
        who = member_id or "an empty id"
        known = self.instances.get(instance_id or "")
        if instance_id is not None and known is None:
            return "instance", f"group {self.id} has no instance {instance_id}"
        if instance_id is not None and known != member_id:
            return "instance", f"instance {instance_id} is {known} now, not {who}"
        return "member", f"{who} is no member of group {self.id}"

    def supports(self, protocol_type: str, protocols: Sequence[str]) -> bool:
        """Whether who names this type and these protocols could be a member."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(self.supported[name] == size for name in protocols)

    def select_protocol(self) -> str:
        """The most voted among the protocols that every member supports. There must be members."""
        size = len(self.members)
        candidates = frozenset(name for name, count in self.supported.items() if count == size)
        votes: HashOrdered[int] = HashOrdered()
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(trie_order(votes) if self.scala else votes, key=lambda name: votes[name])

    def subscribed_to(self, topic: str) -> bool:
        """ClassicGroup.isSubscribedToTopic: of consumers whose topics are not known, any."""
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    # steps

    def elect(self) -> bool:
        """Makes sure that the leader has rejoined, if need be by taking another; False if nobody has."""
        leader = self.members.get(self.leader or "")
        if leader is None:
            return False
        if leader.joining is None:
            joined = next((member for member in self.members.values() if member.joining is not None), None)
            if joined is None:
                return False
            self.leader = joined.id
        return True

    def next_generation(self, now: int) -> None:
        """To CompletingRebalance with a protocol, or to Empty."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.topics = self.subscribed()
        self.go(GroupState.COMPLETING if self.members else GroupState.EMPTY, now)
        self.unsynced.clear()

    def subscribed(self) -> frozenset[str] | None:
        """What topics is to be."""
        if self.protocol_type != CONSUMER:
            return None
        found: set[str] = set()
        for member in self.members.values():
            topics = topics_of(member.metadata(self.protocol))
            if topics is None:
                return None
            found |= topics
        return frozenset(found)

    def roster(self) -> list[dict[str, Any]]:
        """The members as the leader is told of them: JoinGroupResponse.Members."""
        return [
            {"MemberId": member.id, "GroupInstanceId": member.instance_id, "Metadata": member.metadata(self.protocol)}
            for member in self.members.values()
        ]
