"""Offsets go when nobody has used them for offsets.retention.minutes, and then the group does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]
MINUTE = 60_000
PART = {"PartitionIndex": 0, "CommittedOffset": 5, "CommittedLeaderEpoch": -1, "CommittedMetadata": ""}
SETTINGS = {"offsets_retention_minutes": 2, "offsets_retention_check_interval_ms": MINUTE}


def commit(made: Any, member: str = "", epoch: int = -1, topic: str = "orders", api: str = "OffsetCommit") -> None:
    body = {"GroupId": "g", "GenerationIdOrMemberEpoch": epoch, "MemberId": member, "Topics": [
        {"Name": topic, "Partitions": [PART]}]}  # fmt: skip
    answer = made.get(api, 9, body)
    assert answer["Topics"][0]["Partitions"][0]["ErrorCode"] == 0, answer


def test_offsets_alone_go_each_in_its_time(lab: Make) -> None:
    made = lab(**SETTINGS)
    commit(made)
    made.wait(MINUTE - 1)
    commit(made, topic="payments")
    made.wait(MINUTE + 1)
    assert [topic for topic, _ in made.coordinator.offsets.committed["g"]] == ["payments"]
    made.wait(MINUTE)
    assert made.coordinator.groups == {}
    assert made.coordinator.offsets.committed == {}


def test_what_an_open_transaction_will_commit_stays(lab: Make) -> None:
    made = lab(**SETTINGS)
    commit(made)
    body = {"GroupId": "g", "TransactionalId": "t", "ProducerId": 1, "ProducerEpoch": 0, "GenerationId": -1,
            "MemberId": "", "Topics": [{"Name": "orders", "Partitions": [PART]}]}  # fmt: skip
    made.get("TxnOffsetCommit", 3, body)
    made.wait(3 * MINUTE)
    assert made.coordinator.offsets.holds("g")
    made.coordinator.end_transaction(1, commit=False)
    made.wait(MINUTE)
    assert made.coordinator.groups == {}


def test_of_a_consumer_group_nothing_goes_while_it_has_members(lab: Make) -> None:
    made = lab(**SETTINGS, group_consumer_session_timeout_ms=10 * MINUTE)
    join = {"GroupId": "g", "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": MINUTE,
            "SubscribedTopicNames": ["orders"], "TopicPartitions": []}  # fmt: skip
    epoch = made.get("ConsumerGroupHeartbeat", 1, join)["MemberEpoch"]
    commit(made, "m", epoch)
    made.wait(5 * MINUTE)
    assert made.coordinator.offsets.holds("g")
    made.get("ConsumerGroupHeartbeat", 1, join | {"MemberEpoch": -1})
    made.wait(MINUTE)
    assert made.coordinator.groups == {}


def test_of_a_classic_group_they_go_when_it_has_been_empty_for_so_long(lab: Make) -> None:
    made = lab(**SETTINGS)
    body = {"GroupId": "g", "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 10_000, "MemberId": "",
            "ProtocolType": "connect", "Protocols": [{"Name": "range", "Metadata": b""}]}  # fmt: skip
    member = made.get("JoinGroup", 3, body)["MemberId"]
    made.get("SyncGroup", 3, {"GroupId": "g", "GenerationId": 1, "MemberId": member, "Assignments": []})
    commit(made, member, 1)
    for _ in range(60):
        made.wait(9_000)
        made.get("Heartbeat", 3, {"GroupId": "g", "GenerationId": 1, "MemberId": member})
    made.get("LeaveGroup", 3, {"GroupId": "g", "Members": [{"MemberId": member}]})
    made.wait(MINUTE)
    assert made.coordinator.offsets.holds("g")
    made.wait(MINUTE)
    assert made.coordinator.groups == {}
