"""The coordinator's own interface: tickets, switches, kinds of groups side by side."""

from collections.abc import Callable
from typing import Any

import pytest

import kwire
from kwire.coordinator.bodies import shape
from kwire.coordinator.coordinator import APIS, Coordinator, random_id
from kwire.coordinator.group import Group, GroupState
from kwire.coordinator.subscriptions import topics_of
from kwire.coordinator.types import MS, ClientIdentity

Make = Callable[..., Any]
JOIN_848 = {
    "GroupId": "g",
    "MemberId": "m",
    "MemberEpoch": 0,
    "RebalanceTimeoutMs": 60_000,
    "SubscribedTopicNames": ["orders"],
    "TopicPartitions": [],
}


def test_an_api_that_is_not_the_coordinators(lab: Make) -> None:
    with pytest.raises(kwire.UnknownName, match=r"no group coordinator API Fetch"):
        lab().ask("Fetch", 0, {})


@pytest.mark.parametrize("api", sorted(APIS))
def test_an_inactive_coordinator_says_so_everywhere(lab: Make, api: str) -> None:
    made = lab()
    made.coordinator.active = False
    topics = [{"Name": "orders", "Partitions": [{"PartitionIndex": 0}], "PartitionIndexes": [0]}]
    body = {"GroupId": "g", "MemberId": "m", "Topics": topics, "Groups": ["g"], "GroupIds": ["g"], "GroupsNames": ["g"]}
    oldest = {"OffsetFetch": 2, "TxnOffsetCommit": 3, "OffsetDelete": 0}
    version = oldest.get(api, 0 if "ShareGroupOffsets" in api else 1)
    if api == "DescribeShareGroupOffsets":
        body["Groups"] = [{"GroupId": "g", "Topics": None}]
    answer = made.answer(made.ask(api, version, body))
    kwire.encode(api + "Response", version, answer.body)
    assert answer.check.error == 15
    assert "15" in str(answer.body)


def test_who_hangs_up_gets_no_answer_and_stays_a_member(lab: Make) -> None:
    made = lab(group_initial_rebalance_delay_ms=1_000)
    ticket = made.join(version=3)
    made.coordinator.gone(ticket)
    made.wait(1_000)
    assert made.coordinator.answers() == []
    assert list(made.group.members) == ["a-1"]
    made.coordinator.gone(ticket)
    made.coordinator.gone(999)


def test_time_that_runs_backwards_stands_still(lab: Make) -> None:
    made = lab()
    made.stable("a")
    made.wait(5_000)
    made.now = 1_000
    made.beat("a-1", 1)
    assert made.group.members["a-1"].last_heartbeat == 5_000 * MS


def test_expiries_happen_at_their_own_time_however_late_the_tick(lab: Make) -> None:
    made = lab()
    a, b = made.stable("ab")
    made.wait(5_000)
    made.beat(a, 2)
    made.coordinator.tick(3_600_000 * MS)
    times = {event.member: event.time // MS for event in made.events("evicted")}
    assert times == {b: 10_000, a: 15_000}
    assert made.coordinator.groups == {}


def test_a_ticket_is_a_number_of_its_own(lab: Make) -> None:
    made = lab()
    tickets = [made.join(version=3) for _ in range(5)]
    assert tickets == [1, 2, 3, 4, 5]


def test_ids_are_made_as_kafka_makes_them() -> None:
    made = random_id("app")
    assert made.startswith("app-")
    assert len(made) == 40
    assert made != random_id("app")


def test_an_empty_group_changes_its_kind(lab: Make) -> None:
    made = lab()
    made.commit(*made.stable("a"), 1)
    refused = made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    assert (refused["ErrorCode"], refused["ErrorMessage"]) == (
        69,
        "group g is classic; what member a-1 said, or was given, is not of the consumer protocol",
    )
    made.leave(("a-1", None))
    assert made.get("ConsumerGroupHeartbeat", 1, JOIN_848)["ErrorCode"] == 0
    assert made.beat("m", 2).body["ErrorCode"] == 25
    assert made.body(made.join(version=3))["ErrorCode"] == 23
    assert made.body(made.join())["ErrorCode"] == 79
    assert made.coordinator.offsets.holds("g")
    made.get("ConsumerGroupHeartbeat", 1, {**JOIN_848, "MemberEpoch": -1})
    assert made.body(made.join(version=3))["GenerationId"] == 1
    assert isinstance(made.group, Group)


def test_a_consumer_groups_deadlines_are_the_coordinators(lab: Make) -> None:
    made = lab(group_consumer_session_timeout_ms=20_000)
    made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    assert made.coordinator.due == 20_000 * MS
    made.wait(20_000)
    (event,) = made.events("evicted")
    assert (event.member, event.time) == ("m", 20_000 * MS)
    made.wait(600_000)
    assert made.coordinator.groups == {}
    assert made.coordinator.due is None


def test_a_consumer_group_is_expired_and_forgotten(lab: Make) -> None:
    made = lab()
    made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    assert made.coordinator.expire("g", "m", 0)
    assert not made.coordinator.expire("g", "m", 0)
    assert made.coordinator.forget("g")
    assert made.coordinator.due is None


@pytest.mark.parametrize(
    ("member", "epoch", "version", "error"), [("m", 2, 9, 0), ("m", 1, 9, 113), ("x", 2, 9, 25), ("", -1, 9, 25)]
)
def test_commits_to_a_consumer_group(lab: Make, member: str, epoch: int, version: int, error: int) -> None:
    made = lab()
    made.get("ConsumerGroupHeartbeat", 1, JOIN_848)
    answer = made.commit(member, epoch, version)
    assert answer.body["Topics"][0]["Partitions"][0]["ErrorCode"] == error


def test_topics_that_change_reach_consumer_groups(lab: Make) -> None:
    made = lab(group_consumer_assignment_interval_ms=0)
    made.get("ConsumerGroupHeartbeat", 1, {**JOIN_848, "SubscribedTopicNames": ["orders", "payments"]})
    before = made.group.epoch
    del made.topics["payments"]
    made.coordinator.topics_changed(0)
    made.get("ConsumerGroupHeartbeat", 1, {**JOIN_848, "MemberEpoch": 2, "SubscribedTopicNames": None})
    assert made.group.epoch == before + 1


# small parts


@pytest.mark.parametrize(
    ("message", "version", "given", "body"),
    [
        ("HeartbeatResponse", 0, {"ErrorCode": 25}, {"ErrorCode": 25}),
        ("HeartbeatResponse", 4, {"ErrorCode": 25}, {"ThrottleTimeMs": 0, "ErrorCode": 25}),
        ("HeartbeatResponse", 0, {"ErrorCode": 25, "ErrorMessage": "x"}, {"ErrorCode": 25}),
        (
            "JoinGroupResponse",
            5,
            {"ProtocolName": None, "Members": [{"MemberId": "a", "Extra": 1}]},
            {
                "ThrottleTimeMs": 0,
                "ErrorCode": 0,
                "GenerationId": -1,
                "ProtocolName": "",
                "Leader": "",
                "MemberId": "",
                "Members": [{"MemberId": "a", "GroupInstanceId": None, "Metadata": b""}],
            },
        ),
    ],
)
def test_bodies_have_exactly_the_versions_fields(
    message: str, version: int, given: dict[str, Any], body: dict[str, Any]
) -> None:
    assert shape(message, version, given) == body


def test_defaults_are_not_shared() -> None:
    first = shape("LeaveGroupResponse", 3, {})
    first["Members"].append(1)
    assert shape("LeaveGroupResponse", 3, {})["Members"] == []


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        ("0000 00000000 ffffffff", frozenset()),
        ("0003 00000002 0001 61 0001 62 ffffffff 00000000", frozenset("ab")),
        ("", None),
        ("00", None),
        ("0000 7fffffff", None),
    ],
)
def test_topics_of_a_subscription(metadata: str, topics: frozenset[str] | None) -> None:
    assert topics_of(bytes.fromhex(metadata)) == topics


@pytest.mark.parametrize(
    ("state", "target", "allowed"),
    [
        (GroupState.EMPTY, GroupState.PREPARING, True),
        (GroupState.EMPTY, GroupState.STABLE, False),
        (GroupState.PREPARING, GroupState.COMPLETING, True),
        (GroupState.COMPLETING, GroupState.STABLE, True),
        (GroupState.STABLE, GroupState.COMPLETING, False),
        (GroupState.DEAD, GroupState.PREPARING, False),
        (GroupState.DEAD, GroupState.DEAD, True),
    ],
)
def test_transitions(state: GroupState, target: GroupState, allowed: bool) -> None:
    group = Group("g", state)
    if allowed:
        group.go(target, 5)
        assert (group.state, group.before, group.since) == (target, state, 5)
    else:
        with pytest.raises(ValueError, match=f"group g cannot go from {state} to {target}"):
            group.go(target, 5)


def test_many_groups_that_nobody_uses_leave_nothing_behind() -> None:
    coordinator = Coordinator()
    body = {"SessionTimeoutMs": 6_000, "RebalanceTimeoutMs": 1, "MemberId": "", "ProtocolType": "x"}
    protocols = [{"Name": "p", "Metadata": b""}]
    for number in range(2_000):
        coordinator.ask("JoinGroup", 4, {**body, "GroupId": str(number), "Protocols": protocols}, ClientIdentity(), 0)
    assert len(coordinator.groups) == 2_000
    coordinator.tick(1_200_000 * MS)
    assert (coordinator.groups, coordinator.waiting, coordinator.due) == ({}, 0, None)
