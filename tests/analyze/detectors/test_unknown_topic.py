"""Topics that do not exist: asked for again and again, or made while they are asked for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scenes import Scene

ASKED = {"Topics": [{"Name": "ordres"}]}


def answer(error: int, name: str = "ordres") -> dict[str, Any]:
    return {"Brokers": [], "Topics": [{"ErrorCode": error, "Name": name, "Partitions": []}]}


def test_one_that_is_asked_for_again_and_again() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 6):
        line.ask(at, "Metadata", 9, ASKED, answer(3))
    (found,) = scene.findings("unknown-topic")
    assert found.severity == "error"
    assert found.what == (
        "c1 asks for topic ordres, which the cluster does not have: "
        "UNKNOWN_TOPIC_OR_PARTITION 5 times in 4.0 s (Metadata)"
    )
    assert found.about == {"client_id": "c1", "address": "10.0.0.7", "topic": "ordres"}


def test_one_that_is_made_late_is_a_warning() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 6):
        line.ask(at, "Metadata", 9, ASKED, answer(3 if at < 5 else 0))
    (found,) = scene.findings("unknown-topic")
    assert found.severity == "warning"


def test_one_that_is_made_at_once_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 9, ASKED, answer(3)).ask(1.1, "Metadata", 9, ASKED, answer(5)).ask(
        1.2, "Metadata", 9, ASKED, answer(0)
    )
    assert scene.findings("unknown-topic") == []


def test_who_gives_up_at_once_is_told_of() -> None:
    """As Sarama does, which asks four times within a second."""
    scene = Scene()
    line = scene.connect(0)
    for at in range(4):
        line.ask(1 + at / 4, "Metadata", 9, ASKED, answer(3))
    assert scene.findings("unknown-topic") == []  # the capture ends too early to tell
    scene.connect(4, client="c2").ask(4, "ApiVersions", 0, {}, {"ErrorCode": 0, "ApiKeys": []})
    (found,) = scene.findings("unknown-topic")
    assert (found.severity, found.count) == ("error", 4)


def test_an_id_that_is_not_known_is_no_missing_topic() -> None:
    scene = Scene()
    line = scene.connect(0)
    missing = {"TopicId": UUID(int=7), "Partitions": [{"PartitionIndex": 0, "ErrorCode": 100}]}
    asked = {"MaxWaitMs": 1, "MinBytes": 1, "Topics": [{"TopicId": UUID(int=7), "Partitions": [{"Partition": 0}]}]}
    for at in range(1, 6):
        line.ask(at, "Fetch", 13, asked, {"Responses": [missing]})
    (found,) = scene.findings("unknown-topic")
    assert "by an id that the cluster does not know: UNKNOWN_TOPIC_ID 5 times" in found.what


def test_an_internal_topic_has_advice_of_its_own() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(1, 6):
        line.ask(at, "Metadata", 9, {"Topics": [{"Name": "__consumer_offsets"}]}, answer(3, "__consumer_offsets"))
    (found,) = scene.findings("unknown-topic")
    assert found.advice.startswith("An internal topic is missing")
