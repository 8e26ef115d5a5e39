"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.configs import BROKER, SET, TOPIC
from kwire.broker.context import BrokerSettings
from kwire.records import build


@pytest.fixture
def desk(make_desk: Any) -> Any:
    return make_desk(BrokerSettings(nodes=3, topics=(("t", 1),)))


def move(desk: Any, replicas: list[int] | None, index: int = 0, free: bool = True) -> int:
    parts = [{"PartitionIndex": index, "Replicas": replicas}]
    asked = {"Topics": [{"Name": "t", "Partitions": parts}], "AllowReplicationFactorChange": free}
    answer = desk.ask("AlterPartitionReassignments", 1, asked)
    return int(answer["Responses"][0]["Partitions"][0]["ErrorCode"])


def listed(desk: Any, topics: Any = None) -> list[tuple[list[int], list[int], list[int]]]:
    found = desk.ask("ListPartitionReassignments", 0, {"Topics": topics})["Topics"]
    names = ("Replicas", "AddingReplicas", "RemovingReplicas")
    return [tuple(part[name] for name in names) for topic in found for part in topic["Partitions"]]


def test_new_replicas_copy_first(desk: Any) -> None:
    partition = desk.state.cluster.topics["t"].partitions[0]
    first = partition.leader
    others = [node for node in (1, 2, 3) if node != first]
    assert move(desk, others) == 0
    assert (
        listed(desk) == listed(desk, [{"Name": "t", "PartitionIndexes": [0]}]) == [([*others, first], others, [first])]
    )
    assert listed(desk, [{"Name": "t", "PartitionIndexes": [1]}]) == []
    assert (partition.leader, partition.in_sync) == (first, [first])
    desk.clock.run(1_000)
    assert (partition.replicas, partition.in_sync, listed(desk)) == (others, others, [])
    assert (partition.leader, partition.epoch) == (others[0], 1)
    assert move(desk, others[::-1]) == 0  # nothing is to be copied
    assert (partition.replicas, partition.leader, partition.epoch) == (others[::-1], others[0], 1)


def test_what_is_under_way_is_cancelled_or_goes_elsewhere(desk: Any) -> None:
    partition = desk.state.cluster.topics["t"].partitions[0]
    first = partition.leader
    second, third = (node for node in (1, 2, 3) if node != first)
    assert move(desk, [second]) == move(desk, None) == 0
    assert (partition.replicas, partition.in_sync, listed(desk)) == ([first], [first], [])
    assert move(desk, [second]) == move(desk, [third]) == 0
    assert listed(desk) == [([third, first], [third], [first])]
    desk.state.topology.down(third)
    desk.clock.run(60_000)
    assert len(listed(desk)) == 1  # nobody copies
    desk.state.topology.up(third)
    desk.clock.run(1_000)
    assert (partition.replicas, partition.leader, listed(desk)) == ([third], third, [])
    assert move(desk, [first]) == 0
    desk.ask("DeleteTopics", 4, {"TopicNames": ["t"], "TimeoutMs": 1})
    desk.clock.run(1_000)
    assert listed(desk) == []


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_copying_is_throttled_where_the_topic_says_so(desk: Any, side: str) -> None:
    partition = desk.state.cluster.topics["t"].partitions[0]
    other = next(node for node in (1, 2, 3) if node != partition.leader)
    desk.peer.node = partition.leader
    partition.log.append(build([(None, b"v" * 5_000)]), 0, 0)
    desk.state.cluster.configs.change(BROKER, "", [(f"{side}.replication.throttled.rate", SET, "1000")])
    desk.state.cluster.configs.change(TOPIC, "t", [(f"{side}.replication.throttled.replicas", SET, "*")])
    assert move(desk, [other]) == 0
    desk.clock.run(5_000)
    assert len(listed(desk)) == 1
    desk.clock.run(200)
    assert (partition.replicas, listed(desk)) == ([other], [])


def test_what_cannot_be(desk: Any) -> None:
    codes = [move(desk, []), move(desk, [1, 1]), move(desk, [9]), move(desk, [1, 2], free=False), move(desk, None)]
    assert codes == [39, 39, 39, 38, 85]
    assert move(desk, [1], 5) == 3
