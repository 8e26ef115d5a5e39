"""What answers tell of a cluster: addresses, leaders, coordinators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scenes import START, Scene, diagnosed

from kwire.analyze.cluster import ClusterHistory

NODES = [{"NodeId": node, "Host": f"10.0.0.{node}", "Port": 9092} for node in (1, 2)]


def answer(leader: int = 1, epoch: int = 5, ident: int = 7) -> dict[str, Any]:
    part = {"ErrorCode": 0, "PartitionIndex": 0, "LeaderId": leader, "LeaderEpoch": epoch, "ReplicaNodes": [1, 2]}
    topic = {"ErrorCode": 0, "Name": "orders", "TopicId": UUID(int=ident), "Partitions": [part]}
    return {"Brokers": NODES, "ClusterId": "one", "Topics": [topic]}


def cluster(scene: Scene) -> ClusterHistory:
    return diagnosed(scene.packets, ["capture-quality"]).case.cluster


ASKED = {"Topics": [{"Name": "orders", "TopicId": UUID(int=0)}]}


def test_a_leader_that_moves_and_an_answer_that_is_late() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Metadata", 12, ASKED, answer(1, 5)).ask(2, "Metadata", 12, ASKED, answer(2, 6))
    line.ask(3, "Metadata", 12, ASKED, answer(1, 5))
    found = cluster(scene)
    assert [(state.node, state.epoch) for state in found.leaders["one", "orders", 0]] == [(1, 5), (2, 6)]
    assert [(before.node, after.node) for _, _, _, before, after in found.moves()] == [(1, 2)]
    leader = found.leader_at("one", "orders", 0, START + 1_500_000_000)
    assert leader is not None
    assert leader.node == 1


def test_addresses_and_ids() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "Metadata", 12, ASKED, answer()).ask(2, "Metadata", 12, ASKED, answer(ident=8))
    found = cluster(scene)
    assert {(node, host, port) for _, node, host, port in found.addresses} == {(1, "10.0.0.1", 9092),
                                                                              (2, "10.0.0.2", 9092)}  # fmt: skip
    assert len(found.ids["one", "orders"]) == 2
    assert found.node_at("10.0.0.2:9092") == 2


def test_answers_that_say_nothing_new_are_counted() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 8):
        line.ask(at, "Metadata", 12, ASKED, answer())
    (asking,) = cluster(scene).asking.values()
    assert (asking.count, asking.unchanged, asking.most) == (7, 6, 6)
    assert asking.wanted == {"orders": 6}


def test_coordinators() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, answer())
    for at, node in ((2, 1), (3, 2)):
        one = {"Key": "billing", "NodeId": node, "Host": f"10.0.0.{node}", "Port": 9092, "ErrorCode": 0}
        line.ask(at, "FindCoordinator", 4, {"KeyType": 0, "CoordinatorKeys": ["billing"]}, {"Coordinators": [one]})
    assert [state.node for state in cluster(scene).coordinators["one", "group", "billing"]] == [1, 2]
