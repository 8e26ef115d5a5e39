"""Two processes with one instance id."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenes import Scene, diagnosed, packets_of

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"


def test_the_capture_of_one() -> None:
    diagnosis = diagnosed(packets_of(CAPTURES / "evict-fenced.pcap.gz"), ["static-clash"])
    (found,) = diagnosis.findings
    assert found.severity == "error"
    assert "client usurper from 127.0.0.1 took over its instance id billing-1" in found.what
    assert found.about == {"client_id": "first", "address": "127.0.0.1", "group": "billing"}
    assert abs((found.time - (diagnosis.case.start or 0)) / 1e9 - 6.81) < 0.3


def test_a_healthy_group_is_fine() -> None:
    assert diagnosed(packets_of(CAPTURES / "evict-stopped.pcap.gz"), ["static-clash"]).findings == []


def beat(member: str, epoch: int) -> dict[str, object]:
    return {"GroupId": "billing", "MemberId": member, "MemberEpoch": epoch, "InstanceId": "billing-1",
            "RebalanceTimeoutMs": 60_000, "SubscribedTopicNames": ["orders"]}  # fmt: skip


def answer(member: str, epoch: int, error: int = 0) -> dict[str, object]:
    return {"ErrorCode": error, "MemberId": member, "MemberEpoch": epoch, "HeartbeatIntervalMs": 1000}


@pytest.mark.parametrize(("goes_on", "found"), [(True, ["error"]), (False, [])])
def test_an_instance_id_that_a_living_member_of_an_epoch_group_holds(goes_on: bool, found: list[str]) -> None:
    """UNRELEASED_INSTANCE_ID: fatal beside a member that goes on; where that one is gone, the next join goes well."""
    scene = Scene()
    first = scene.connect(0, client="first")
    first.ask(1, "ConsumerGroupHeartbeat", 1, beat("m-1", 0), answer("m-1", 1))
    second = scene.connect(4, client="second", host="10.0.0.8")
    second.ask(5, "ConsumerGroupHeartbeat", 1, beat("m-2", 0), answer("m-2", 0, 111))
    if goes_on:
        for at in range(6, 20):
            first.ask(at, "ConsumerGroupHeartbeat", 1, beat("m-1", 1), answer("m-1", 1))
    else:
        second.ask(50, "ConsumerGroupHeartbeat", 1, beat("m-2", 0), answer("m-2", 2))
    findings = [one for one in scene.findings("static-clash") if one.severity != "note"]
    assert [one.severity for one in findings] == found
    for one in findings:
        assert "client first from 10.0.0.7 holds instance id billing-1 since 1.000" in one.what
        assert one.about == {"client_id": "second", "address": "10.0.0.8", "group": "billing"}
