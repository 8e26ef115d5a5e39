"""The bridge to the coordinator: answers that wait, several nodes, and faults that concern groups."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.context import BrokerLimits, BrokerSettings

PROTOCOLS = [{"Name": "range", "Metadata": b"m"}]


def join_body(member: str = "", group: str = "g") -> dict[str, Any]:
    return {
        "GroupId": group, "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 60_000, "MemberId": member,
        "ProtocolType": "consumer", "Protocols": PROTOCOLS,
    }  # fmt: skip


def settle(desk: Any, node: int = 1) -> str:
    """A group of one, stable; gives the member's id."""
    member: str = desk.ask("JoinGroup", 9, join_body(), node)["MemberId"]
    replies = desk.send("JoinGroup", 9, join_body(member), node)
    desk.clock.run(0)
    answer = desk.body("JoinGroup", 9, replies[0])
    assert (answer["ErrorCode"], answer["GenerationId"]) == (0, 1)
    assignments = [{"MemberId": member, "Assignment": b"a"}]
    body = {"GroupId": "g", "GenerationId": 1, "MemberId": member, "Assignments": assignments,
            "ProtocolType": "consumer", "ProtocolName": "range"}  # fmt: skip
    assert desk.ask("SyncGroup", 5, body, node)["Assignment"] == b"a"
    return member


def beat(desk: Any, member: str, node: int = 1) -> int:
    code: int = desk.ask("Heartbeat", 4, {"GroupId": "g", "GenerationId": 1, "MemberId": member}, node)["ErrorCode"]
    return code


def kinds(desk: Any) -> list[str]:
    return [happening.kind for happening in desk.state.happenings]


def test_a_member_lives_as_long_as_it_beats(desk: Any) -> None:
    member = settle(desk)
    for _ in range(5):
        desk.clock.run(9_000)
        assert beat(desk, member) == 0
    desk.clock.run(10_001)
    assert beat(desk, member) == 25
    assert kinds(desk)[-2:] == ["evicted", "empty"] or "evicted" in kinds(desk)


def test_a_join_waits_for_the_others_and_ends_with_them(desk: Any) -> None:
    member = settle(desk)
    second = desk.ask("JoinGroup", 9, join_body())["MemberId"]
    replies = desk.send("JoinGroup", 9, join_body(second))
    assert replies == []
    assert beat(desk, member) == 27
    again = desk.send("JoinGroup", 9, join_body(member))
    desk.clock.run(0)
    assert [desk.body("JoinGroup", 9, reply)["GenerationId"] for reply in (*replies, *again)] == [2, 2]


def test_who_hangs_up_is_not_answered(desk: Any) -> None:
    settle(desk)
    second = desk.ask("JoinGroup", 9, join_body())["MemberId"]
    replies = desk.raw(desk.frame("JoinGroup", 9, join_body(second)))
    desk.peer.close()
    desk.clock.run(70_000)
    assert replies == []
    assert desk.state.groups.coordinator.waiting == 0


@pytest.mark.parametrize("rule", ["group=g:forget", "Heartbeat,client=test:expire"])
def test_groups_and_sessions_end_on_purpose(desk: Any, rule: str) -> None:
    member = settle(desk)
    desk.faults.add(rule)
    assert [beat(desk, member), beat(desk, member)] == [25, 25]


def test_the_coordinator_is_one_node(make_desk: Any) -> None:
    desk = make_desk(BrokerSettings(nodes=2))
    owner = desk.state.cluster.coordinator("g")
    assert desk.ask("JoinGroup", 9, join_body(), 3 - owner)["ErrorCode"] == 16
    member = settle(desk, owner)
    assert [beat(desk, member, owner), beat(desk, member, 3 - owner)] == [0, 16]


def test_a_coordinator_that_moves_takes_its_groups_along(make_desk: Any) -> None:
    desk = make_desk(BrokerSettings(nodes=2))
    owner = desk.state.cluster.coordinator("g")
    member = settle(desk, owner)
    second = desk.ask("JoinGroup", 9, join_body(), owner)["MemberId"]
    waiting = desk.send("JoinGroup", 9, join_body(second), owner)
    desk.faults.add("coordinator:move")
    assert beat(desk, member, owner) == 16
    assert desk.body("JoinGroup", 9, waiting[0])["ErrorCode"] == 16
    assert beat(desk, member, 3 - owner) == 27


def test_groups_are_listed_by_their_coordinator(make_desk: Any) -> None:
    desk = make_desk(BrokerSettings(nodes=2))
    owner = desk.state.cluster.coordinator("g")
    settle(desk, owner)
    listed = {node: [row["GroupId"] for row in desk.ask("ListGroups", 4, {}, node)["Groups"]] for node in (1, 2)}
    assert listed == {owner: ["g"], 3 - owner: []}


def test_there_are_only_so_many_groups(make_desk: Any) -> None:
    desk = make_desk(BrokerSettings(limits=BrokerLimits(groups=1)))
    settle(desk)
    assert desk.ask("JoinGroup", 9, join_body(group="h"))["ErrorCode"] == 81


def test_offsets_are_committed_and_fetched(desk: Any) -> None:
    member = settle(desk)
    part = {"PartitionIndex": 0, "CommittedOffset": 7, "CommittedMetadata": "m"}
    body = {
        "GroupId": "g",
        "GenerationIdOrMemberEpoch": 1,
        "MemberId": member,
        "Topics": [{"Name": "t", "Partitions": [part]}],
    }
    assert desk.ask("OffsetCommit", 8, body)["Topics"][0]["Partitions"][0]["ErrorCode"] == 0
    asked = {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": [0]}]}
    row = desk.ask("OffsetFetch", 7, asked)["Topics"][0]["Partitions"][0]
    assert (row["CommittedOffset"], row["Metadata"]) == (7, "m")


def test_a_deleted_topic_reaches_the_groups(desk: Any) -> None:
    body = {
        "GroupId": "k", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 5000, "SubscribedTopicNames": ["t"],
        "TopicPartitions": [],
    }  # fmt: skip
    answer = desk.ask("ConsumerGroupHeartbeat", 0, body)
    assert [part["Partitions"] for part in answer["Assignment"]["TopicPartitions"]] == [[0, 1]]
    desk.ask("DeleteTopics", 3, {"TopicNames": ["t"], "TimeoutMs": 1})
    again = {"GroupId": "k", "MemberId": answer["MemberId"], "MemberEpoch": answer["MemberEpoch"]}
    desk.ask("ConsumerGroupHeartbeat", 0, again)
    desk.clock.run(5_000)
    after = desk.ask("ConsumerGroupHeartbeat", 0, again)
    assert (after["ErrorCode"], after["Assignment"]) == (0, {"TopicPartitions": []})
