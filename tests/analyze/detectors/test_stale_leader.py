"""Clients that stay with a leader that is none any more."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scenes import Scene

NODES = [{"NodeId": node, "Host": f"10.0.0.{node}", "Port": 9092} for node in (2, 3)]
ASKED = {"Topics": [{"Name": "orders", "TopicId": UUID(int=0)}]}
PRODUCE = {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "orders", "PartitionData": [
    {"Index": 0, "Records": b""}]}]}  # fmt: skip


def metadata(leader: int, epoch: int) -> dict[str, Any]:
    part = {"ErrorCode": 0, "PartitionIndex": 0, "LeaderId": leader, "LeaderEpoch": epoch}
    return {"Brokers": NODES, "ClusterId": "one",
            "Topics": [{"ErrorCode": 0, "Name": "orders", "TopicId": UUID(int=7), "Partitions": [part]}]}  # fmt: skip


def produced(error: int) -> dict[str, Any]:
    return {"Responses": [{"Name": "orders", "PartitionResponses": [{"Index": 0, "ErrorCode": error}]}]}


def test_one_that_goes_on_asking_the_old_leader() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5)).ask(2, "Metadata", 12, ASKED, metadata(3, 6))
    for at in range(3, 9):
        line.ask(at, "Produce", 9, PRODUCE, produced(6))
    (found,) = scene.findings("stale-leader")
    assert found.severity == "error"
    assert "asks 10.0.0.2:9092 for orders-0, of which an answer told at 2.001 that node 3 leads it: " in found.what
    assert "NOT_LEADER_OR_FOLLOWER 6 times" in found.what
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "topic": "orders", "partition": 0,
                           "broker": "10.0.0.2:9092"}  # fmt: skip


def test_one_that_moves_at_once_is_fine() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5)).ask(2, "Produce", 9, PRODUCE, produced(6))
    line.ask(2.1, "Metadata", 12, ASKED, metadata(3, 6))
    scene.connect(2.2, broker="10.0.0.3:9092").ask(2.3, "Produce", 9, PRODUCE, produced(0))
    assert scene.findings("stale-leader") == []


def test_without_another_leader_nobody_is_stale() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, metadata(2, 5))
    for at in range(3, 9):
        line.ask(at, "Produce", 9, PRODUCE, produced(6))
    assert scene.findings("stale-leader") == []
