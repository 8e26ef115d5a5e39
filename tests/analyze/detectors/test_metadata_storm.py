"""Metadata in a loop."""

from __future__ import annotations

from scenes import Scene

ANSWER = {"Brokers": [], "Topics": [{"ErrorCode": 0, "Name": "orders", "Partitions": []}]}


def test_a_loop() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(40):
        line.ask(1 + at, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, ANSWER)
    (found,) = scene.findings("metadata-storm")
    assert (found.severity, found.count) == ("warning", 39)
    assert found.what == "c1 asks for metadata 39 times within a minute about orders, and nothing changed"
    assert len(found.evidence) == 2


def test_a_start_with_a_few_is_fine() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(8):
        line.ask(1 + at, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, ANSWER)
    assert scene.findings("metadata-storm") == []


def test_who_cannot_reach_a_broker_asks_after_each_attempt() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(40):
        line.ask(1 + at, "Metadata", 9, {"Topics": [{"Name": "orders"}]}, ANSWER)
        scene.dial(1.5 + at, broker="10.0.0.3:9092")
    (found,) = scene.findings("metadata-storm")
    assert found.severity == "note"
    assert found.what.endswith("; it asks after each connection to 10.0.0.3:9092 that fails")
