"""Members without an assignor in common."""

from __future__ import annotations

from typing import Any

from scenes import Scene


def join(scene: Scene, error: int) -> None:
    asked = {"GroupId": "billing", "SessionTimeoutMs": 6000, "RebalanceTimeoutMs": 6000, "MemberId": "",
             "ProtocolType": "consumer", "Protocols": [{"Name": "sticky", "Metadata": b""}]}  # fmt: skip
    answer: dict[str, Any] = {
        "ErrorCode": error, "GenerationId": -1 if error else 1, "ProtocolName": "" if error else "sticky",
        "Leader": "m", "MemberId": "" if error else "m", "Members": [],
    }  # fmt: skip
    scene.connect(0).ask(1, "JoinGroup", 3, asked, answer)


def test_a_member_that_is_refused() -> None:
    scene = Scene()
    join(scene, 23)
    (found,) = scene.findings("assignor-clash")
    assert found.severity == "error"
    assert "it offers consumer sticky" in found.what
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "group": "billing"}


def test_one_that_joins_is_fine() -> None:
    scene = Scene()
    join(scene, 0)
    assert scene.findings("assignor-clash") == []
