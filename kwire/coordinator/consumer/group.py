"""A consumer group (KIP-848) as its coordinator keeps it: members, epochs, the target and the way there. No I/O.

    group = ConsumerGroup(name, settings, topics, new_id)
    body, check = group.heartbeat(version, body, caller, now)   # every answer is immediate; check says what decided it
    group.tick(now); group.due                                  # session and rebalance deadlines; heartbeat ticks too
    group.topics_changed(); group.expire(member, now)           # from outside: other topics, a session ended on purpose
    group.offset_check(member, epoch, commit=True, …)           # Check for OffsetCommit, OffsetFetch, TxnOffsetCommit
    group.describe(version); group.state; group.events()        # a DescribedGroup; what ListGroups says; what happened

A fresh ConsumerGroup is one that nobody stored: it answers GROUP_ID_NOT_FOUND to all but a join, and is worth storing
once `fresh` is false. checks.py has the checks, reconciliation.py the members' way to the target, assignors the target.
Bodies have official names; times are ns.

The group epoch grows when a subscription, a member or a topic changes; a heartbeat that finds it ahead of the target
computes a new target (from 4.3 on at most every second, KIP-1263); each member then moves there in its own heartbeats.
Rules: GroupMetadataManager, ModernGroup and ConsumerGroup of Kafka 3.9 to 4.3, by `settings.era`; members of the
classic protocol in such a group (the online upgrade) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kwire.coordinator import assignors, codes
from kwire.coordinator.consumer import bodies, checks
from kwire.coordinator.consumer.checks import JOIN, LEAVE
from kwire.coordinator.consumer.members import LEAVE_STATIC, Member, Members
from kwire.coordinator.consumer.reconciliation import Hold, MemberState, Partition, Target, reconcile
from kwire.coordinator.consumer.topic_patterns import BadPattern, TopicPattern
from kwire.coordinator.consumer.topics import ConsumerTopics
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.types import MS, Caller, Check, Event, Settings, Topic

ASSIGNMENT_INTERVAL_MS: Final = 1_000  # group.consumer.assignment.interval.ms since 4.3
DEFAULT_ASSIGNOR: Final = "uniform"
SESSION, REBALANCE = "session", "rebalance"


class ConsumerGroup:
    """One group. members: by id. epoch: the group epoch; target_epoch: the one its target was computed for."""

    type: Final = "consumer"
    protocol_type: Final = "consumer"
    lapses: Final = True
    makes_way: Final = True

    def __init__(
        self,
        name: str,
        settings: Settings,
        topics: Callable[[], Mapping[str, Topic]],
        new_id: Callable[[str], str],
    ) -> None:
        self.name = name
        self.epoch = self.target_epoch = 1 if settings.era >= (4, 3) else 0
        self.targets: dict[str, assignors.Assignment] = {}
        self.fresh = True
        self._roster = Members()
        self.members = self._roster.by_id
        self._new_id = new_id
        self.configure(settings)
        self._target_time: int | None = None
        self._reconciled: set[str] = set()  # members that have reached the target
        self._topics = ConsumerTopics(topics)
        self._timers = Timers()
        self._events: list[Event] = []

    def configure(self, settings: Settings) -> None:
        """The configuration that counts for this group from now on."""
        self._settings = settings
        interval = settings.group_consumer_assignment_interval_ms
        since_4_3 = ASSIGNMENT_INTERVAL_MS if settings.era >= (4, 3) else 0
        self._interval = (since_4_3 if interval is None else interval) * MS

    # What it says of itself

    @property
    def state(self) -> str:
        """Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        return "Stable" if len(self._reconciled) == len(self.members) else "Reconciling"

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for, uniform when nobody asks."""
        return self._roster.preferred_assignor(None) or DEFAULT_ASSIGNOR

    @property
    def due(self) -> int | None:
        """When to tick next: when a member's time is up, or before."""
        return self._timers.due

    def events(self) -> list[Event]:
        """What happened since it was last asked."""
        drained, self._events = self._events, []
        return drained

    def subscribes(self, topic: str) -> bool:
        """Whether a member asks for the topic, by name or pattern."""
        return topic in self._topics.names

    def describe(self, version: int) -> dict[str, Any]:
        """A DescribedGroup of ConsumerGroupDescribe."""
        names, era = self._topics.names_by_id(), self._settings.era
        members = [
            bodies.described(each, self.targets.get(each.id, {}), names, version, era) for each in self.members.values()
        ]
        epochs = self.epoch, self.target_epoch
        return bodies.described_group(self.name, self.state, epochs, self.assignor, members)

    # Offsets

    def offset_check(
        self,
        member_id: str | None,
        epoch: int,
        commit: bool,
        version: int = 9,
        instance: str | None = None,
        transactional: bool = False,
        partition: Partition | None = None,
    ) -> Check:
        """Whether offsets may be committed or fetched. partition: asked once more for each of a commit that comes with
        an older epoch (`partition` None lets it pass from 4.2 on)."""
        asked = checks.OffsetRequest(member_id or "", epoch, commit, version, instance, transactional, partition)
        return checks.check_offsets(self.name, self.members, asked, member_id is None, self._settings.era)

    # Time and the world outside

    def tick(self, now: int) -> None:
        """Removes the members whose session ended, or who did not give up partitions in their rebalance timeout."""
        while (expired := self._timers.pop(now)) is not None:
            key, deadline = expired
            member = self.members[key.member]
            if key.kind == SESSION:
                timeout = self._settings.group_consumer_session_timeout_ms
                why = f"no heartbeat for {timeout:,} ms (group.consumer.session.timeout.ms)"
                facts = {"last_heartbeat": member.heard, "session_timeout_ms": timeout, "deadline": deadline}
                self._remove(member, deadline, "evicted", why, facts)
            elif member.fence_epoch == member.hold.epoch:
                timeout = member.rebalance_timeout_ms
                kept = bodies.by_topic(member.hold.revoking)
                why = f"did not give up its partitions at epoch {member.hold.epoch} within {timeout:,} ms"
                late: dict[str, Any] = {"rebalance_timeout_ms": timeout, "deadline": deadline, "revoking": kept}
                self._remove(member, deadline, "fenced", f"{why} (RebalanceTimeoutMs)", late)

    def expire(self, member_id: str, now: int) -> bool:
        """Ends a member's session now; says whether there was such a member."""
        member = self.members.get(member_id)
        if member is not None:
            self._remove(member, now, "evicted", "its session was ended", {"last_heartbeat": member.heard})
        return member is not None

    def topics_changed(self) -> None:
        """Topics came, went or grew: the next heartbeat of any member looks again."""
        self._topics.changed()

    # The heartbeat

    def heartbeat(
        self, version: int, body: Mapping[str, Any], caller: Caller, now: int
    ) -> tuple[dict[str, Any], Check]:
        """The answer to a ConsumerGroupHeartbeat and the check that decided it."""
        self.tick(now)
        refused = checks.check_request(version, body, assignors.ASSIGNORS, self._settings.era)
        if refused is None and self.fresh and body["MemberEpoch"] != JOIN:
            refused = Check(
                3,
                "group",
                codes.GROUP_ID_NOT_FOUND,
                f"there is no group {self.name}, and MemberEpoch is {body['MemberEpoch']}",
            )
        if refused is not None:
            return bodies.refusal(refused), refused
        if body["MemberEpoch"] < 0:
            return self._leave(body, now)
        owned = bodies.owned_of(body.get("TopicPartitions"))
        pattern, refused = self._admit(body, owned)
        if refused is not None:
            return bodies.refusal(refused), refused
        return self._accept(body, owned, pattern, caller, now)

    def _admit(
        self, body: Mapping[str, Any], owned: frozenset[Partition] | None
    ) -> tuple[TopicPattern | None, Check | None]:
        """Checks 4 to 8, and the pattern that is new to the group."""
        most = self._settings.group_consumer_max_size
        if len(self.members) >= most and body["MemberId"] not in self.members:
            why = f"{len(self.members):,} members, group.consumer.max.size is {most:,}"
            return None, Check(4, "size", codes.GROUP_MAX_SIZE_REACHED, why)
        refused = checks.check_member(self.name, self._roster, body, owned, self._settings.era)
        regex = body.get("SubscribedTopicRegex")
        if refused is not None or not regex or self._topics.has_pattern(regex):
            return None, refused
        try:
            return TopicPattern(regex), None
        except BadPattern as error:
            why = f"SubscribedTopicRegex {regex[:100]!r}: {error}"
            return None, Check(8, "regex", checks.INVALID_REGULAR_EXPRESSION, why)

    def _accept(
        self,
        body: Mapping[str, Any],
        owned: frozenset[Partition] | None,
        pattern: TopicPattern | None,
        caller: Caller,
        now: int,
    ) -> tuple[dict[str, Any], Check]:
        epoch = body["MemberEpoch"]
        is_new = body["MemberId"] not in self.members
        member = self._seat(body, caller, now)
        before = member.hold
        reasons, changed = self._update(member, body, pattern, caller)
        if self.epoch == 0:
            reasons.append("the group is new")
        if reasons or self._topics.is_stale:
            if self._topics.refresh():
                reasons.append("topics changed")
            if reasons:
                self._bump(now, f"{member.id}: {', '.join(reasons)}", member.id)
        self._compute_target(now, member, is_new)
        self._reconcile(member, owned, changed, now)
        member.heard = now
        timeout = self._settings.group_consumer_session_timeout_ms
        self._timers.set(Key(SESSION, self.name, member.id), now + timeout * MS)
        whole = epoch == JOIN or (
            body.get("RebalanceTimeoutMs", -1) != -1
            and body.get("SubscribedTopicNames") is not None
            and owned is not None
        )
        told = whole or member.hold.assigned != before.assigned
        answer = bodies.accepted(member, self._settings.group_consumer_heartbeat_interval_ms, told)
        if self._topics.resolve(now):
            self._bump(now, "patterns were resolved to other topics")
        why = f"member epoch {epoch} accepted, {before.epoch} was known, {member.hold.epoch} is now"
        return answer, Check(8, "accepted", codes.NONE, why)

    def _seat(self, body: Mapping[str, Any], caller: Caller, now: int) -> Member:
        """The member, new if it joins. A static member that comes back takes over what it left."""
        member_id = body["MemberId"] or self._new_id(caller.client_id)
        instance = body.get("InstanceId")
        holder = self._roster.static(instance)
        self.fresh = False
        if body["MemberEpoch"] == JOIN and holder is not None:
            self._unseat(holder)
            if (other := self.members.get(member_id)) is not None:
                self._remove(other, now, "left", "another member took its id", {"instance": instance})
            self.targets[member_id] = self.targets.pop(holder.id, {})
            old, holder.id = holder.id, member_id
            holder.hold = holder.hold._replace(epoch=0, previous_epoch=0)
            self._roster.put(holder)
            why = f"instance id {instance} comes back, after member {old}"
            self._event(now, "rejoined", holder, why, {"instance": instance, "replaced": old})
            return holder
        member = self.members.get(member_id)
        if member is None:
            member = Member(member_id, client_id=caller.client_id)
            self._roster.put(member)
            self._event(now, "joined", member, "a new member", {"instance": instance})
        elif body["MemberEpoch"] == JOIN:
            self._event(now, "rejoined", member, f"joins again, at epoch {member.hold.epoch}", {"instance": instance})
        return member

    def _unseat(self, member: Member) -> None:
        """Takes a member and its timers out; what it asks for stays counted."""
        self._roster.take_out(member)
        self._reconciled.discard(member.id)
        for kind in (SESSION, REBALANCE):
            self._timers.discard(Key(kind, self.name, member.id))

    def _update(
        self, member: Member, body: Mapping[str, Any], pattern: TopicPattern | None, caller: Caller
    ) -> tuple[list[str], bool]:
        """Writes down what the member says of itself: why the group epoch must grow, and whether it asks for others."""
        self._roster.name(member, body.get("InstanceId"))
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
            self._topics.rename(member.names, asked)
            member.names = asked
            reasons.append("subscribed names changed")
        changed = bool(reasons)
        if regex is not None and regex != member.regex:
            changed = True
            if self._topics.repattern(member.regex, regex, pattern):
                reasons.append("subscribed pattern changed")
            member.regex = regex
        return reasons, changed

    # The target and the way there

    def _bump(self, now: int, why: str, member: str | None = None) -> None:
        self.epoch += 1
        self._events.append(Event(now, self.name, "epoch", member, self.epoch, why, {"epoch": self.epoch}))

    def _compute_target(self, now: int, member: Member, is_new: bool) -> None:
        if self.epoch <= self.target_epoch:
            return
        if self._target_time is not None and self._interval and now < self._target_time + self._interval:
            return
        name = self._roster.preferred_assignor(member) or DEFAULT_ASSIGNOR
        ids = self._topics.ids
        subscribers = [
            assignors.Subscriber(each.id, each.instance, ids(each.names, each.regex), self.targets.get(each.id, {}))
            for each in self._roster.walked(member.id if is_new else None)
        ]
        self.targets = assignors.assign(name, subscribers, self._topics.partitions(), self._settings.era)
        self.target_epoch, self._target_time = self.epoch, now
        self._reconciled.clear()
        facts = {"epoch": self.epoch, "assignor": name, "members": len(self.members)}
        why = f"{name} assignor, {len(self.members):,} members"
        self._events.append(Event(now, self.name, "target", None, self.epoch, why, facts))

    def _reconcile(self, member: Member, owned: frozenset[Partition] | None, changed: bool, now: int) -> None:
        before = member.hold
        if changed or not before.is_reconciled_to(self.target_epoch):
            subscribed = self._topics.ids(member.names, member.regex)
            era = self._settings.era
            target = Target(self.target_epoch, bodies.flat(self.targets.get(member.id, {})), subscribed)
            hold = reconcile(before, target, owned, lambda each: self._roster.is_free(each, member, era), changed, era)
            if hold != before:
                self._take(member, hold, now)
        if not member.hold.is_reconciled_to(self.target_epoch):
            self._reconciled.discard(member.id)
        elif member.id not in self._reconciled:
            self._reconciled.add(member.id)
            if self.state == "Stable":
                self._events.append(Event(now, self.name, "stable", None, self.epoch, "every member has its target"))

    def _take(self, member: Member, hold: Hold, now: int) -> None:
        """The member's hold changes: owners, its rebalance deadline, the event."""
        before = member.hold
        released = self._roster.hold(member, hold)
        key = Key(REBALANCE, self.name, member.id)
        if hold.state is MemberState.UNREVOKED_PARTITIONS:
            member.fence_epoch = hold.epoch
            self._timers.set(key, now + max(member.rebalance_timeout_ms, 0) * MS)
        else:
            member.fence_epoch = None
            self._timers.discard(key)
        if hold == before._replace(previous_epoch=hold.previous_epoch):
            return
        facts = {
            "state": hold.state.value,
            "epoch": hold.epoch,
            "assigned": bodies.by_topic(hold.assigned.keys() - before.assigned.keys()),
            "revoking": bodies.by_topic(hold.revoking),
            "released": bodies.by_topic(released),
        }
        self._event(now, "reconciled", member, f"epoch {before.epoch} to {hold.epoch}, {hold.state.value}", facts)

    # Leaving

    def _leave(self, body: Mapping[str, Any], now: int) -> tuple[dict[str, Any], Check]:
        member_id, epoch, instance = body["MemberId"], body["MemberEpoch"], body.get("InstanceId")
        member = self.members.get(member_id)
        refused = None
        if instance is not None:
            member = self._roster.static(instance)
            refused = checks.check_instance(member, member_id, instance)
        elif member is None:
            refused = checks.unknown_member(self.name, member_id)
        if member is None or refused is not None:
            check = refused or checks.unknown_member(self.name, member_id)
            return bodies.refusal(check), check
        if instance is not None and epoch == LEAVE_STATIC:
            self._roster.hold(member, member.hold._replace(epoch=LEAVE_STATIC, revoking={}))
            self._reconciled.discard(member.id)
            self._event(now, "left", member, "a static member that means to come back", {"instance": instance})
        else:
            self._remove(member, now, "left", f"MemberEpoch {LEAVE}", {"instance": member.instance})
        why = f"{member_id} was a member and has left"
        return bodies.left(member_id, epoch), Check(5, "left", codes.NONE, why)

    def _remove(self, member: Member, time: int, kind: str, why: str, facts: Mapping[str, Any]) -> None:
        """Takes a member out for good; the group epoch grows."""
        self._unseat(member)
        self.targets.pop(member.id, None)
        self._topics.rename(member.names, ())
        if member.regex:
            self._topics.repattern(member.regex, "", None)
        self._event(time, kind, member, why, facts)
        self._bump(time, f"{member.id} {kind}", member.id)
        if not self.members:
            self._events.append(Event(time, self.name, "empty", None, self.epoch, "the last member is gone"))

    def _event(self, time: int, kind: str, member: Member, why: str, facts: Mapping[str, Any]) -> None:
        told = {"client_id": member.client_id, **facts}
        self._events.append(Event(time, self.name, kind, member.id, member.hold.epoch, why, told))
