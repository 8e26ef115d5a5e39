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


def settle(socketless: Any, node: int = 1) -> str:
    """A group of one, stable; gives the member's id."""
    member: str = socketless.ask("JoinGroup", 9, join_body(), node)["MemberId"]
    replies = socketless.send("JoinGroup", 9, join_body(member), node)
    socketless.clock.run(0)
    answer = socketless.body("JoinGroup", 9, replies[0])
    assert (answer["ErrorCode"], answer["GenerationId"]) == (0, 1)
    assignments = [{"MemberId": member, "Assignment": b"a"}]
    body = {"GroupId": "g", "GenerationId": 1, "MemberId": member, "Assignments": assignments,
            "ProtocolType": "consumer", "ProtocolName": "range"}  # fmt: skip
    assert socketless.ask("SyncGroup", 5, body, node)["Assignment"] == b"a"
    return member


def beat(socketless: Any, member: str, node: int = 1) -> int:
    code: int = socketless.ask("Heartbeat", 4, {"GroupId": "g", "GenerationId": 1, "MemberId": member}, node)[
        "ErrorCode"
    ]
    return code


def kinds(socketless: Any) -> list[str]:
    return [happening.kind for happening in socketless.state.happenings]


def test_a_member_lives_as_long_as_it_beats(socketless: Any) -> None:
    member = settle(socketless)
    for _ in range(5):
        socketless.clock.run(9_000)
        assert beat(socketless, member) == 0
    socketless.clock.run(10_001)
    assert beat(socketless, member) == 25
    assert kinds(socketless)[-2:] == ["evicted", "empty"] or "evicted" in kinds(socketless)


def test_a_join_waits_for_the_others_and_ends_with_them(socketless: Any) -> None:
    member = settle(socketless)
    second = socketless.ask("JoinGroup", 9, join_body())["MemberId"]
    replies = socketless.send("JoinGroup", 9, join_body(second))
    assert replies == []
    assert beat(socketless, member) == 27
    again = socketless.send("JoinGroup", 9, join_body(member))
    socketless.clock.run(0)
    assert [socketless.body("JoinGroup", 9, reply)["GenerationId"] for reply in (*replies, *again)] == [2, 2]


def test_who_hangs_up_is_not_answered(socketless: Any) -> None:
    settle(socketless)
    second = socketless.ask("JoinGroup", 9, join_body())["MemberId"]
    replies = socketless.raw(socketless.frame("JoinGroup", 9, join_body(second)))
    socketless.peer.close()
    socketless.clock.run(70_000)
    assert replies == []
    assert socketless.state.groups.coordinator.waiting == 0


@pytest.mark.parametrize("rule", ["group=g:forget", "Heartbeat,client=test:expire"])
def test_groups_and_sessions_end_on_purpose(socketless: Any, rule: str) -> None:
    member = settle(socketless)
    socketless.faults.add(rule)
    assert [beat(socketless, member), beat(socketless, member)] == [25, 25]


def test_the_coordinator_is_one_node(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    owner = socketless.state.cluster.coordinator("g")
    assert socketless.ask("JoinGroup", 9, join_body(), 3 - owner)["ErrorCode"] == 16
    member = settle(socketless, owner)
    assert [beat(socketless, member, owner), beat(socketless, member, 3 - owner)] == [0, 16]


def test_a_coordinator_that_moves_takes_its_groups_along(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    owner = socketless.state.cluster.coordinator("g")
    member = settle(socketless, owner)
    second = socketless.ask("JoinGroup", 9, join_body(), owner)["MemberId"]
    waiting = socketless.send("JoinGroup", 9, join_body(second), owner)
    socketless.faults.add("coordinator:move")
    assert beat(socketless, member, owner) == 16
    assert socketless.body("JoinGroup", 9, waiting[0])["ErrorCode"] == 16
    assert beat(socketless, member, 3 - owner) == 27


def test_groups_are_listed_by_their_coordinator(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(nodes=2))
    owner = socketless.state.cluster.coordinator("g")
    settle(socketless, owner)
    listed = {node: [row["GroupId"] for row in socketless.ask("ListGroups", 4, {}, node)["Groups"]] for node in (1, 2)}
    assert listed == {owner: ["g"], 3 - owner: []}


def test_there_are_only_so_many_groups(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(limits=BrokerLimits(groups=1)))
    settle(socketless)
    assert socketless.ask("JoinGroup", 9, join_body(group="h"))["ErrorCode"] == 81


def test_offsets_are_committed_and_fetched(socketless: Any) -> None:
    member = settle(socketless)
    part = {"PartitionIndex": 0, "CommittedOffset": 7, "CommittedMetadata": "m"}
    body = {
        "GroupId": "g",
        "GenerationIdOrMemberEpoch": 1,
        "MemberId": member,
        "Topics": [{"Name": "t", "Partitions": [part]}],
    }
    assert socketless.ask("OffsetCommit", 8, body)["Topics"][0]["Partitions"][0]["ErrorCode"] == 0
    asked = {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": [0]}]}
    row = socketless.ask("OffsetFetch", 7, asked)["Topics"][0]["Partitions"][0]
    assert (row["CommittedOffset"], row["Metadata"]) == (7, "m")


def test_a_deleted_topic_reaches_the_groups(socketless: Any) -> None:
    body = {
        "GroupId": "k", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 5000, "SubscribedTopicNames": ["t"],
        "TopicPartitions": [],
    }  # fmt: skip
    answer = socketless.ask("ConsumerGroupHeartbeat", 0, body)
    assert [part["Partitions"] for part in answer["Assignment"]["TopicPartitions"]] == [[0, 1]]
    socketless.ask("DeleteTopics", 3, {"TopicNames": ["t"], "TimeoutMs": 1})
    again = {"GroupId": "k", "MemberId": answer["MemberId"], "MemberEpoch": answer["MemberEpoch"]}
    socketless.ask("ConsumerGroupHeartbeat", 0, again)
    socketless.clock.run(5_000)
    after = socketless.ask("ConsumerGroupHeartbeat", 0, again)
    assert (after["ErrorCode"], after["Assignment"]) == (0, {"TopicPartitions": []})
