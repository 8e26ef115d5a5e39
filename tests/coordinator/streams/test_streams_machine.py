"""Members of a streams group that come, go, lose answers and own what they were given: who has which task."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kwire.coordinator.streams.group import StreamsGroup
from kwire.coordinator.streams.tasks import Tasks
from kwire.coordinator.types import MS, ClientIdentity, GroupSettings, KnownTopic

NAMES = "abcd"
CALLER = ClientIdentity("c", "/127.0.0.1", None)
LAB = GroupSettings(group_streams_initial_rebalance_delay_ms=0, group_streams_assignment_interval_ms=0)
PARTS: list[dict[str, Any]] = [
    {"SubtopologyId": "0", "SourceTopics": ["t"], "StateChangelogTopics": []},
    {
        "SubtopologyId": "1", "SourceTopics": ["u"],
        "StateChangelogTopics": [{"Name": "c", "Partitions": 0, "ReplicationFactor": 1, "TopicConfigs": []}],
    },
]  # fmt: skip
REST = ("SourceTopicRegex", "RepartitionSinkTopics", "RepartitionSourceTopics", "CopartitionGroups")
TOPOLOGY = {"Epoch": 0, "Subtopologies": [row | {each: [] for each in REST} for row in PARTS]}
ROLES = ("ActiveTasks", "StandbyTasks", "WarmupTasks")
NOTHING: dict[str, Any] = {role: [] for role in ROLES}
JOIN: dict[str, Any] = {"RebalanceTimeoutMs": 60_000, "Topology": TOPOLOGY, "ClientTags": [], **NOTHING}


class Members(RuleBasedStateMachine):
    """epochs, owned: what each client knows; an answer may be lost. unsure: those that lost one since they joined:
    the coordinator tells an assignment once, so that they have to join anew to hear of it."""

    def __init__(self) -> None:
        super().__init__()
        self.topics = {name: KnownTopic(name, UUID(int=count), count) for name, count in (("t", 3), ("u", 2))}
        self.group = StreamsGroup("g", LAB, lambda: self.topics)
        self.now = 0
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, dict[str, Any]] = {}
        self.unsure: set[str] = set()

    def beat(self, name: str, lost: bool = False, **fields: Any) -> int:
        self.now += 10 * MS
        body = {"GroupId": "g", "MemberId": name, "MemberEpoch": self.epochs.get(name, 0), **fields}
        answer, check, new = self.group.heartbeat(body, CALLER, self.now)
        assert check.why
        for topic in new:
            self.topics[topic.name] = KnownTopic(topic.name, UUID(int=9), topic.partitions)
            self.group.topics_changed()
        if lost:
            self.unsure.add(name)
        elif body["MemberEpoch"] <= 0:
            self.unsure.discard(name)
        if not answer["ErrorCode"] and not lost and answer["MemberEpoch"] >= 0:
            self.epochs[name] = answer["MemberEpoch"]
            if answer["ActiveTasks"] is not None:
                self.owned[name] = {role: answer[role] for role in ROLES}
        return int(answer["ErrorCode"])

    @rule(name=st.sampled_from(NAMES), process=st.sampled_from("pq"))
    def join(self, name: str, process: str) -> None:
        self.epochs[name] = 0
        self.beat(name, ProcessId=process, **JOIN)

    @rule(name=st.sampled_from(NAMES), lost=st.booleans())
    def own(self, name: str, lost: bool) -> None:
        if self.epochs.get(name):
            self.beat(name, lost, **self.owned.get(name, {}))

    @rule(name=st.sampled_from(NAMES))
    def say_nothing(self, name: str) -> None:
        if self.epochs.get(name):
            self.beat(name)

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        if name in self.group.members:
            self.epochs[name] = -1
            assert not self.beat(name)
            del self.epochs[name]
            assert name not in self.group.members

    @rule()
    def standbys(self) -> None:
        self.group.configure(replace(LAB, group_streams_num_standby_replicas=1))

    @precondition(lambda self: self.group.members)
    @rule()
    def settle(self) -> None:
        """Everybody says what it has until nothing changes: all tasks are in somebody's hands."""
        for name in NAMES:
            member = self.group.members.get(name)
            if member is not None and (name in self.unsure or self.epochs.get(name) != member.epoch):
                self.epochs[name] = 0
                self.beat(name, ProcessId=member.process, **JOIN)
        for _ in range(8):
            for name in self.group.members:
                assert not self.beat(name, **self.owned.get(name, {}))
        assert self.group.state == "Stable"
        active = Counter(task for member in self.group.members.values() for task in member.assigned.active)
        assert set(active) == {("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1)}

    @invariant()
    def a_task_is_active_in_one_member_at_most(self) -> None:
        held = Counter(
            task for member in self.group.members.values() for task in member.assigned.active | member.revoking.active
        )
        assert all(count == 1 for count in held.values())

    @invariant()
    def no_process_has_a_standby_of_its_own_task(self) -> None:
        for member in self.group.members.values():
            same = [each for each in self.group.members.values() if each.process == member.process]
            for each in same:
                assert not member.assigned.standby & each.assigned.active or self.group.state != "Stable"

    @invariant()
    def epochs_do_not_pass_the_groups(self) -> None:
        assert self.group.target_epoch <= self.group.epoch
        assert all(member.epoch <= self.group.target_epoch for member in self.group.members.values())

    @invariant()
    def targets_have_every_task_once(self) -> None:
        if self.group.state in ("Stable", "Reconciling"):
            found = Counter(task for held in self.group.targets.values() for task in held.active)
            assert len(found) == 5
            assert set(found.values()) == {1}
            assert all(isinstance(held, Tasks) for held in self.group.targets.values())


TestMembers = settings(max_examples=60, stateful_step_count=25, deadline=None)(Members).TestCase
