"""What members are to give up and wait for: partitions of consumer groups, tasks of streams groups."""

from __future__ import annotations

from typing import Any

from scenes import Line, Scene


def beat(line: Line, at: float, member: str, epoch: int, owned: list[int] | None, given: list[int] | None) -> None:
    """A StreamsGroupHeartbeat of a member that runs these tasks of subtopology 0, and is told to run those."""

    def tasks(parts: list[int] | None) -> list[dict[str, Any]] | None:
        return None if parts is None else [{"SubtopologyId": "0", "Partitions": parts}] if parts else []

    asked = {
        "GroupId": "billing", "MemberId": member, "MemberEpoch": epoch, "RebalanceTimeoutMs": 10_000,
        "ActiveTasks": tasks(owned), "StandbyTasks": None, "WarmupTasks": None,
    }  # fmt: skip
    answer = {
        "ErrorCode": 0, "ErrorMessage": None, "MemberId": member, "MemberEpoch": max(epoch, 1),
        "ActiveTasks": tasks(given), "StandbyTasks": None, "WarmupTasks": None,
    }  # fmt: skip
    line.ask(at, "StreamsGroupHeartbeat", 0, asked, answer)


def group(gives_up_at: int) -> Scene:
    """A member with two tasks that is to give up one when another joins."""
    scene = Scene()
    first, second = scene.connect(0, "s-1"), scene.connect(0, "s-2", "10.0.0.8")
    beat(first, 1, "m-1", 0, [], [0, 1])
    beat(first, 2, "m-1", 1, [0, 1], None)
    beat(second, 3, "m-2", 0, [], [])
    beat(first, 3.5, "m-1", 1, None, [0])
    for at in range(4, gives_up_at):
        beat(first, at, "m-1", 1, None, None)
        beat(second, at + 0.5, "m-2", 1, None, None)
    beat(first, gives_up_at, "m-1", 1, [0], None)
    beat(second, gives_up_at + 0.5, "m-2", 1, None, [1])
    return scene


def test_a_streams_member_that_holds_on_to_its_task() -> None:
    (found,) = group(12).findings("unrevoked")
    assert found.about == {"group": "billing", "member": "m-1", "address": "10.0.0.7", "client_id": "s-1"}
    assert found.what.startswith("s-1 in group billing was told at 3.501 to give up 1 task and did so 8.5 s later")
    (waits,) = group(12).findings("slow-assignment")
    assert waits.severity == "warning"
    assert "s-2 joined group billing at 3.001 and got its first tasks 9.5 s later" in waits.what
    assert "waited for s-1, which was told to give up tasks at 3.501" in waits.what


def test_one_that_gives_it_up_at_once() -> None:
    assert group(5).said("unrevoked", "slow-assignment") == []
