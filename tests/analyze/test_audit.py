"""Who is blocked by another release of Kafka, who is not, and of whom it cannot be told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scenes import Packet, Scene, packets_of
from session.conftest import block

from kwire.analyze.audit import BLOCKED, READY, UNPROVEN, Audit
from kwire.session.reader import Reader

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
DOCTOR = CAPTURES.parent / "doctor"
OFFER = {"ErrorCode": 0, "ApiKeys": [
    {"ApiKey": 0, "MinVersion": 0, "MaxVersion": 11}, {"ApiKey": 1, "MinVersion": 0, "MaxVersion": 17},
    {"ApiKey": 12, "MinVersion": 0, "MaxVersion": 4}, {"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4},
]}  # fmt: skip
FETCH: dict[str, Any] = {"Topics": []}
BEAT = {"GroupId": "billing", "MemberId": "m", "GenerationId": 1}


def audited(packets: Iterable[Packet]) -> Audit:
    audit, reader = Audit(), Reader("made.pcap")
    for batch in (*reader.feed(block(list(packets), 1)), *reader.finish()):
        audit.add(batch)
    return audit


def said(audit: Audit, to: tuple[int, int] = (4, 0)) -> dict[str, tuple[str, list[str]]]:
    """By client id: the verdict, and what blocks it."""
    return {
        one.speaker.client_id: (one.verdict, [block.words() for block in one.by]) for one in audit.verdicts(to)
    }  # fmt: skip


def test_a_version_that_is_gone_blocks() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Fetch", 2, FETCH, {"Responses": []}).ask(2, "Heartbeat", 0, BEAT, {"ErrorCode": 0})
    assert said(audited(scene.packets)) == {"c1": (BLOCKED, ["Fetch v2 (takes v4 to v17)"])}
    assert said(audited(scene.packets), (3, 9)) == {"c1": (READY, [])}


def test_the_newest_that_the_broker_has_proves_nothing_of_one_that_negotiates() -> None:
    offer = {"ErrorCode": 0, "ApiKeys": [{"ApiKey": 1, "MinVersion": 0, "MaxVersion": 2}]}
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, offer).ask(2, "Fetch", 2, FETCH, {"Responses": []})
    (one,) = audited(scene.packets).verdicts((4, 0))
    assert (one.verdict, one.why) == (UNPROVEN, "it asks for the newest that its present brokers have")


def test_a_library_whose_versions_are_known_is_ready_for_what_it_would_negotiate() -> None:
    """What Java's clients of a release speak is known: they ask for the old version only as the broker has no newer."""
    told = {"ClientSoftwareName": "apache-kafka-java", "ClientSoftwareVersion": "3.9.2"}
    offer = {"ErrorCode": 0, "ApiKeys": [{"ApiKey": 1, "MinVersion": 0, "MaxVersion": 2}]}
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 3, told, offer).ask(2, "Fetch", 2, FETCH, {"Responses": []})
    (one,) = audited(scene.packets).verdicts((4, 0))
    assert (one.verdict, one.why) == (READY, "")
    assert [(block.api, block.versions) for block in one.negotiated] == [("Fetch", (2,))]
    assert one.row()["negotiated"] == [{"api": "Fetch", "versions": [2], "takes": "takes v4 to v17"}]


def test_newer_versions_of_one_that_negotiates_are_told_and_block_nobody() -> None:
    told = {"ClientSoftwareName": "apache-kafka-java", "ClientSoftwareVersion": "4.3.1"}
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 3, told, OFFER).ask(2, "Fetch", 17, FETCH, {"Responses": []})
    (one,) = audited(scene.packets).verdicts((3, 0))
    assert (one.verdict, [block.api for block in one.negotiated]) == (READY, ["Fetch"])


def test_one_that_negotiates_and_asks_for_less_than_there_is_has_no_newer() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, OFFER).ask(2, "Fetch", 2, FETCH, {"Responses": []})
    assert said(audited(scene.packets)) == {"c1": (BLOCKED, ["Fetch v2 (takes v4 to v17)"])}


def test_who_only_greets_is_unproven() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, OFFER)
    assert said(audited(scene.packets)) == {"c1": (UNPROVEN, [])}


def test_newer_than_that_of_a_client_seen_from_the_midst_is_unproven() -> None:
    scene = Scene()
    scene.connect(0, syn=False).ask(1, "Heartbeat", 4, BEAT, {"ErrorCode": 0}).ask(2, "Heartbeat", 4, BEAT)
    (one,) = audited(scene.packets).verdicts((2, 2))
    assert (one.verdict, one.why) == (
        UNPROVEN,
        "it did not negotiate in the 1.0 s that it was seen: its connections began before",
    )
    opened = Scene()
    opened.connect(0).ask(1, "Heartbeat", 4, BEAT, {"ErrorCode": 0})
    assert said(audited(opened.packets), (2, 2)) == {"c1": (BLOCKED, ["Heartbeat v4 (takes v0 to v2)"])}


def test_produce_that_4_offers_and_refuses() -> None:
    scene = Scene()
    body: dict[str, Any] = {"Acks": -1, "TimeoutMs": 1, "TopicData": []}
    scene.connect(0).ask(1, "Produce", 2, body, {"Responses": [], "ThrottleTimeMs": 0})
    assert said(audited(scene.packets)) == {"c1": (BLOCKED, ["Produce v2 (takes v3 to v12)"])}


def test_a_probe_that_falls_back_blocks_nobody() -> None:
    scene = Scene()
    line = scene.connect(0)
    line.ask(1, "ApiVersions", 4, {"ClientSoftwareName": "kgo", "ClientSoftwareVersion": "1"}, {"ErrorCode": 0})
    line.ask(2, "Heartbeat", 4, BEAT, {"ErrorCode": 0})
    assert said(audited(scene.packets), (2, 4)) == {"c1": (READY, [])}


def test_the_reverse() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "ApiVersions", 0, {}, OFFER).ask(2, "Heartbeat", 4, BEAT, {"ErrorCode": 0})
    audit = audited(scene.packets)
    assert [one.verdict for one in audit.reverse((4, 3), (3, 9))] == [READY]
    assert [one.verdict for one in audit.reverse((4, 3), None)] == [READY]
    group = Scene()
    group.connect(0).ask(
        2, "ConsumerGroupHeartbeat", 0, {"GroupId": "g", "MemberId": "m", "MemberEpoch": 0}, {"ErrorCode": 0}
    )
    (one,) = audited(group.packets).reverse((4, 3), (3, 3))
    assert (one.verdict, one.cure) == (BLOCKED, "brokers of 4.0 or newer")


def test_real_old_clients() -> None:
    """Which versions these clients speak says their name; fallback 0.10.2.0 of librdkafka uses new ones all the
    same."""
    verdicts = said(audited(packets_of(CAPTURES / "old39.pcap.gz")))
    assert {name for name, (verdict, _) in verdicts.items() if verdict == READY} == {
        name for name in verdicts if "0.10.2.0" in name
    }
    java = said(audited(packets_of(CAPTURES / "oldjava.pcap.gz")))
    assert {name.split("-")[1] for name, (verdict, _) in java.items() if verdict == BLOCKED} == {"0.9.0.1", "0.10.2.2"}
    assert {name.split("-")[1] for name, (verdict, _) in java.items() if verdict == READY} == {
        "0.11.0.3",
        "1.1.1",
        "2.0.1",
    } - {name.split("-")[1] for name, (verdict, _) in java.items() if verdict == UNPROVEN}


def test_those_that_fail_with_4_3_are_the_blocked_ones() -> None:
    """Recorded with brokers of 3.9.2; upgrade.json says who worked when run against 4.3.1 afterwards."""
    truth = json.loads((DOCTOR / "upgrade.json").read_text())
    verdicts = audited(packets_of(DOCTOR / "upgrade.pcap.gz")).verdicts((4, 3))
    assert all(row["3.9.2"] for row in truth.values())
    failed = {name for name, row in truth.items() if not row["4.3.1"]}
    assert {one.speaker.client_id for one in verdicts if one.verdict == BLOCKED} == failed
    assert {one.speaker.client_id for one in verdicts if one.verdict == READY} == truth.keys() - failed


def test_brokers_themselves_are_no_clients() -> None:
    scene = Scene()
    scene.connect(0, "broker-1-to-controller").ask(1, "Fetch", 2, FETCH, {"Responses": []})
    assert said(audited(scene.packets)) == {}
