"""Groups that do not come to rest."""

from __future__ import annotations

from typing import Any

from scenes import Scene


def join(member: str, generation: int) -> tuple[dict[str, Any], dict[str, Any]]:
    asked = {"GroupId": "billing", "SessionTimeoutMs": 6000, "RebalanceTimeoutMs": 6000, "MemberId": member,
             "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": b""}]}  # fmt: skip
    answer = {"ErrorCode": 0, "GenerationId": generation, "ProtocolName": "range", "Leader": "m", "MemberId": "m",
              "Members": [{"MemberId": "m", "Metadata": b""}]}  # fmt: skip
    return asked, answer


def rebalances(count: int, every: float) -> Scene:
    scene = Scene()
    line = scene.connect(0)
    for at in range(count):
        line.ask(1 + at * every, "JoinGroup", 3, *join("m" if at else "", at + 1))
        sync = {"GroupId": "billing", "GenerationId": at + 1, "MemberId": "m",
                "Assignments": [{"MemberId": "m", "Assignment": b""}]}  # fmt: skip
        line.ask(1.1 + at * every, "SyncGroup", 2, sync, {"ErrorCode": 0, "Assignment": b""})
    return scene


def test_a_member_that_joins_again_and_again() -> None:
    (found,) = rebalances(8, 3).findings("rebalance-storm")
    assert (found.severity, found.about) == ("warning", {"group": "billing"})
    assert "what began them: c1 joined again" in found.what


def test_now_and_then_is_fine() -> None:
    assert rebalances(4, 30).findings("rebalance-storm") == []
