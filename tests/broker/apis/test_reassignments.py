"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.broker.configs import BROKER, SET, TOPIC
from kwire.broker.context import BrokerSettings
from kwire.records import build


@pytest.fixture
def socketless(make_socketless: Any) -> Any:
    return make_socketless(BrokerSettings(nodes=3, topics=(("t", 1),)))


def move(socketless: Any, replicas: list[int] | None, index: int = 0, free: bool = True) -> int:
    parts = [{"PartitionIndex": index, "Replicas": replicas}]
    asked = {"Topics": [{"Name": "t", "Partitions": parts}], "AllowReplicationFactorChange": free}
    answer = socketless.ask("AlterPartitionReassignments", 1, asked)
    return int(answer["Responses"][0]["Partitions"][0]["ErrorCode"])


def listed(socketless: Any, topics: Any = None) -> list[tuple[list[int], list[int], list[int]]]:
    found = socketless.ask("ListPartitionReassignments", 0, {"Topics": topics})["Topics"]
    names = ("Replicas", "AddingReplicas", "RemovingReplicas")
    return [tuple(part[name] for name in names) for topic in found for part in topic["Partitions"]]


def test_new_replicas_copy_first(socketless: Any) -> None:
    partition = socketless.state.cluster.topics["t"].partitions[0]
    first = partition.leader
    others = [node for node in (1, 2, 3) if node != first]
    assert move(socketless, others) == 0
    assert (
        listed(socketless)
        == listed(socketless, [{"Name": "t", "PartitionIndexes": [0]}])
        == [([*others, first], others, [first])]
    )
    assert listed(socketless, [{"Name": "t", "PartitionIndexes": [1]}]) == []
    assert (partition.leader, partition.in_sync) == (first, [first])
    socketless.clock.run(1_000)
    assert (partition.replicas, partition.in_sync, listed(socketless)) == (others, others, [])
    assert (partition.leader, partition.epoch) == (others[0], 1)
    assert move(socketless, others[::-1]) == 0  # nothing is to be copied
    assert (partition.replicas, partition.leader, partition.epoch) == (others[::-1], others[0], 1)


def test_what_is_under_way_is_cancelled_or_goes_elsewhere(socketless: Any) -> None:
    partition = socketless.state.cluster.topics["t"].partitions[0]
    first = partition.leader
    second, third = (node for node in (1, 2, 3) if node != first)
    assert move(socketless, [second]) == move(socketless, None) == 0
    assert (partition.replicas, partition.in_sync, listed(socketless)) == ([first], [first], [])
    assert move(socketless, [second]) == move(socketless, [third]) == 0
    assert listed(socketless) == [([third, first], [third], [first])]
    socketless.state.topology.down(third)
    socketless.clock.run(60_000)
    assert len(listed(socketless)) == 1  # nobody copies
    socketless.state.topology.up(third)
    socketless.clock.run(1_000)
    assert (partition.replicas, partition.leader, listed(socketless)) == ([third], third, [])
    assert move(socketless, [first]) == 0
    socketless.ask("DeleteTopics", 4, {"TopicNames": ["t"], "TimeoutMs": 1})
    socketless.clock.run(1_000)
    assert listed(socketless) == []


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_copying_is_throttled_where_the_topic_says_so(socketless: Any, side: str) -> None:
    partition = socketless.state.cluster.topics["t"].partitions[0]
    other = next(node for node in (1, 2, 3) if node != partition.leader)
    socketless.peer.node = partition.leader
    partition.log.append(build([(None, b"v" * 5_000)]), 0, 0)
    socketless.state.cluster.configs.change(BROKER, "", [(f"{side}.replication.throttled.rate", SET, "1000")])
    socketless.state.cluster.configs.change(TOPIC, "t", [(f"{side}.replication.throttled.replicas", SET, "*")])
    assert move(socketless, [other]) == 0
    socketless.clock.run(5_000)
    assert len(listed(socketless)) == 1
    socketless.clock.run(200)
    assert (partition.replicas, listed(socketless)) == ([other], [])


def test_what_cannot_be(socketless: Any) -> None:
    codes = [
        move(socketless, []),
        move(socketless, [1, 1]),
        move(socketless, [9]),
        move(socketless, [1, 2], free=False),
        move(socketless, None),
    ]
    assert codes == [39, 39, 39, 38, 85]
    assert move(socketless, [1], 5) == 3
