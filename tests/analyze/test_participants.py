"""Who takes part: what each client asks for tells what it is."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import Scene, diagnosed

ASKED: list[tuple[str, int, dict[str, Any], str]] = [
    ("Fetch", 4, {"ReplicaId": -1, "MaxWaitMs": 1, "MinBytes": 1, "Topics": []}, "consumer"),
    ("Heartbeat", 3, {"GroupId": "g", "MemberId": "m", "GenerationId": 1}, "consumer"),
    ("Produce", 9, {"Acks": 1, "TimeoutMs": 1, "TopicData": []}, "producer"),
    ("ListGroups", 3, {}, "admin"),
    ("DescribeGroups", 5, {"Groups": ["g"]}, "admin"),
    ("Vote", 0, {"Topics": []}, "broker"),
]


@pytest.mark.parametrize(("api", "version", "body", "role"), ASKED, ids=[one[0] for one in ASKED])
def test_a_role_follows_from_what_is_asked(api: str, version: int, body: dict[str, Any], role: str) -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": []}).ask(2, api, version, body)
    (found,) = diagnosed(scene.packets, ["capture-quality"]).case.participants.known.values()
    assert (found.client_id, found.host, found.role, found.brokers) == ("c1", "10.0.0.7", role, {"10.0.0.2:9092"})
    assert found.last > found.first


def test_brokers_own_clients_are_known_by_their_names() -> None:
    scene = Scene()
    fetch = {"ReplicaId": 1, "MaxWaitMs": 1, "MinBytes": 1, "Topics": []}
    scene.connect(0, client="broker-1-fetcher-0").ask(1, "Fetch", 4, fetch)
    (found,) = diagnosed(scene.packets, ["capture-quality"]).case.participants.known.values()
    assert found.role == "broker"
