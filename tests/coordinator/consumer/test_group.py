"""Consumer groups (KIP-848): what Kafka 4.3.1 answered to the same heartbeats, each check, each deadline."""

# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.consumer.reconciliation import Hold
from kwire.coordinator.types import MS, Check, ClientIdentity, GroupSettings, KnownTopic

FIXTURES = Path(__file__).parents[3] / "fixtures"
SECOND = 1_000 * MS
ORDERS = KnownTopic("orders", UUID(int=1), 3)
PAYMENTS = KnownTopic("payments", UUID(int=2), 2)
CALLER = ClientIdentity("client", "/10.0.0.7")


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """An answer without its sentence, partitions sorted."""
    assignment = body["Assignment"] and sorted(
        (str(topic["TopicId"]), sorted(topic["Partitions"])) for topic in body["Assignment"]["TopicPartitions"]
    )
    return {**body, "ErrorMessage": None, "Assignment": assignment}


def plain_group(body: dict[str, Any]) -> dict[str, Any]:
    def held(member: dict[str, Any], name: str) -> list[Any]:
        topics = member[name]["TopicPartitions"]
        return sorted((str(topic["TopicId"]), topic["TopicName"], sorted(topic["Partitions"])) for topic in topics)

    members = [
        {
            **member,
            "SubscribedTopicNames": sorted(member["SubscribedTopicNames"]),
            "Assignment": held(member, "Assignment"),
            "TargetAssignment": held(member, "TargetAssignment"),
        }
        for member in body["Members"]
    ]
    return {**body, "Members": sorted(members, key=lambda member: member["MemberId"])}


def parsed(request: dict[str, Any]) -> dict[str, Any]:
    topics = request["TopicPartitions"]
    if topics is None:
        return request
    return {**request, "TopicPartitions": [{**topic, "TopicId": UUID(topic["TopicId"])} for topic in topics]}


def test_recorded_heartbeats_get_the_broker_s_own_answers() -> None:
    with gzip.open(FIXTURES / "consumer-groups" / "heartbeats.jsonl.gz", "rt") as lines:
        head, *records = map(json.loads, lines)
    topics = {name: KnownTopic(name, UUID(identity), count) for name, identity, count in head["topics"]}
    settings = GroupSettings(
        era=tuple(head["era"]),
        group_consumer_max_size=head["max_size"],
        group_consumer_assignment_interval_ms=head["interval_ms"],
    )
    groups: dict[str, ConsumerGroup] = {}
    for record in records:
        name = record["group"]
        group = groups.setdefault(name, ConsumerGroup(name, settings, lambda: topics, str))
        if record["kind"] == "describe":
            if record["response"]["ErrorCode"] == 0:
                assert plain_group(group.describe(record["version"])) == plain_group(record["response"])
            continue
        body, check = group.heartbeat(
            record["version"], parsed(record["request"]), ClientIdentity("cl"), record["time"]
        )
        assert plain(body) == plain(record["response"]), check
        assert check.error == body["ErrorCode"]
    assert (len(groups), len(records)) == (50, 1223)


def test_a_captured_group_gets_the_broker_s_own_answers() -> None:
    topics: dict[str, KnownTopic] = {}
    group = ConsumerGroup("consumer848-ledger", GroupSettings(), lambda: topics, str)
    replayed = 0
    for exchange in kwire.read(FIXTURES / "captures" / "consumer848.pcap"):
        if exchange.request is None or exchange.response is None:
            continue
        if exchange.api == "CreateTopics":
            for topic in (exchange.response.body() or {})["Topics"]:
                topics[topic["Name"]] = KnownTopic(topic["Name"], topic["TopicId"], topic["NumPartitions"])
        if exchange.api == "ConsumerGroupHeartbeat":
            body, _ = group.heartbeat(exchange.api_version or 0, exchange.request.body() or {}, CALLER, exchange.time)
            assert body == exchange.response.body()
            replayed += 1
    assert replayed == 16
    kinds = [event.kind for event in group.events() if event.kind in ("joined", "left", "epoch", "target", "empty")]
    arrivals = ["joined", "epoch", "target"] * 2
    assert kinds == [*arrivals, "left", "epoch", "target", "left", "epoch", "empty"]


class World:
    """A group with its topics and members, each of which sends what a client would."""

    def __init__(self, settings: GroupSettings | None = None, interval_ms: int | None = 0) -> None:
        self.topics = {topic.name: topic for topic in (ORDERS, PAYMENTS)}
        ids = (f"made-{number}" for number in range(1, 9))
        settings = replace(settings or GroupSettings(), group_consumer_assignment_interval_ms=interval_ms)
        self.group = ConsumerGroup("g", settings, lambda: self.topics, lambda _: next(ids))
        self.now = 0

    def send(self, member: str, epoch: int, version: int = 1, **fields: Any) -> tuple[dict[str, Any], Check]:
        body = {"GroupId": "g", "MemberId": member, "MemberEpoch": epoch, **fields}
        return self.group.heartbeat(version, body, CALLER, self.now)

    def join(self, member: str, *names: str, version: int = 1, **fields: Any) -> tuple[dict[str, Any], Check]:
        asked = {"RebalanceTimeoutMs": 10_000, "TopicPartitions": [], "SubscribedTopicNames": list(names or ["orders"])}
        return self.send(member, 0, version, **(asked | fields))

    def kinds(self) -> list[tuple[str, str | None]]:
        return [(event.kind, event.member) for event in self.group.events()]


def owning(*partitions: int, topic: KnownTopic = ORDERS) -> list[dict[str, Any]]:
    return [{"TopicId": topic.id, "Partitions": list(partitions)}]


REFUSED: dict[str, tuple[dict[str, Any], tuple[int, str, int]]] = {
    "no member id": ({"MemberId": ""}, (1, "request", 42)),
    "a blank group": ({"GroupId": " "}, (1, "request", 42)),
    "a blank instance": ({"InstanceId": ""}, (1, "request", 42)),
    "a blank rack": ({"RackId": "\t"}, (1, "request", 42)),
    "no rebalance timeout": ({"RebalanceTimeoutMs": -1}, (1, "request", 42)),
    "no partitions said": ({"TopicPartitions": None}, (1, "request", 42)),
    "joining with partitions": ({"TopicPartitions": owning(0)}, (1, "request", 42)),
    "no subscription": ({"SubscribedTopicNames": None}, (1, "request", 42)),
    "epoch -3": ({"MemberEpoch": -3}, (1, "request", 42)),
    "a static leave without an instance": ({"MemberEpoch": -2}, (1, "request", 42)),
    "an assignor that is not there": ({"ServerAssignor": "sticky"}, (2, "assignor", 112)),
    "a heartbeat to no group": ({"MemberEpoch": 1}, (3, "group", 69)),
    "a leave to no group": ({"MemberEpoch": -1}, (3, "group", 69)),
    "a bad pattern": ({"SubscribedTopicRegex": "("}, (8, "regex", 128)),
}


@pytest.mark.parametrize(("fields", "decided"), REFUSED.values(), ids=REFUSED)
def test_a_first_request_that_is_refused_leaves_no_group(fields: dict[str, Any], decided: tuple[int, str, int]) -> None:
    world = World()
    request = {"GroupId": "g", "MemberId": "a", "MemberEpoch": 0, "RebalanceTimeoutMs": 1, "TopicPartitions": []}
    request |= {"SubscribedTopicNames": ["orders"]} | fields
    body, check = world.group.heartbeat(1, request, CALLER, 0)
    assert (check.number, check.name, check.error) == decided
    assert (body["ErrorCode"], body["ErrorMessage"]) == (check.error, check.why)
    assert (body["MemberId"], body["MemberEpoch"], body["HeartbeatIntervalMs"], body["Assignment"]) == (
        None,
        0,
        0,
        None,
    )
    assert (world.group.fresh, world.group.members, world.group.events()) == (True, {}, [])


def two_stable() -> World:
    """a (static, instance i) with 0 and 1 at epoch 3, b with 2 at epoch 3."""
    world = World()
    world.join("a", InstanceId="i")
    world.join("b")
    world.send("a", 2, InstanceId="i")
    given = world.group.members["a"].hold.assigned
    world.send("a", 2, InstanceId="i", TopicPartitions=owning(*(partition for _, partition in given)))
    world.send("b", 3)
    assert world.group.state == "Stable"
    return world


LATER: dict[str, tuple[str, int, dict[str, Any], tuple[int, str, int]]] = {
    "a stranger": ("x", 3, {}, (5, "member", 25)),
    "a stranger that leaves": ("x", -1, {}, (5, "member", 25)),
    "an unknown instance": ("a", 3, {"InstanceId": "j"}, (5, "member", 25)),
    "an unknown instance leaves": ("a", -2, {"InstanceId": "j"}, (5, "member", 25)),
    "another's instance": ("b", 3, {"InstanceId": "i"}, (6, "instance", 82)),
    "leaving by another's instance": ("b", -1, {"InstanceId": "i"}, (6, "instance", 82)),
    "an epoch ahead": ("b", 4, {}, (7, "epoch", 110)),
    "an epoch long past": ("b", 1, {}, (7, "epoch", 110)),
    "the epoch before, nothing said of partitions": ("a", 2, {}, (7, "epoch", 110)),
    "the epoch before, with more than it was given": ("a", 2, {"TopicPartitions": owning(0, 1, 2)}, (7, "epoch", 110)),
    "the epoch before, the answer was lost": ("a", 2, {"TopicPartitions": []}, (8, "accepted", 0)),
    "all is well": ("b", 3, {}, (8, "accepted", 0)),
    "a leave": ("b", -1, {}, (5, "left", 0)),
}


@pytest.mark.parametrize(("member", "epoch", "fields", "decided"), LATER.values(), ids=LATER)
def test_a_later_heartbeat_is_decided_by(
    member: str, epoch: int, fields: dict[str, Any], decided: tuple[int, str, int]
) -> None:
    body, check = two_stable().send(member, epoch, **fields)
    assert (check.number, check.name, check.error) == decided
    assert body["ErrorCode"] == check.error


def test_a_held_instance_must_be_released_first_then_its_partitions_go_on() -> None:
    world = two_stable()
    held = dict(world.group.members["a"].hold.assigned)
    _, check = world.join("c", InstanceId="i")
    assert (check.number, check.error) == (6, 111)
    body, _ = world.send("a", -2, InstanceId="i")
    assert (body["ErrorCode"], body["MemberEpoch"], world.group.epoch) == (0, -2, 3)
    body, _ = world.join("c", InstanceId="i")
    assert (body["MemberId"], body["MemberEpoch"], world.group.epoch) == ("c", 3, 3)
    assert world.group.members["c"].hold.assigned == held
    assert world.send("a", 3, InstanceId="i")[1].error == 82
    assert ("rejoined", "c") in world.kinds()


def test_version_0_gets_its_id_from_the_coordinator() -> None:
    world = World()
    body, _ = world.join("", version=0)
    assert (body["MemberId"], list(world.group.members)) == ("made-1", ["made-1"])


def test_a_full_group_takes_its_own_members_only() -> None:
    world = World(GroupSettings(group_consumer_max_size=1))
    world.join("a")
    assert world.join("b")[1] == Check(4, "size", 81, "1 members, group.consumer.max.size is 1")
    assert world.join("a")[1].error == 0


def test_a_session_ends_a_timeout_after_the_last_heartbeat() -> None:
    world = World(GroupSettings(group_consumer_session_timeout_ms=6_000))
    world.join("a")
    world.now = 4 * SECOND
    world.send("a", 2)
    assert world.group.due is not None
    assert world.group.due <= 10 * SECOND
    world.group.tick(10 * SECOND - 1)
    assert list(world.group.members) == ["a"]
    world.group.events()
    world.group.tick(11 * SECOND)
    evicted, epoch, empty = world.group.events()
    assert (evicted.kind, evicted.member, evicted.time) == ("evicted", "a", 10 * SECOND)
    assert evicted.why == "no heartbeat for 6,000 ms (group.consumer.session.timeout.ms)"
    assert (evicted.facts["last_heartbeat"], evicted.facts["deadline"]) == (4 * SECOND, 10 * SECOND)
    assert (epoch.kind, epoch.generation, empty.kind, world.group.state, world.group.due) == (
        "epoch", 3, "empty", "Empty", None,
    )  # fmt: skip
    world.now = 11 * SECOND
    assert world.send("a", 2)[1].error == 25


def test_a_member_that_does_not_give_up_is_fenced_though_it_beats() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.now = SECOND
    assert world.send("a", 2, TopicPartitions=owning(0, 1, 2))[0]["MemberEpoch"] == 2
    for second in range(2, 11):
        world.now = second * SECOND
        assert world.send("a", 2, TopicPartitions=owning(0, 1, 2))[1].error == 0
    world.group.events()
    world.group.tick(11 * SECOND - 1)
    assert "a" in world.group.members
    world.group.tick(11 * SECOND)
    fenced = world.group.events()[0]
    assert (fenced.kind, fenced.member, fenced.facts["rebalance_timeout_ms"]) == ("fenced", "a", 10_000)
    world.now = 11 * SECOND
    body, _ = world.send("b", 3)
    assert body["Assignment"] == {"TopicPartitions": owning(0, 1, 2)}


def test_a_target_waits_for_the_assignment_interval() -> None:
    world = World(interval_ms=None)
    world.join("a")
    world.now = SECOND - 1
    body, _ = world.join("b")
    assert (body["MemberEpoch"], body["Assignment"], world.group.state) == (2, {"TopicPartitions": []}, "Assigning")
    world.now = SECOND
    assert world.send("b", 2)[0]["MemberEpoch"] == 3


@pytest.mark.parametrize(("era", "epoch"), [((3, 9), 1), ((4, 2), 1), ((4, 3), 2)])
def test_the_first_epoch_by_release(era: tuple[int, int], epoch: int) -> None:
    assert World(GroupSettings(era=era)).join("a", version=0)[0]["MemberEpoch"] == epoch


def test_changed_topics_are_seen_by_the_next_heartbeat() -> None:
    world = World()
    world.join("a", "orders", "new")
    world.topics["new"] = KnownTopic("new", UUID(int=9), 1)
    assert world.send("a", 2)[0]["MemberEpoch"] == 2
    world.group.topics_changed()
    body, _ = world.send("a", 2)
    assert body["MemberEpoch"] == 3
    assert body["Assignment"] == {"TopicPartitions": [*owning(0, 1, 2), {"TopicId": UUID(int=9), "Partitions": [0]}]}
    world.group.topics_changed()
    assert world.send("a", 3)[0]["MemberEpoch"] == 3


def test_a_pattern_is_resolved_after_the_heartbeat_that_brings_it() -> None:
    world = World()
    body, _ = world.join("a", SubscribedTopicNames=[], SubscribedTopicRegex="(orders|pay.*)")
    assert (body["MemberEpoch"], body["Assignment"]) == (1, {"TopicPartitions": []})
    body, _ = world.send("a", 1)
    assert (body["MemberEpoch"], len(body["Assignment"]["TopicPartitions"])) == (2, 2)
    assert (world.group.subscribes("payments"), world.group.subscribes("other")) == (True, False)
    world.topics["payback"] = KnownTopic("payback", UUID(int=9), 1)
    world.group.topics_changed()
    world.now = 11 * SECOND
    world.send("a", 2)
    assert world.send("a", 2)[0]["MemberEpoch"] == 3
    body, _ = world.send("a", 3, SubscribedTopicRegex="", TopicPartitions=[])
    assert (body["MemberEpoch"], body["Assignment"]) == (4, {"TopicPartitions": []})


def test_a_session_can_be_ended_on_purpose() -> None:
    world = World()
    world.join("a")
    assert (world.group.expire("a", 5), world.group.expire("a", 6)) == (True, False)
    assert world.kinds()[-3:] == [("evicted", "a"), ("epoch", "a"), ("empty", None)]


OFFSETS: dict[str, tuple[dict[str, Any], int]] = {
    "the member's epoch": ({"member_id": "a", "epoch": 3, "commit": True}, 0),
    "a stranger": ({"member_id": "x", "epoch": 3, "commit": True}, 25),
    "a tool while there are members": ({"member_id": "", "epoch": -1, "commit": True}, 25),
    "a transaction of no member": ({"member_id": "", "epoch": -1, "commit": True, "transactional": True}, 0),
    "version 8": ({"member_id": "a", "epoch": 3, "commit": True, "version": 8}, 35),
    "an epoch ahead": ({"member_id": "a", "epoch": 4, "commit": True}, 113),
    "an older epoch, the whole": ({"member_id": "a", "epoch": 2, "commit": True}, 0),
    "an older epoch, held since": ({"member_id": "a", "epoch": 2, "commit": True, "partition": (ORDERS.id, 0)}, 0),
    "an older epoch, not its own": ({"member_id": "a", "epoch": 2, "commit": True, "partition": (PAYMENTS.id, 0)}, 113),
    "older than the partition": ({"member_id": "a", "epoch": 1, "commit": True, "partition": (ORDERS.id, 0)}, 113),
    "a fetch": ({"member_id": "a", "epoch": 3, "commit": False}, 0),
    "a fetch at an older epoch": ({"member_id": "a", "epoch": 2, "commit": False}, 113),
    "a fetch of no member": ({"member_id": None, "epoch": -1, "commit": False}, 0),
    "a fetch of a stranger": ({"member_id": "x", "epoch": 1, "commit": False}, 25),
}


@pytest.mark.parametrize(("asked", "error"), OFFSETS.values(), ids=OFFSETS)
def test_offsets_are_checked_by_epoch(asked: dict[str, Any], error: int) -> None:
    world = two_stable()
    world.group.members["a"].hold = Hold(epoch=3, previous_epoch=2, assigned={(ORDERS.id, 0): 2})
    assert world.group.offset_check(**asked).error == error


def test_an_empty_group_takes_commits_of_tools_and_an_old_one_no_older_epoch() -> None:
    world = World(GroupSettings(era=(4, 1)))
    assert world.group.offset_check("", -1, commit=True).error == 0
    world.join("a")
    world.join("a", "orders", "payments")
    assert world.group.offset_check("a", 0, commit=True).error == 113


def test_a_described_group() -> None:
    world = two_stable()
    described = world.group.describe(1)
    assert [described[name] for name in ("GroupState", "GroupEpoch", "AssignmentEpoch", "AssignorName")] == [
        "Stable", 3, 3, "uniform",
    ]  # fmt: skip
    first = described["Members"][0]
    assert (first["MemberId"], first["InstanceId"], first["MemberEpoch"], first["MemberType"]) == ("a", "i", 3, 1)
    assert (first["ClientId"], first["ClientHost"]) == ("client", "/10.0.0.7")
    assert first["Assignment"] == first["TargetAssignment"]
    assert "MemberType" not in world.group.describe(0)["Members"][0]
    assert kwire.encode("ConsumerGroupDescribeResponse", 1, {"ThrottleTimeMs": 0, "Groups": [described]})
