"""A member that waits for what another one holds."""

from __future__ import annotations

from uuid import UUID

from provoked import assert_proven
from scenes import Scene


def test_provoked() -> None:
    found = assert_proven("unrevoked", "slow-assignment")
    assert "it waited for holder" in found.what


def joined(answered: float, interval: int) -> list[str]:
    """A member that joins at 1.0 and gets its partition at another moment."""
    scene = Scene()
    line = scene.connect(0)
    beat = {"GroupId": "g", "MemberId": "m", "RebalanceTimeoutMs": 60_000, "TopicPartitions": []}
    told = {"ErrorCode": 0, "MemberId": "m", "MemberEpoch": 1, "HeartbeatIntervalMs": interval}
    some = {"TopicPartitions": [{"TopicId": UUID(int=1), "Partitions": [0]}]}
    name = "ConsumerGroupHeartbeat"
    line.ask(1, name, 0, {**beat, "MemberEpoch": 0}, {**told, "Assignment": {"TopicPartitions": []}})
    line.ask(answered, name, 0, {**beat, "MemberEpoch": 1, "RebalanceTimeoutMs": -1}, {**told, "Assignment": some})
    return [f"{one.severity}: {one.what}" for one in scene.findings("slow-assignment")]


def test_a_heartbeat_interval_is_nobodys_wait() -> None:
    assert joined(6.2, 5000) == []
    (said,) = joined(12.0, 5000)
    assert said.startswith("note: c1 joined group g at 1.001 and got its first partitions 11.0 s later")
