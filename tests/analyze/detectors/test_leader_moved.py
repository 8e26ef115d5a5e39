"""Leaders that move are one event, with what followed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scenes import Scene

NODES = [{"NodeId": node, "Host": f"10.0.0.{node}", "Port": 9092} for node in (2, 3)]
ASKED = {"Topics": [{"Name": "orders", "TopicId": UUID(int=0)}]}


def metadata(leader: int, epoch: int, count: int = 3) -> dict[str, Any]:
    parts = [
        {"ErrorCode": 0, "PartitionIndex": at, "LeaderId": leader, "LeaderEpoch": epoch} for at in range(count)
    ]  # fmt: skip
    return {"Brokers": NODES, "ClusterId": "one",
            "Topics": [{"ErrorCode": 0, "Name": "orders", "TopicId": UUID(int=7), "Partitions": parts}]}  # fmt: skip


def produce(part: int, error: int) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {"Acks": -1, "TimeoutMs": 1000, "TopicData": [
        {"Name": "orders", "PartitionData": [{"Index": part, "Records": b""}]}]}  # fmt: skip
    return asked, {"Responses": [{"Name": "orders", "PartitionResponses": [{"Index": part, "ErrorCode": error}]}]}


def test_partitions_that_move_together() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5))
    line.ask(2, "Produce", 9, *produce(0, 6)).ask(2.5, "Metadata", 12, ASKED, metadata(3, 6))
    line.ask(3, "Produce", 9, *produce(0, 0))
    (found,) = scene.findings("leader-moved")
    assert found.severity == "note"
    assert found.what == (
        "3 partitions moved from node 2 to node 3 at 2.501; 1 client got NOT_LEADER_OR_FOLLOWER 1 time"
    )
    assert found.about == {"broker": "2", "topic": "orders"}


def test_clients_that_suffer_long_make_it_a_warning() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5)).ask(2, "Metadata", 12, ASKED, metadata(3, 6))
    for at in range(3, 30):
        line.ask(at, "Produce", 9, *produce(0, 6))
    (found,) = scene.findings("leader-moved")
    assert found.severity == "warning"
    assert "for 26.0 s at the longest" in found.what


def test_the_same_leaders_are_fine() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5)).ask(2, "Metadata", 12, ASKED, metadata(2, 5))
    line.ask(3, "Metadata", 12, ASKED, metadata(2, 6, 4))
    assert scene.findings("leader-moved") == []


def test_the_broker_that_refuses_says_who_leads() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5))
    asked = {"Acks": -1, "TimeoutMs": 1000, "TransactionalId": None, "TopicData": [
        {"Name": "orders", "PartitionData": [{"Index": 0, "Records": b""}]}]}  # fmt: skip
    refused = {"Index": 0, "ErrorCode": 6, "CurrentLeader": {"LeaderId": 3, "LeaderEpoch": 6}}
    answer = {"Responses": [{"Name": "orders", "PartitionResponses": [refused]}], "NodeEndpoints": NODES}
    scene.connect(2).ask(3, "Produce", 10, asked, answer)
    (found,) = scene.findings("leader-moved")
    assert found.what.startswith("1 partition moved from node 2 to node 3 at 3.001")
    assert found.evidence[1].message == "ProduceResponse v10"
    assert (found.about["topic"], found.about["partition"]) == ("orders", 0)
