"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from typing import Any

from kwire.broker.context import BrokerSettings


def test_replicas_are_moved_at_once(make_desk: Any) -> None:
    desk = make_desk(BrokerSettings(nodes=3, topics=(("t", 1),)))
    partition = desk.state.cluster.topics["t"].partitions[0]

    def move(replicas: list[int] | None, index: int = 0, free: bool = True) -> int:
        parts = [{"PartitionIndex": index, "Replicas": replicas}]
        asked = {"Topics": [{"Name": "t", "Partitions": parts}], "AllowReplicationFactorChange": free}
        answer = desk.ask("AlterPartitionReassignments", 1, asked)
        return int(answer["Responses"][0]["Partitions"][0]["ErrorCode"])

    others = [node for node in (1, 2, 3) if node != partition.leader]
    assert move(others) == 0
    assert (partition.replicas, partition.leader, partition.epoch) == (others, others[0], 1)
    assert move(others[::-1]) == 0
    assert (partition.replicas, partition.leader, partition.epoch) == (others[::-1], others[0], 1)
    assert [move([]), move([1, 1]), move([9]), move([1], free=False), move(None), move([1], 5)] == [
        39,
        39,
        39,
        38,
        85,
        3,
    ]
    assert desk.ask("ListPartitionReassignments", 0, {"Topics": None})["Topics"] == []
