"""Heartbeats of a protocol that is turned off."""

from __future__ import annotations

from provoked import assert_proven
from scenes import Scene

from kwire.analyze.offers import versions_at
from kwire.schema.registry import builtin


def test_provoked() -> None:
    found = assert_proven("version-beyond-feature", "version-beyond-feature", "error")
    assert "group.version is 0 in this cluster" in found.what


def test_before_4_0_a_setting_is_missing_and_no_feature() -> None:
    """As a broker of 3.9 answers by default."""
    ranges = {key: versions_at(key, (3, 9)) for key in builtin().keys()}  # noqa: SIM118
    offer = [{"ApiKey": key, "MinVersion": one.low, "MaxVersion": one.high} for key, one in ranges.items() if one]
    scene = Scene()
    line = scene.connect(0).ask(
        1, "ApiVersions", 3, {}, {"ErrorCode": 0, "ApiKeys": offer, "FinalizedFeaturesEpoch": 5}
    )
    line.ask(2, "ConsumerGroupHeartbeat", 0, {"GroupId": "g", "MemberId": "m", "MemberEpoch": 0}, {"ErrorCode": 35})
    (found,) = scene.findings("version-beyond-feature")
    assert "taken only where brokers have group.coordinator.rebalance.protocols=classic,consumer" in found.what
    assert "group.version" not in found.what + found.advice
    assert found.advice.startswith("Set group.coordinator.rebalance.protocols=classic,consumer on the brokers")
