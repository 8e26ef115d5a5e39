"""Coordinators: usual at the start, trouble when it lasts."""

from __future__ import annotations

from typing import Any

from scenes import Scene

ASKED = {"KeyType": 0, "CoordinatorKeys": ["billing"]}


def answer(error: int, node: int = -1) -> dict[str, Any]:
    one = {"Key": "billing", "NodeId": node, "Host": f"10.0.0.{node}" if node > 0 else "", "Port": 9092,
           "ErrorCode": error, "ErrorMessage": None}  # fmt: skip
    return {"Coordinators": [one]}


def test_one_that_does_not_come() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 12):
        line.ask(at, "FindCoordinator", 4, ASKED, answer(15))
    (found,) = scene.findings("coordinator-moved")
    assert (found.severity, found.about) == ("error", {"group": "billing"})
    assert found.what == (
        "group billing: COORDINATOR_NOT_AVAILABLE for 10.0 s: there was no coordinator (11 answers to 1 client)"
    )


def test_the_start_of_a_group_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "FindCoordinator", 4, ASKED, answer(15)).ask(1.2, "FindCoordinator", 4, ASKED, answer(0, 2))
    assert scene.findings("coordinator-moved") == []


def test_one_that_moves_often() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 8):
        line.ask(at, "FindCoordinator", 4, ASKED, answer(0, 2 + at % 2))
    (found,) = scene.findings("coordinator-moved")
    assert found.severity == "warning"
    assert "the coordinator of group billing moved 6 times: node 3 → 2 → 3" in found.what
