"""Quotas: who was throttled, for how long."""

from __future__ import annotations

from typing import Any

from scenes import Scene

FETCH = {"ReplicaId": -1, "MaxWaitMs": 1, "MinBytes": 1, "Topics": []}
PRODUCE = {"Acks": -1, "TimeoutMs": 1000, "TopicData": [{"Name": "orders", "PartitionData": []}]}


def produced(ms: int) -> dict[str, Any]:
    return {"Responses": [{"Name": "orders", "PartitionResponses": []}], "ThrottleTimeMs": ms}


def test_a_producer_and_a_consumer() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at, version in ((1, 7), (2, 9), (3, 9)):
        line.ask(at, "Produce", version, PRODUCE, produced(400 if at > 1 else 800))
    scene.connect(0, client="c2").ask(1, "Fetch", 12, FETCH, {"ThrottleTimeMs": 50, "Responses": []})
    heavy, light = scene.findings("throttled")
    assert (heavy.severity, light.severity) == ("warning", "note")
    assert heavy.what == "c1 is throttled in 3 answers to Produce, for 1.6 s in all and up to 800 ms"
    assert heavy.about == {"client_id": "c1", "address": "10.0.0.7", "api": "Produce"}
    assert "consumer_byte_rate" in light.advice


def test_answers_without_are_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Produce", 9, PRODUCE, produced(0)).ask(
        2, "ApiVersions", 3, {"ClientSoftwareName": "x", "ClientSoftwareVersion": "1"}, {"ErrorCode": 0, "ApiKeys": []}
    )
    assert scene.findings("throttled") == []
