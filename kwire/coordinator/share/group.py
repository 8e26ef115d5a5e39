"""A share group (KIP-932) as its coordinator keeps it: members, epochs, and which partitions each shall read. No I/O.

    group = ShareGroup(name, settings, topics, states)
    body, check = group.heartbeat(body, caller, now)   # every answer is immediate; check says what decided it
    group.tick(now); group.due                                  # sessions that end, partitions that become ready
    group.topics_changed(); group.expire(member, now)
    group.describe(version); group.state; group.events()

Members share partitions, so that nobody has to give one up before another gets it: a member has its target as soon as
it hears of it. A partition is given away only when its state is initialised, which happens right after the heartbeat
that brings its topic; the next heartbeat then finds it. Rules: shareGroupHeartbeat of Kafka's GroupMetadataManager,
ShareGroup, ShareGroupAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kwire.coordinator.assignors import Assignment, SubscribedMember
from kwire.coordinator.consumer.bodies import by_topic, flat, refusal
from kwire.coordinator.consumer.checks import JOIN, LEAVE
from kwire.coordinator.consumer.members import walk_order
from kwire.coordinator.consumer.topics import hash_of
from kwire.coordinator.share import checks
from kwire.coordinator.share.assignor import assign_simple
from kwire.coordinator.share.states import SharePartitionKey, ShareStates
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.types import MS, Check, ClientIdentity, Event, GroupSettings, KnownTopic
from kwire.schema import codes

SESSION, INITIALISE = "session", "initialise"
ASSIGNOR: Final = "simple"


@dataclass(slots=True)
class ShareMember:
    """heard: when its last accepted heartbeat came, ns."""

    id: str
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = -1
    assigned: frozenset[tuple[UUID, int]] = frozenset()
    heard: int = 0


class ShareGroup:
    """One group. members: by id. epoch: the group epoch; target_epoch: the one its target was computed for.
    initialised: partitions that have their state, by topic; waiting: those that are about to get it. topics_hash: of
    the topics that members ask for, as they were when last looked at."""

    type: Final = "share"
    protocol_type: Final = "share"
    lapses: Final = False  # an empty share group stays until it is deleted
    makes_way: Final = False

    def __init__(
        self, name: str, settings: GroupSettings, topics: Callable[[], Mapping[str, KnownTopic]], states: ShareStates
    ) -> None:
        self.name = name
        self.epoch = self.target_epoch = 1
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.initialised: dict[UUID, set[int]] = {}
        self.fresh = True
        self.settings, self.all_topics, self._states = settings, topics, states
        self._topics: dict[str, KnownTopic] = {}  # those asked for
        self.topics_hash = 0
        self._stale = False  # topics have changed since
        self.waiting: dict[UUID, set[int]] = {}
        self.target_time: int | None = None
        self._slots = 2  # of the hash table that Kafka keeps members in
        self.timers = Timers()
        self._events: list[Event] = []

    def configure(self, settings: GroupSettings) -> None:
        """The configuration that counts for this group from now on."""
        self.settings = settings

    # What it says of itself

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def due(self) -> int | None:
        return self.timers.due

    def events(self) -> list[Event]:
        """What happened since it was last asked."""
        drained, self._events = self._events, []
        return drained

    def subscribes(self, topic: str) -> bool:
        return any(topic in member.names for member in self.members.values())

    def describe(self, version: int) -> dict[str, Any]:  # noqa: ARG002
        """A DescribedGroup of ShareGroupDescribe."""
        names = {topic.id: topic.name for topic in self.all_topics().values()}
        return {
            "ErrorCode": codes.NONE,
            "ErrorMessage": None,
            "GroupId": self.name,
            "GroupState": self.state,
            "GroupEpoch": self.epoch,
            "AssignmentEpoch": self.target_epoch,
            "AssignorName": ASSIGNOR,
            "Members": [_described(member, names) for member in self.members.values()],
            "AuthorizedOperations": -(2**31),
        }

    # Time and the world outside

    def tick(self, now: int) -> None:
        """Initialises what waits for it, and removes the members whose session has ended."""
        while (expired := self.timers.pop(now)) is not None:
            key, deadline = expired
            if key.kind == INITIALISE:
                self._initialise()
                continue
            timeout = self.settings.group_share_session_timeout_ms
            member = self.members[key.member]
            why = f"no heartbeat for {timeout:,} ms (share session timeout)"
            facts = {"last_heartbeat": member.heard, "session_timeout_ms": timeout, "deadline": deadline}
            self._remove(member, deadline, "evicted", why, facts)

    def expire(self, member_id: str, now: int) -> bool:
        """Ends a member's session now; says whether there was such a member."""
        member = self.members.get(member_id)
        if member is not None:
            self._remove(member, now, "evicted", "its session was ended", {"last_heartbeat": member.heard})
        return member is not None

    def topics_changed(self) -> None:
        """Topics came, went or grew: the next heartbeat of any member looks again."""
        self._stale = True
        there = {topic.id for topic in self.all_topics().values()}
        for gone in self.initialised.keys() - there:
            del self.initialised[gone]

    def set_start(self, topic: UUID, partition: int, start: int) -> None:
        """The group will begin there in this partition; what was known of it is gone."""
        self.fresh = False
        self._states.initialise(SharePartitionKey(self.name, topic, partition), self.epoch, start)
        self.initialised.setdefault(topic, set()).add(partition)

    def restore(self, topics_hash: int) -> None:
        """Its members are there again: it has the partitions of which state is stored, and looks at its topics, which
        had that hash."""
        self.fresh = False
        for place in self._states.known:
            if place.group == self.name:
                self.initialised.setdefault(place.topic, set()).add(place.partition)
        self._look()
        self._stale = self.topics_hash != topics_hash
        self.topics_hash = topics_hash

    def _initialise(self) -> None:
        for topic, partitions in self.waiting.items():
            for partition in partitions:
                self._states.initialise(SharePartitionKey(self.name, topic, partition), self.epoch, -1)
            self.initialised.setdefault(topic, set()).update(partitions)
        self.waiting.clear()

    # The heartbeat

    def heartbeat(
        self,
        body: Mapping[str, Any],
        caller: ClientIdentity,
        now: int,
    ) -> tuple[dict[str, Any], Check]:
        """The answer to a ShareGroupHeartbeat and the check that decided it."""
        self.tick(now)
        refused = checks.check_request(body)
        epoch, member_id = body["MemberEpoch"], body["MemberId"]
        if refused is None and self.fresh and epoch != JOIN:
            refused = checks.unknown_group(self.name, epoch)
        if refused is None and epoch == LEAVE:
            return self._leave(member_id, now)
        if refused is None:
            refused = checks.check_size(self.members, member_id, self.settings.group_share_max_size)
        member = self.members.get(member_id)
        if refused is None and member is None and epoch != JOIN:
            refused = checks.unknown_member(self.name, member_id)
        if refused is None and member is not None:
            refused = checks.check_epoch(member.epoch, member.previous_epoch, epoch)
        if refused is not None:
            return refusal(refused), refused
        return self._accept(body, caller, now)

    def _accept(self, body: Mapping[str, Any], caller: ClientIdentity, now: int) -> tuple[dict[str, Any], Check]:
        epoch, settings = body["MemberEpoch"], self.settings
        member, changed = self._seat(body, caller, now)
        known, before = member.epoch, member.assigned
        reasons = ["subscribed names changed"] if changed else []
        if self.target_epoch >= self.epoch and self._unassigned():
            reasons.append("partitions are ready that nobody has")
        if (reasons or self._stale) and self._look():
            reasons.append("topics changed")
        if reasons:
            self._bump(now, f"{member.id}: {', '.join(reasons)}", member.id)
        self._compute_target(now)
        self._reconcile(member, bool(reasons), now)
        member.heard = now
        self.timers.set(Key(SESSION, self.name, member.id), now + settings.group_share_session_timeout_ms * MS)
        self._wait_for_new_partitions(now)
        told = epoch == JOIN or body.get("SubscribedTopicNames") is not None or member.assigned != before
        answer = {
            "ErrorCode": codes.NONE,
            "MemberId": member.id,
            "MemberEpoch": member.epoch,
            "HeartbeatIntervalMs": settings.group_share_heartbeat_interval_ms,
            "Assignment": {"TopicPartitions": by_topic(member.assigned)} if told else None,
        }
        why = f"member epoch {epoch} accepted, {known} was known, {member.epoch} is now"
        return answer, Check(5, "accepted", codes.NONE, why)

    def _seat(self, body: Mapping[str, Any], caller: ClientIdentity, now: int) -> tuple[ShareMember, bool]:
        """The member, new if it joins; and whether it asks for other topics than before."""
        self.fresh = False
        member = self.members.get(body["MemberId"])
        if member is None:
            member = self.members[body["MemberId"]] = ShareMember(body["MemberId"])
            member.client_id = caller.client_id
            self._event(now, "joined", member, "a new member", {})
        elif body["MemberEpoch"] == JOIN:
            self._event(now, "rejoined", member, f"joins again, at epoch {member.epoch}", {})
        if body.get("RackId") is not None:
            member.rack = body["RackId"]
        member.client_id, member.client_host = caller.client_id, caller.host
        names = body.get("SubscribedTopicNames")
        if names is None or frozenset(names) == member.names:
            return member, False
        member.names = frozenset(names)
        return member, True

    def _look(self) -> bool:
        """Looks at the topics that members ask for; says whether they are others than before."""
        self._stale = False
        there, asked = self.all_topics(), {name for each in self.members.values() for name in each.names}
        self._topics = {name: there[name] for name in asked if name in there}
        before, self.topics_hash = self.topics_hash, hash_of(self._topics)
        return self.topics_hash != before

    def _unassigned(self) -> bool:
        """Whether a topic that is asked for has other partitions ready than members have in their targets."""
        asked = {self._topics[name].id for each in self.members.values() for name in each.names if name in self._topics}
        ready = {topic: found for topic, found in self.initialised.items() if topic in asked}
        given: dict[UUID, set[int]] = {}
        for target in self.targets.values() if ready else ():
            for topic, partitions in target.items():
                given.setdefault(topic, set()).update(partitions)
        return any(given.get(topic) != partitions for topic, partitions in ready.items())

    def _wait_for_new_partitions(self, now: int) -> None:
        for topic in self._topics.values():
            ready = self.initialised.get(topic.id, set()) | self.waiting.get(topic.id, set())
            missing = set(range(topic.partitions)) - ready
            if missing:
                self.waiting.setdefault(topic.id, set()).update(missing)
                self.timers.set(Key(INITIALISE, self.name), now)

    # The target

    def _bump(self, now: int, why: str, member: str | None = None) -> None:
        self.epoch += 1
        self._events.append(Event(now, self.name, "epoch", member, self.epoch, why, {"epoch": self.epoch}))

    def _compute_target(self, now: int) -> None:
        interval = self.settings.group_share_assignment_interval_ms * MS
        if self.epoch <= self.target_epoch:
            return
        if self.target_time is not None and interval and now < self.target_time + interval:
            return
        order, self._slots = walk_order(self.members, self._slots)
        walked = [self.members[each] for each in order]
        subscribers = [
            SubscribedMember(each.id, None, self._ids(each), self.targets.get(each.id, {})) for each in walked
        ]
        same = all(each.names == walked[0].names for each in walked)
        self.targets = assign_simple(subscribers, self.initialised, same)
        self.target_epoch, self.target_time = self.epoch, now
        facts = {"epoch": self.epoch, "assignor": ASSIGNOR, "members": len(self.members)}
        why = f"{ASSIGNOR} assignor, {len(self.members):,} members"
        self._events.append(Event(now, self.name, "target", None, self.epoch, why, facts))

    def _ids(self, member: ShareMember) -> frozenset[UUID]:
        return frozenset(self._topics[name].id for name in member.names if name in self._topics)

    def _reconcile(self, member: ShareMember, changed: bool, now: int) -> None:
        if member.epoch == self.target_epoch and not changed:
            return
        asked = self._ids(member)
        assigned = frozenset(each for each in flat(self.targets.get(member.id, {})) if each[0] in asked)
        gone, come = member.assigned - assigned, assigned - member.assigned
        epoch = member.epoch
        if epoch != self.target_epoch:
            member.previous_epoch, member.epoch = member.epoch, self.target_epoch
        member.assigned = assigned
        if gone or come or epoch != member.epoch:
            facts = {"epoch": member.epoch, "assigned": by_topic(come), "released": by_topic(gone)}
            self._event(now, "reconciled", member, f"epoch {epoch} to {member.epoch}", facts)

    # Leaving

    def _leave(self, member_id: str, now: int) -> tuple[dict[str, Any], Check]:
        member = self.members.get(member_id)
        if member is None:
            check = checks.unknown_member(self.name, member_id)
            return refusal(check), check
        self._remove(member, now, "left", f"MemberEpoch {LEAVE}", {})
        body = {"ErrorCode": codes.NONE, "MemberId": member_id, "MemberEpoch": LEAVE, "HeartbeatIntervalMs": 0}
        return body, Check(4, "left", codes.NONE, f"{member_id} was a member and has left")

    def _remove(self, member: ShareMember, time: int, kind: str, why: str, facts: Mapping[str, Any]) -> None:
        del self.members[member.id]
        self.targets.pop(member.id, None)
        self.timers.discard(Key(SESSION, self.name, member.id))
        self._event(time, kind, member, why, facts)
        self._look()
        self._bump(time, f"{member.id} {kind}", member.id)
        if not self.members:
            self._events.append(Event(time, self.name, "empty", None, self.epoch, "the last member is gone"))

    def _event(self, time: int, kind: str, member: ShareMember, why: str, facts: Mapping[str, Any]) -> None:
        told = {"client_id": member.client_id, **facts}
        self._events.append(Event(time, self.name, kind, member.id, member.epoch, why, told))


def _described(member: ShareMember, names: Mapping[UUID, str]) -> dict[str, Any]:
    topics = [topic for topic in by_topic(member.assigned) if topic["TopicId"] in names]
    return {
        "MemberId": member.id,
        "RackId": member.rack,
        "MemberEpoch": member.epoch,
        "ClientId": member.client_id,
        "ClientHost": member.client_host,
        "SubscribedTopicNames": sorted(member.names),
        "Assignment": {"TopicPartitions": [{"TopicName": names[topic["TopicId"]], **topic} for topic in topics]},
    }
