"""One name, two ids."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scenes import Scene

ASKED = {"Topics": [{"Name": "orders", "TopicId": UUID(int=0)}]}


def answer(ident: int, error: int = 0) -> dict[str, Any]:
    topic = {"ErrorCode": error, "Name": "orders", "TopicId": UUID(int=ident), "Partitions": []}
    return {"Brokers": [], "ClusterId": "one", "Topics": [topic]}


def test_a_new_id() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 12, ASKED, answer(7)).ask(5, "Metadata", 12, ASKED, answer(8))
    (found,) = scene.findings("topic-recreated")
    assert (found.severity, found.about) == ("note", {"topic": "orders"})
    assert "was deleted and made anew" in found.what


def test_clients_that_were_hurt_make_it_a_warning() -> None:
    scene = Scene()
    line = scene.connect(0).ask(1, "Metadata", 12, ASKED, answer(7))
    line.ask(3, "Metadata", 12, ASKED, answer(0, 3)).ask(5, "Metadata", 12, ASKED, answer(8))
    (found,) = scene.findings("topic-recreated")
    assert found.severity == "warning"
    assert "1 request failed on it meanwhile" in found.what


def test_the_same_id_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 12, ASKED, answer(7)).ask(5, "Metadata", 12, ASKED, answer(7))
    assert scene.findings("topic-recreated") == []
