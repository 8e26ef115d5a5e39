"""APIs that brokers take only where a setting or a feature allows it: what an audit says of their clients."""

from __future__ import annotations

from itertools import pairwise

import pytest
from scenes import Scene
from session.conftest import block

from kwire.analyze.audit import BLOCKED, READY, UNPROVEN, Audit
from kwire.analyze.feature_gates import GATES
from kwire.analyze.offers import release_named, versions_at
from kwire.schema.registry import builtin
from kwire.session.reader import Reader


def test_gates_of_an_api_follow_each_other() -> None:
    for one in GATES:
        alike = [other for other in GATES if other.keys == one.keys]
        assert all(before.until == after.since for before, after in pairwise(alike))
        assert alike[-1].open_


def group_of(api: str, version: int, release: str = "4.3", error: int = 0) -> Audit:
    """A member of a group of the newer protocols, and a broker that offers what a release does."""
    ranges = {key: versions_at(key, release_named(release)) for key in builtin().keys()}  # noqa: SIM118
    keys = [{"ApiKey": key, "MinVersion": one.low, "MaxVersion": one.high} for key, one in ranges.items() if one]
    told = {"ClientSoftwareName": "apache-kafka-java", "ClientSoftwareVersion": "4.3.1"}
    scene = Scene()
    line = scene.connect(0).ask(1, "ApiVersions", 3, told, {"ErrorCode": 0, "ApiKeys": keys})
    member = {"GroupId": "g", "MemberId": "m", "MemberEpoch": 0} if api.endswith("GroupHeartbeat") else {}
    line.ask(2, api, version, member, {"ErrorCode": error})
    audit, reader = Audit(), Reader("made.pcap")
    for batch in (*reader.feed(block(scene.packets, 1)), *reader.finish()):
        audit.add(batch)
    return audit


@pytest.mark.parametrize(
    ("api", "to", "verdict", "why"),
    [
        ("ConsumerGroupHeartbeat", (3, 9), UNPROVEN, "group.coordinator.rebalance.protocols=classic,consumer"),
        ("ConsumerGroupHeartbeat", (3, 7), UNPROVEN, "group.coordinator.rebalance.protocols=classic,consumer"),
        ("ConsumerGroupHeartbeat", (3, 6), BLOCKED, ""),
        ("ConsumerGroupHeartbeat", (4, 0), READY, "group.version is at least 1"),
        ("ShareGroupHeartbeat", (4, 0), BLOCKED, ""),
        ("ShareGroupHeartbeat", (4, 1), UNPROVEN, "share.version is 1"),
        ("ShareGroupHeartbeat", (4, 2), READY, "share.version is at least 1"),
        ("StreamsGroupHeartbeat", (4, 1), BLOCKED, ""),
        ("StreamsGroupHeartbeat", (4, 2), READY, "streams.version is at least 1"),
    ],
)
def test_what_brokers_take_only_under_a_condition(api: str, to: tuple[int, int], verdict: str, why: str) -> None:
    version = 1 if api == "ShareGroupHeartbeat" else 0
    (one,) = group_of(api, version).reverse((4, 3), to)
    assert one.verdict == verdict
    assert why in one.why
    assert bool(one.why) == bool(why)
    assert bool(one.cure) == (verdict != READY)


@pytest.mark.parametrize(
    ("release", "error", "verdict"), [("4.3", 0, READY), ("4.3", 35, UNPROVEN), ("3.9", 35, UNPROVEN)]
)
def test_whether_the_present_brokers_meet_the_condition_is_seen(release: str, error: int, verdict: str) -> None:
    (one,) = group_of("ConsumerGroupHeartbeat", 0, release, error).reverse((4, 3), None)
    assert (one.verdict, bool(one.why)) == (verdict, verdict == UNPROVEN)


def test_a_setting_that_lets_3_9_take_it_says_nothing_of_the_feature_in_4() -> None:
    (one,) = group_of("ConsumerGroupHeartbeat", 0, "3.9").verdicts((4, 0))
    assert (one.verdict, "group.version is at least 1" in one.why) == (READY, True)
    (same,) = group_of("ConsumerGroupHeartbeat", 0, "4.0").verdicts((4, 3))
    assert (same.verdict, same.why) == (READY, "")


def test_an_api_that_the_release_does_not_have_cannot_be_negotiated() -> None:
    """Unless clients do without, as without telemetry."""
    (one,) = group_of("ShareGroupHeartbeat", 1).verdicts((3, 9))
    assert (one.verdict, one.cure) == (BLOCKED, "brokers of 4.2 or newer")
    (one,) = group_of("GetTelemetrySubscriptions", 0).verdicts((3, 6))
    assert one.verdict == READY
