"""Members that did not poll."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import Scene, diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"
FETCH = {"ReplicaId": -1, "MaxWaitMs": 500, "MinBytes": 1, "Topics": []}


def test_the_capture_of_one() -> None:
    diagnosis = diagnosed(packets_of(CAPTURES / "evict-max-poll.pcap.gz"), ["poll-timeout"])
    (found,) = diagnosis.findings
    assert found.severity == "error"
    assert "group billing: slow: left by itself at 11.062" in found.what
    assert found.about == {"client_id": "slow", "address": "127.0.0.1", "group": "billing"}
    assert abs((found.time - (diagnosis.case.start or 0)) / 1e9 - 11.06) < 0.3


def test_a_healthy_group_is_fine() -> None:
    assert diagnosed(packets_of(CAPTURES / "classic.pcap.gz"), ["poll-timeout"]).findings == []


def beat(epoch: int) -> dict[str, object]:
    return {"GroupId": "billing", "MemberId": "m-1", "MemberEpoch": epoch, "RebalanceTimeoutMs": 6000,
            "SubscribedTopicNames": ["orders"]}  # fmt: skip


@pytest.mark.parametrize(("fetches", "found"), [(20, ["error"]), (26, [])])
def test_a_member_of_an_epoch_group_that_stops_to_fetch_and_leaves_on_a_connection_that_stays(
    fetches: int, found: list[str]
) -> None:
    """It polls for many seconds before, which only its Fetch requests show."""
    scene = Scene()
    line, data = scene.connect(0), scene.connect(0)
    for at in range(1, 27):
        answer = {"ErrorCode": 0, "MemberId": "m-1", "MemberEpoch": 1, "HeartbeatIntervalMs": 1000}
        line.ask(at, "ConsumerGroupHeartbeat", 1, beat(int(at > 1)), answer)
        if at <= fetches:
            data.ask(at + 0.1, "Fetch", 12, FETCH, {"ThrottleTimeMs": 0, "Responses": []})
    line.ask(26.5, "ConsumerGroupHeartbeat", 1, beat(-1), {"ErrorCode": 0, "MemberId": "m-1", "MemberEpoch": -1})
    line.ask(30, "ConsumerGroupHeartbeat", 1, beat(0), answer)
    findings = scene.findings("poll-timeout")
    assert [one.severity for one in findings] == found
    for one in findings:
        assert one.about == {"client_id": "c1", "address": "10.0.0.7", "group": "billing"}
        assert "6.4 s passed since its last Fetch" in one.what
