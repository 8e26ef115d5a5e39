"""What must hold of a consumer group whatever its members do: a hypothesis state machine."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.types import MS, ClientIdentity, GroupSettings, KnownTopic

SECOND = 1_000 * MS
SESSION, REBALANCE = 6, 4  # seconds
NAMES = ("a", "b", "c")
MEMBERS = st.sampled_from(["m1", "m2", "m3", "m4"])
SUBSCRIPTIONS = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
Partition = tuple[UUID, int]


class Client:
    """What one member knows: its epoch, what it has, when it was last heard."""

    def __init__(self) -> None:
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.heard = 0
        self.revoking_since: int | None = None


class Groups(RuleBasedStateMachine):
    """Members join, beat, give up at once or not at all, leave, fall silent; topics grow; time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.topics = {name: KnownTopic(name, UUID(int=number), number) for number, name in enumerate(NAMES, 1)}
        limits = GroupSettings(group_consumer_session_timeout_ms=SESSION * 1_000)
        self.group = ConsumerGroup("g", limits, lambda: self.topics, str)
        self.now = 1
        self.clients: dict[str, Client] = {}
        self.epochs = (0, 0)

    def send(self, member: str, epoch: int, **fields: Any) -> dict[str, Any]:
        body = {"GroupId": "g", "MemberId": member, "MemberEpoch": epoch, **fields}
        return self.group.heartbeat(1, body, ClientIdentity(), self.now)[0]

    def hear(self, member: str, answer: dict[str, Any]) -> None:
        """The client does what it is told, at once."""
        client = self.clients[member]
        assert answer["ErrorCode"] == 0
        assert answer["MemberEpoch"] >= client.epoch
        client.epoch, client.heard = answer["MemberEpoch"], self.now
        if answer["Assignment"] is not None:
            topics = answer["Assignment"]["TopicPartitions"]
            client.owned = {(topic["TopicId"], each) for topic in topics for each in topic["Partitions"]}

    def timely(self, member: str) -> bool:
        """Whether the coordinator must still know the member."""
        client = self.clients[member]
        late = client.revoking_since is not None and self.now >= client.revoking_since + REBALANCE * SECOND
        return not late and self.now < client.heard + SESSION * SECOND

    @rule(member=MEMBERS, names=SUBSCRIPTIONS)
    def join(self, member: str, names: list[str]) -> None:
        fields = {"RebalanceTimeoutMs": REBALANCE * 1_000, "TopicPartitions": [], "SubscribedTopicNames": names}
        self.clients[member] = Client()
        self.hear(member, self.send(member, 0, **fields))
        self.note(member)

    @rule(member=MEMBERS, tells=st.booleans(), names=st.none() | SUBSCRIPTIONS)
    def beat(self, member: str, tells: bool, names: list[str] | None) -> None:
        if member not in self.clients:
            return
        client = self.clients[member]
        owned = [{"TopicId": topic, "Partitions": [each]} for topic, each in sorted(client.owned)] if tells else None
        answer = self.send(member, client.epoch, TopicPartitions=owned, SubscribedTopicNames=names)
        if self.timely(member):
            self.hear(member, answer)
            self.note(member)
        elif answer["ErrorCode"]:
            assert answer["ErrorCode"] in (25, 69)
            del self.clients[member]
        else:
            self.hear(member, answer)
            self.note(member)

    def note(self, member: str) -> None:
        client, revoking = self.clients[member], self.group.members[member].hold.revoking
        client.revoking_since = (client.revoking_since or self.now) if revoking else None

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        if self.clients.pop(member, None) is not None:
            assert self.send(member, -1)["ErrorCode"] in (0, 25)

    @rule(seconds=st.sampled_from([0.3, 1, 2, 5]))
    def wait(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)
        self.group.tick(self.now)

    @rule(name=st.sampled_from(NAMES))
    def grow(self, name: str) -> None:
        topic = self.topics[name]
        self.topics[name] = topic._replace(partitions=topic.partitions + 1)
        self.group.topics_changed()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        holds = [member.hold for member in self.group.members.values()]
        held = [partition for hold in holds for partition in (*hold.assigned, *hold.revoking)]
        assert len(held) == len(set(held))

    @invariant()
    def members_in_time_are_never_removed(self) -> None:
        assert {member for member in self.clients if self.timely(member)} <= self.group.members.keys()

    @invariant()
    def a_stable_group_has_given_out_everything(self) -> None:
        if self.group.state == "Stable":
            members = self.group.members.values()
            asked = {name for member in members for name in member.names}
            targets = sum(len(held) for target in self.group.targets.values() for held in target.values())
            assert sum(len(member.hold.assigned) for member in members) == targets
            assert {member.hold.epoch for member in members} == {self.group.epoch}
            assert {topic for member in members for topic, _ in member.hold.assigned} == {
                self.topics[name].id for name in asked
            }

    @invariant()
    def epochs_never_go_back(self) -> None:
        now = (self.group.epoch, self.group.target_epoch)
        assert now >= self.epochs
        assert now[1] <= now[0]
        self.epochs = now

    @invariant()
    def partitions_of_the_target_have_one_taker(self) -> None:
        given = [
            (topic, each) for target in self.group.targets.values() for topic, held in target.items() for each in held
        ]
        assert len(given) == len(set(given))


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_twenty_thousand_members_beat_in_a_stable_group() -> None:
    topic = KnownTopic("a", UUID(int=1), 100)
    group = ConsumerGroup("g", GroupSettings(), lambda: {"a": topic}, str)
    for number in range(20_000):
        join = {"RebalanceTimeoutMs": 1, "TopicPartitions": [], "SubscribedTopicNames": ["a"]}
        group.heartbeat(1, {"GroupId": "g", "MemberId": str(number), "MemberEpoch": 0, **join}, ClientIdentity(), 0)
    assert (len(group.members), group.state) == (20_000, "Assigning")
    group.events()
    epoch = group.target_epoch
    body, _ = group.heartbeat(1, {"GroupId": "g", "MemberId": "7", "MemberEpoch": epoch}, ClientIdentity(), 2 * SECOND)
    assert (body["ErrorCode"], group.target_epoch) == (0, 20_001)
    group.tick(46 * SECOND)
    assert list(group.members) == ["7"]
