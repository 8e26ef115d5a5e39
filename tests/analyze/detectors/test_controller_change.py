"""Another controller."""

from __future__ import annotations

from typing import Any

from scenes import Scene


def began(leader: int, epoch: int) -> dict[str, Any]:
    part = {"PartitionIndex": 0, "LeaderId": leader, "LeaderEpoch": epoch}
    return {"ClusterId": "one", "Topics": [{"TopicName": "__cluster_metadata", "Partitions": [part]}]}


def test_epochs_with_other_leaders() -> None:
    scene = Scene()
    line = scene.connect(0, client="raft-client-1")
    for at, (leader, epoch) in enumerate(((1, 4), (1, 4), (2, 5))):
        line.ask(1 + at, "BeginQuorumEpoch", 0, began(leader, epoch), {"ErrorCode": 0, "Topics": []})
    (found,) = scene.findings("controller-change")
    assert (found.severity, found.count) == ("note", 1)
    assert found.what == "the controller changed 1 time: node 1 (epoch 4, 1.000), 2 (epoch 5, 3.000)"


def test_elections_again_and_again() -> None:
    scene = Scene()
    line = scene.connect(0, client="raft-client-1")
    for at in range(5):
        line.ask(1 + at, "BeginQuorumEpoch", 0, began(at % 2, 4 + at), {"ErrorCode": 0, "Topics": []})
    assert [one.severity for one in scene.findings("controller-change")] == ["warning"]


def test_one_epoch_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "BeginQuorumEpoch", 0, began(1, 4), {"ErrorCode": 0, "Topics": []})
    assert scene.findings("controller-change") == []
