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

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kwire.coordinator import assignors
from kwire.coordinator.consumer import bodies, checks, reconciliation, seating
from kwire.coordinator.consumer.checks import JOIN, LEAVE
from kwire.coordinator.consumer.members import LEAVE_STATIC, ClassicTerms, ConsumerMember, Members
from kwire.coordinator.consumer.reconciliation import Hold, MemberState, Partition, Target
from kwire.coordinator.consumer.seating import JOINING, REBALANCE, SESSION, SYNCING
from kwire.coordinator.consumer.topic_patterns import BadPattern, TopicPattern
from kwire.coordinator.consumer.topics import ConsumerTopics
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.types import MS, Check, ClientIdentity, Event, GroupSettings, KnownTopic
from kwire.schema import codes

ASSIGNMENT_INTERVAL_MS: Final = 1_000  # group.consumer.assignment.interval.ms since 4.3
DEFAULT_ASSIGNOR: Final = "uniform"


class ConsumerGroup:
    """One group. members: by id. epoch: the group epoch; target_epoch: the one its target was computed for."""

    type: Final = "consumer"
    protocol_type: Final = "consumer"
    lapses: Final = True
    makes_way: Final = True

    def __init__(
        self,
        name: str,
        settings: GroupSettings,
        topics: Callable[[], Mapping[str, KnownTopic]],
        new_id: Callable[[str], str],
    ) -> None:
        self.name = name
        self.epoch = self.target_epoch = 1 if settings.era >= (4, 3) else 0
        self.targets: dict[str, assignors.Assignment] = {}
        self.fresh = True
        self.epoch_before: int | None = None  # before members were removed that nobody has looked at yet
        self.roster = Members()
        self.members = self.roster.by_id
        self.new_id = new_id
        self.configure(settings)
        self.target_time: int | None = None
        self.reconciled: set[str] = set()  # members that have reached the target
        self.topics = ConsumerTopics(topics)
        self.timers = Timers()
        self._events: list[Event] = []

    def configure(self, settings: GroupSettings) -> None:
        """The configuration that counts for this group from now on."""
        self.settings = settings
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
        return "Stable" if len(self.reconciled) == len(self.members) else "Reconciling"

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for, uniform when nobody asks."""
        return self.roster.preferred_assignor(None) or DEFAULT_ASSIGNOR

    @property
    def due(self) -> int | None:
        """When to tick next: when a member's time is up, or before."""
        return self.timers.due

    def events(self) -> list[Event]:
        """What happened since it was last asked."""
        drained, self._events = self._events, []
        return drained

    def subscribes(self, topic: str) -> bool:
        """Whether a member asks for the topic, by name or pattern."""
        return topic in self.topics.names

    def describe(self, version: int) -> dict[str, Any]:
        """A DescribedGroup of ConsumerGroupDescribe."""
        names, era = self.topics.names_by_id(), self.settings.era
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
        return checks.check_offsets(self.name, self.members, asked, member_id is None, self.settings.era)

    # Time and the world outside

    def tick(self, now: int) -> None:
        """Removes the members whose session ended, or who did not give up partitions in their rebalance timeout."""
        while (expired := self.timers.pop(now)) is not None:
            key, deadline = expired
            member = self.members[key.member]
            if key.kind == SESSION:
                own = member.classic
                timeout = own.session_timeout_ms if own else self.settings.group_consumer_session_timeout_ms
                named = "its session timeout" if own else "group.consumer.session.timeout.ms"
                why = f"no heartbeat for {timeout:,} ms ({named})"
                facts = {"last_heartbeat": member.heard, "session_timeout_ms": timeout, "deadline": deadline}
                self.remove(member, deadline, "evicted", why, facts)
            elif key.kind in (JOINING, SYNCING):
                word = "JoinGroup" if key.kind == JOINING else "SyncGroup"
                why = f"no {word} within {member.rebalance_timeout_ms:,} ms (the rebalance timeout)"
                self.remove(member, deadline, "fenced", why, {"deadline": deadline, "missing": word})
            elif member.fence_epoch == member.hold.epoch:
                timeout = member.rebalance_timeout_ms
                kept = bodies.by_topic(member.hold.revoking)
                why = f"did not give up its partitions at epoch {member.hold.epoch} within {timeout:,} ms"
                late: dict[str, Any] = {"rebalance_timeout_ms": timeout, "deadline": deadline, "revoking": kept}
                self.remove(member, deadline, "fenced", f"{why} (RebalanceTimeoutMs)", late)

    def expire(self, member_id: str, now: int) -> bool:
        """Ends a member's session now; says whether there was such a member."""
        member = self.members.get(member_id)
        if member is not None:
            self.remove(member, now, "evicted", "its session was ended", {"last_heartbeat": member.heard})
        return member is not None

    def topics_changed(self) -> None:
        """Topics came, went or grew: the next heartbeat of any member looks again."""
        self.topics.changed()

    # The heartbeat

    def heartbeat(
        self, version: int, body: Mapping[str, Any], caller: ClientIdentity, now: int
    ) -> tuple[dict[str, Any], Check]:
        """The answer to a ConsumerGroupHeartbeat and the check that decided it."""
        self.tick(now)
        refused = checks.check_request(version, body, assignors.ASSIGNORS, self.settings.era)
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
        most = self.settings.group_consumer_max_size
        if len(self.members) >= most and body["MemberId"] not in self.members:
            why = f"{len(self.members):,} members, group.consumer.max.size is {most:,}"
            return None, Check(4, "size", codes.GROUP_MAX_SIZE_REACHED, why)
        refused = checks.check_member(self.name, self.roster, body, owned, self.settings.era)
        regex = body.get("SubscribedTopicRegex")
        if refused is not None or not regex or self.topics.has_pattern(regex):
            return None, refused
        try:
            return TopicPattern(regex), None
        except BadPattern as error:
            why = f"SubscribedTopicRegex {regex[:100]!r}: {error}"
            return None, Check(8, "regex", codes.INVALID_REGULAR_EXPRESSION, why)

    def _accept(
        self,
        body: Mapping[str, Any],
        owned: frozenset[Partition] | None,
        pattern: TopicPattern | None,
        caller: ClientIdentity,
        now: int,
    ) -> tuple[dict[str, Any], Check]:
        epoch = body["MemberEpoch"]
        is_new = body["MemberId"] not in self.members
        member = seating.seat(self, body, caller, now)
        before = member.hold
        reasons, changed = seating.note(self, member, body, pattern, caller)
        if self.epoch == 0:
            reasons.append("the group is new")
        if reasons or self.topics.is_stale:
            if self.topics.refresh():
                reasons.append("topics changed")
            if reasons:
                self.bump(now, f"{member.id}: {', '.join(reasons)}", member.id)
        self.compute_target(now, member, is_new)
        self.reconcile(member, owned, changed, now)
        member.heard = now
        timeout = self.settings.group_consumer_session_timeout_ms
        self.timers.set(Key(SESSION, self.name, member.id), now + timeout * MS)
        whole = epoch == JOIN or (
            body.get("RebalanceTimeoutMs", -1) != -1
            and body.get("SubscribedTopicNames") is not None
            and owned is not None
        )
        told = whole or member.hold.assigned != before.assigned
        answer = bodies.accepted(member, self.settings.group_consumer_heartbeat_interval_ms, told)
        if self.topics.resolve(now):
            self.bump(now, "patterns were resolved to other topics")
        why = f"member epoch {epoch} accepted, {before.epoch} was known, {member.hold.epoch} is now"
        return answer, Check(8, "accepted", codes.NONE, why)

    # Members of the classic protocol

    def join_classic(
        self,
        body: Mapping[str, Any],
        terms: ClassicTerms,
        owned: frozenset[Partition],
        caller: ClientIdentity,
        now: int,
        last: bool,
    ) -> ConsumerMember:
        """A JoinGroup, told as a heartbeat would. last: the group will be a classic one right after."""
        is_new = body["MemberId"] not in self.members
        member = seating.seat(self, body, caller, now)
        reasons, changed = seating.note(self, member, body, None, caller)
        member.classic, member.heard = terms, now
        if (reasons or self.topics.is_stale) and self.topics.refresh():
            reasons.append("topics changed")
        if reasons:
            self.bump(now, f"{member.id}: {', '.join(reasons)}", member.id)
        if not last:
            self.compute_target(now, member, is_new)
        if not last or self.target_epoch >= self.epoch:
            self.reconcile(member, owned, changed, now)
        return member

    def left_classic(self, gone: Collection[str]) -> bool:
        """Whether all members but these use the classic protocol."""
        return all(member.classic is not None for member in self.members.values() if member.id not in gone)

    def supports_classic(self, protocols: Collection[str]) -> bool:
        """Whether one of the protocols is among those that all members of the classic protocol have."""
        others = [{name for name, _ in each.classic.protocols} for each in self.members.values() if each.classic]
        return any(all(name in other for other in others) for name in protocols)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether a partition that the member shall have is in other hands."""
        target = bodies.flat(self.targets.get(member.id, {}))
        missing = (each for each in target if each not in member.hold.assigned)
        return any(not self.roster.is_free(each, member, self.settings.era) for each in missing)

    # The target and the way there

    def bump(self, now: int, why: str, member: str | None = None) -> None:
        self.epoch += 1
        self._events.append(Event(now, self.name, "epoch", member, self.epoch, why, {"epoch": self.epoch}))

    def compute_target(self, now: int, member: ConsumerMember, is_new: bool) -> None:
        if self.epoch <= self.target_epoch:
            return
        if self.target_time is not None and self._interval and now < self.target_time + self._interval:
            return
        name = self.roster.preferred_assignor(member) or DEFAULT_ASSIGNOR
        ids = self.topics.ids
        subscribers = [
            assignors.SubscribedMember(
                each.id, each.instance, ids(each.names, each.regex), self.targets.get(each.id, {})
            )
            for each in self.roster.walked(member.id if is_new else None)
        ]
        self.targets = assignors.assign(name, subscribers, self.topics.partitions(), self.settings.era)
        self.target_epoch, self.target_time = self.epoch, now
        self.reconciled.clear()
        facts = {"epoch": self.epoch, "assignor": name, "members": len(self.members)}
        why = f"{name} assignor, {len(self.members):,} members"
        self._events.append(Event(now, self.name, "target", None, self.epoch, why, facts))

    def reconcile(self, member: ConsumerMember, owned: frozenset[Partition] | None, changed: bool, now: int) -> None:
        before = member.hold
        if changed or not before.is_reconciled_to(self.target_epoch):
            subscribed = self.topics.ids(member.names, member.regex)
            era = self.settings.era
            target = Target(self.target_epoch, bodies.flat(self.targets.get(member.id, {})), subscribed)
            hold = reconciliation.reconcile(
                before, target, owned, lambda each: self.roster.is_free(each, member, era), changed, era
            )
            if hold != before:
                self._take(member, hold, now)
        if not member.hold.is_reconciled_to(self.target_epoch):
            self.reconciled.discard(member.id)
        elif member.id not in self.reconciled:
            self.reconciled.add(member.id)
            if self.state == "Stable":
                self._events.append(Event(now, self.name, "stable", None, self.epoch, "every member has its target"))

    def _take(self, member: ConsumerMember, hold: Hold, now: int) -> None:
        """The member's hold changes: owners, its rebalance deadline, the event."""
        before = member.hold
        released = self.roster.hold(member, hold)
        key = Key(REBALANCE, self.name, member.id)
        if hold.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            member.fence_epoch = hold.epoch
            self.timers.set(key, now + max(member.rebalance_timeout_ms, 0) * MS)
        else:
            member.fence_epoch = None
            self.timers.discard(key)
        if hold == before._replace(previous_epoch=hold.previous_epoch):
            return
        facts = {
            "state": hold.state.value,
            "epoch": hold.epoch,
            "assigned": bodies.by_topic(hold.assigned.keys() - before.assigned.keys()),
            "revoking": bodies.by_topic(hold.revoking),
            "released": bodies.by_topic(released),
        }
        self.event(now, "reconciled", member, f"epoch {before.epoch} to {hold.epoch}, {hold.state.value}", facts)

    # Leaving

    def _leave(self, body: Mapping[str, Any], now: int) -> tuple[dict[str, Any], Check]:
        member_id, epoch, instance = body["MemberId"], body["MemberEpoch"], body.get("InstanceId")
        member = self.members.get(member_id)
        refused = None
        if instance is not None:
            member = self.roster.static(instance)
            refused = checks.check_instance(member, member_id, instance)
        elif member is None:
            refused = checks.unknown_member(self.name, member_id)
        if member is None or refused is not None:
            check = refused or checks.unknown_member(self.name, member_id)
            return bodies.refusal(check), check
        if instance is not None and epoch == LEAVE_STATIC:
            self.roster.hold(member, member.hold._replace(epoch=LEAVE_STATIC, revoking={}))
            self.reconciled.discard(member.id)
            self.event(now, "left", member, "a static member that means to come back", {"instance": instance})
        else:
            self.remove(member, now, "left", f"MemberEpoch {LEAVE}", {"instance": member.instance})
        why = f"{member_id} was a member and has left"
        return bodies.left(member_id, epoch), Check(5, "left", codes.NONE, why)

    def remove(self, member: ConsumerMember, time: int, kind: str, why: str, facts: Mapping[str, Any]) -> None:
        """Takes a member out for good; the group epoch grows."""
        seating.unseat(self, member)
        self.targets.pop(member.id, None)
        self.topics.rename(member.names, ())
        if member.regex:
            self.topics.repattern(member.regex, "", None)
        self.event(time, kind, member, why, facts)
        if self.epoch_before is None:
            self.epoch_before = self.epoch
        self.bump(time, f"{member.id} {kind}", member.id)
        if not self.members:
            self._events.append(Event(time, self.name, "empty", None, self.epoch, "the last member is gone"))

    def event(self, time: int, kind: str, member: ConsumerMember, why: str, facts: Mapping[str, Any]) -> None:
        told = {"client_id": member.client_id, **facts}
        self._events.append(Event(time, self.name, kind, member.id, member.hold.epoch, why, told))
