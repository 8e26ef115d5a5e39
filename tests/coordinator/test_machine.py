"""Any sequence of requests, pauses and broken connections: what must hold of the coordinator at every step."""

from collections import Counter
from itertools import count
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import kwire
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.group import GroupState
from kwire.coordinator.types import MS, ClientIdentity, GroupSettings

SESSIONS, REBALANCES = (6_000, 10_000), (0, 1_000, 8_000, 60_000)
BEAT_MS = 2_000  # how often a diligent member beats
ERAS = ((4, 3), (3, 9), (2, 3), (0, 11), (0, 9))
PROTOCOLS = st.sampled_from((["range"], ["range", "sticky"], ["sticky", "range"], ["x"]))


class Members(RuleBasedStateMachine):
    """One group, its clients, and what each of them has been told."""

    @initialize(era=st.sampled_from(ERAS), delay=st.sampled_from((0, 500, 3_000)), size=st.sampled_from((2, 100)))
    def begin(self, era: tuple[int, int], delay: int, size: int) -> None:
        numbers = count(1)
        chosen = GroupSettings(era=era, group_initial_rebalance_delay_ms=delay, group_max_size=size)
        self.coordinator = Coordinator(chosen, lambda name: f"{name}-{next(numbers)}")
        self.now = 0
        self.asked: dict[int, tuple[str, int, dict[str, Any]]] = {}  # API, when (ms), body
        self.causes: dict[str, str] = {}  # why a member was evicted
        self.ended: Counter[int] = Counter()
        self.told: dict[str, int] = {}  # the generation that a member was last told
        self.ids: list[str] = []
        self.removed: set[str] = set()
        self.diligent: set[str] = set()
        self.alive: dict[str, int] = {}  # when a member's heartbeat was last answered with NONE, ms
        self.generation = 0

    # what clients do

    @rule(
        version=st.integers(0, 9),
        instance=st.sampled_from((None, None, "i", "j")),
        session=st.sampled_from(SESSIONS),
        rebalance=st.sampled_from(REBALANCES),
        protocols=PROTOCOLS,
    )
    def join(self, version: int, instance: str | None, session: int, rebalance: int, protocols: list[str]) -> None:
        self.send_join("", version, instance if version >= 5 else None, session, rebalance, protocols)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), rebalance=st.sampled_from(REBALANCES), protocols=PROTOCOLS)
    def rejoin(self, data: st.DataObject, rebalance: int, protocols: list[str]) -> None:
        member = data.draw(st.sampled_from(self.recent))
        known = self.group and self.group.members.get(member)
        instance = known.instance_id if known else None
        self.send_join(member, 9, instance, SESSIONS[0], rebalance, protocols)

    @property
    def recent(self) -> list[str]:
        return self.ids[-4:]

    def send_join(
        self, member: str, version: int, instance: str | None, session: int, rebalance: int, protocols: list[str]
    ) -> None:
        body = {
            "SessionTimeoutMs": session,
            "RebalanceTimeoutMs": rebalance,
            "MemberId": member,
            "GroupInstanceId": instance,
            "ProtocolType": "consumer",
            "Protocols": [{"Name": name, "Metadata": b""} for name in protocols],
        }
        self.ask("JoinGroup", version, body)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), right=st.booleans())
    def sync(self, data: st.DataObject, right: bool) -> None:
        member = data.draw(st.sampled_from(self.recent))
        generation = self.told.get(member, 0) + (not right)
        plan = [{"MemberId": member, "Assignment": b"all"}]
        self.ask("SyncGroup", 3, {"GenerationId": generation, "MemberId": member, "Assignments": plan})

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), off=st.sampled_from((0, 0, 1)))
    def beat(self, data: st.DataObject, off: int) -> None:
        self.send_beat(data.draw(st.sampled_from(self.recent)), off)

    def send_beat(self, member: str, off: int = 0) -> None:
        self.ask("Heartbeat", 4, {"GenerationId": self.told.get(member, 0) + off, "MemberId": member})

    @precondition(lambda self: self.removed)
    @rule(data=st.data(), generation=st.integers(0, 9))
    def beat_though_removed(self, data: st.DataObject, generation: int) -> None:
        member = data.draw(st.sampled_from(sorted(self.removed)))
        self.ask("Heartbeat", 4, {"GenerationId": generation, "MemberId": member})

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        leavers = data.draw(st.lists(st.sampled_from(self.recent), max_size=3))
        self.ask("LeaveGroup", 3, {"Members": [{"MemberId": each} for each in leavers]})

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(["", *self.recent]))
        part = {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedMetadata": ""}
        generation = self.told.get(member, -1)
        topics = [{"Name": "t", "Partitions": [part]}]
        self.ask("OffsetCommit", 8, {"GenerationIdOrMemberEpoch": generation, "MemberId": member, "Topics": topics})

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def become_diligent(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.recent))
        if self.group and member in self.group.members:
            self.send_beat(member)
            if self.alive.get(member) == self.now:
                self.diligent.add(member)

    @precondition(lambda self: self.group and self.group.members)
    @rule()
    def settle(self) -> None:
        """All of them rejoin, sync, and beat in time from then on."""
        leader = self.group.leader
        for member in sorted(self.group.members.values(), key=lambda each: each.id != leader):
            names = [name for name, _ in member.protocols]
            self.send_join(member.id, 9, member.instance_id, SESSIONS[0], REBALANCES[-1], names)
        self.wait(500)
        if self.group is None or self.group.state is not GroupState.COMPLETING:
            return
        for member in (*self.group.members, self.group.leader):
            self.ask("SyncGroup", 3, {"GenerationId": self.told.get(member, 0), "MemberId": member, "Assignments": []})
        self.diligent |= {member for member in self.group.members if member in self.told}

    # what happens to them

    @rule(ms=st.sampled_from((1, 499, 500, 1_999, 3_000, 6_000, 10_000, 61_000)))
    def wait(self, ms: int) -> None:
        end = self.now + ms
        while self.now < end:
            self.now = min(self.now + BEAT_MS, end)
            self.coordinator.tick(self.now * MS)
            assert self.coordinator.due is None or self.coordinator.due > self.now * MS
            self.listen()
            for member in sorted(self.diligent):
                self.send_beat(member)

    @precondition(lambda self: self.coordinator.waiting)
    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from([each for each in self.asked if not self.ended[each]]))
        self.coordinator.gone(ticket)
        self.ended[ticket] += 1

    @rule(really=st.integers(0, 9))
    def forget(self, really: int) -> None:
        if really == 7:  # not often, or no group gets old
            self.coordinator.forget("g")
            self.listen()

    # what must hold

    def ask(self, api: str, version: int, body: dict[str, Any]) -> None:
        ticket = self.coordinator.ask(api, version, {"GroupId": "g", **body}, ClientIdentity("c"), self.now * MS)
        self.asked[ticket] = (api, self.now, body)
        self.listen()

    def listen(self) -> None:
        for event in self.coordinator.events():
            if event.kind == "dead":
                self.generation = 0
                self.removed |= set(self.ids)
            if event.kind in ("generation", "empty"):
                assert event.generation == self.generation + 1
                self.generation = event.generation
            if event.kind in ("evicted", "left", "fenced") and event.member:
                self.removed.add(event.member)
            if event.kind == "evicted":
                self.causes[event.member or ""] = event.facts["cause"]
            if event.kind == "evicted" and event.facts["cause"] == "session":
                assert event.member not in self.diligent
                silent = event.time // MS - self.alive.get(event.member or "", event.time // MS)
                assert silent >= event.facts["session_timeout_ms"] or event.member not in self.alive
            if event.facts.get("superseded"):
                self.ended[event.facts["superseded"]] += 1
        self.diligent -= self.removed
        for answer in self.coordinator.answers():
            self.ended[answer.ticket] += 1
            self.understand(answer.ticket, answer.body, answer.time // MS)
            kwire.encode(answer.api + "Response", answer.version, answer.body)

    def understand(self, ticket: int, body: dict[str, Any], time: int) -> None:
        api, asked_at, asked = self.asked[ticket]
        if time > asked_at and body["ErrorCode"] == 25:
            assert self.causes.get(asked["MemberId"]) != "session", "who waits for an answer needs no heartbeat"
        if api == "JoinGroup" and body["MemberId"]:
            if body["ErrorCode"] in (0, 79) and body["MemberId"] not in self.ids:
                self.ids.append(body["MemberId"])
            if body["ErrorCode"] == 0:
                self.told[body["MemberId"]] = body["GenerationId"]
                self.diligent.discard(body["MemberId"])
        if api in ("Heartbeat", "SyncGroup") and body["ErrorCode"] == 0:
            assert asked["MemberId"] not in self.removed, "a removed member was told that all is well"
        if api == "Heartbeat" and body["ErrorCode"] == 0:
            self.alive[asked["MemberId"]] = time
        elif api == "Heartbeat":
            self.diligent.discard(asked["MemberId"])

    @property
    def group(self) -> Any:
        return self.coordinator.groups.get("g")

    @invariant()
    def every_ticket_ends_once(self) -> None:
        assert all(times == 1 for times in self.ended.values())
        waiting = [ticket for ticket in self.asked if not self.ended[ticket]]
        assert {self.asked[ticket][0] for ticket in waiting} <= {"JoinGroup", "SyncGroup"}
        assert self.coordinator.waiting <= len(waiting)

    @invariant()
    def delayed_operations_balance(self) -> None:
        purgatory = self.coordinator._context.purgatory
        assert purgatory.begun == purgatory.completed + purgatory.expired + len(purgatory)

    @invariant()
    def the_group_is_of_one_piece(self) -> None:
        group = self.group
        if group is None:
            return
        assert group.joining == sum(member.joining is not None for member in group.members.values())
        assert (group.leader in group.members) if group.members else group.leader is None
        assert group.state is not GroupState.EMPTY or not group.members
        assert group.unsynced <= set(group.members)
        assert not set(group.pending) & set(group.members)
        assert group.instances == {m.instance_id: m.id for m in group.members.values() if m.instance_id is not None}
        assert +group.supported == Counter(name for m in group.members.values() for name in {n for n, _ in m.protocols})
        if group.state in (GroupState.COMPLETING, GroupState.STABLE):
            assert group.joining == 0
            assert group.protocol is not None

    def teardown(self) -> None:
        """In the end, when nobody beats any more, nobody waits either."""
        if not hasattr(self, "coordinator"):
            return
        self.diligent.clear()
        self.now += 86_400_000
        self.coordinator.tick(self.now * MS)
        self.listen()
        self.every_ticket_ends_once()
        if self.coordinator.settings.era >= (3, 0):
            assert self.coordinator.waiting == 0
            assert self.group is None or (not self.group.members and self.coordinator.offsets.holds("g"))


Members.TestCase.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestMembers = pytest.mark.slow(Members.TestCase)
