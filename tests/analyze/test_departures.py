"""How members went: what proves that an application did not poll, and whose requests went on."""

from __future__ import annotations

from typing import Any

from judged import findings_of, groups_said
from scenes import Line, Scene


def join(line: Line, at: float, member: str, generation: int = 1, rebalance: int = 6000) -> None:
    asked = {
        "GroupId": "billing", "SessionTimeoutMs": 6000, "RebalanceTimeoutMs": rebalance, "MemberId": "",
        "GroupInstanceId": None, "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": b""}],
    }  # fmt: skip
    roster = [{"MemberId": member, "GroupInstanceId": None, "Metadata": b""}]
    answer = {
        "ThrottleTimeMs": 0, "ErrorCode": 0, "GenerationId": generation, "ProtocolName": "range", "Leader": member,
        "MemberId": member, "Members": roster,
    }  # fmt: skip
    line.ask(at, "JoinGroup", 5, asked, answer)
    sync = {"GroupId": "billing", "GenerationId": generation, "MemberId": member, "GroupInstanceId": None}
    given = {"ThrottleTimeMs": 0, "ErrorCode": 0, "Assignment": b""}
    line.ask(at + 0.01, "SyncGroup", 3, sync | {"Assignments": []}, given)


def beat(line: Line, at: float, member: str, generation: int = 1, error: int = 0) -> None:
    asked = {"GroupId": "billing", "GenerationId": generation, "MemberId": member, "GroupInstanceId": None}
    line.ask(at, "Heartbeat", 3, asked, {"ThrottleTimeMs": 0, "ErrorCode": error})


def leave(line: Line, at: float, member: str) -> None:
    line.ask(at, "LeaveGroup", 0, {"GroupId": "billing", "MemberId": member}, {"ErrorCode": 0})


def lived(scene: Scene) -> Line:
    """A member that joins, sends heartbeats for as long as it may without a poll, and leaves."""
    line = scene.connect(0)
    join(line, 1, "m-1")
    for turn in range(6):
        beat(line, 2 + turn, "m-1")
    leave(line, 7.5, "m-1")
    return line


def test_who_leaves_and_stays_connected_did_not_poll() -> None:
    scene = Scene()
    line = lived(scene)
    join(line, 12, "m-2", 2)
    assert [said for said in groups_said(scene) if "max.poll.interval.ms" in said and said.startswith("error")]


def test_a_close_and_a_restart_under_the_same_client_id_is_none() -> None:
    scene = Scene()
    line = lived(scene)
    line.close(7.51)
    again = scene.connect(9)
    join(again, 9.1, "m-2", 2)
    for turn in range(4):
        beat(again, 10 + turn, "m-2", 2)
    assert [said for said in groups_said(scene) if not said.startswith("note")] == []
    assert [said for said in scene.said() if not said.startswith("note")] == []


def evicted(scene: Scene, other: bool) -> list[str]:
    """Advice for a member that was evicted while another client of the same name goes on."""
    line = scene.connect(0)
    second = scene.connect(0)
    join(line, 1, "m-1")
    for turn in range(4):
        beat(line, 2 + turn, "m-1")
    for turn in range(28):
        if other:
            beat(second, 2.1 + turn / 2, "m-2")
        else:
            second.ask(2.1 + turn / 2, "Metadata", 1, {"Topics": []}, {"Brokers": [], "ControllerId": 1, "Topics": []})
    beat(line, 14, "m-1", error=25)
    return [one.advice for _, one in findings_of(scene) if one.detector == "evicted"]


def test_whose_requests_went_on_is_not_known_where_two_share_a_name() -> None:
    assert ["went on meanwhile" in advice for advice in evicted(Scene(), other=False)] == [True]
    assert ["went on meanwhile" in advice for advice in evicted(Scene(), other=True)] == [False]


def commit(error: dict[int, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """An OffsetCommit (v6) of orders-0 to 2, each partition with its error."""
    parts = [
        {"PartitionIndex": number, "CommittedOffset": 5, "CommittedLeaderEpoch": -1, "CommittedMetadata": ""}
        for number in range(3)
    ]
    asked = {
        "GroupId": "billing", "GenerationIdOrMemberEpoch": -1, "MemberId": "",
        "Topics": [{"Name": "orders", "Partitions": parts}],
    }  # fmt: skip
    codes = [{"PartitionIndex": number, "ErrorCode": error.get(number, 0)} for number in range(3)]
    return asked, {"ThrottleTimeMs": 0, "Topics": [{"Name": "orders", "Partitions": codes}]}


def test_a_commit_that_is_refused_for_one_partition_stores_the_others() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "OffsetCommit", 6, *commit({1: 3}))
    (said,) = groups_said(scene)
    assert said.endswith("offsets of 1 partition of orders were not stored")
