"""Advertised addresses: refused, meant for the broker's own host, names that nobody dials."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import Scene


def metadata(host: str, port: int = 9092, node: int = 2) -> dict[str, Any]:
    return {"Brokers": [{"NodeId": node, "Host": host, "Port": port}], "ClusterId": "one", "Topics": []}


def test_an_address_that_is_refused() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": []}, metadata("10.0.0.3"))
    for at in range(4):
        scene.dial(2 + at, broker="10.0.0.3:9092")
    (found,) = scene.findings("advertised-unreachable")
    assert found.severity == "error"
    assert found.what == (
        "node 2 is advertised as 10.0.0.3:9092 and cannot be reached there: 4 connections of 10.0.0.7 refused"
    )
    assert found.about == {"broker": "10.0.0.3:9092", "address": "10.0.0.7"}
    assert [ref.message for ref in found.evidence][:2] == ["MetadataResponse v9", "SYN"]


def test_a_name_that_was_dialled_in_vain() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": []}, metadata("kafka-2", 9093))
    scene.dial(2, broker="172.17.0.4:9093")
    (found,) = scene.findings("advertised-unreachable")
    assert "node 2 is advertised as kafka-2:9093, dialled as 172.17.0.4:9093," in found.what


def test_one_that_is_reached_in_the_end_is_fine() -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": []}, metadata("10.0.0.3"))
    scene.dial(2, broker="10.0.0.3:9092")
    scene.connect(3, broker="10.0.0.3:9092").ask(4, "Metadata", 9, {"Topics": []}, metadata("10.0.0.3"))
    assert scene.findings("advertised-unreachable") == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0"])
def test_loopback_told_to_another_host(host: str) -> None:
    scene = Scene()
    scene.connect(0).ask(1, "Metadata", 9, {"Topics": []}, metadata(host))
    (found,) = scene.findings("advertised-unreachable")
    assert found.what.endswith("to 10.0.0.7: clients on another host dial themselves")


def test_loopback_told_to_the_brokers_own_host_is_fine() -> None:
    scene = Scene()
    scene.connect(0, host="10.0.0.2").ask(1, "Metadata", 9, {"Topics": []}, metadata("localhost"))
    scene.connect(2, host="127.0.0.1", broker="127.0.0.1:9092").ask(
        3, "Metadata", 9, {"Topics": []}, metadata("localhost")
    )
    assert scene.findings("advertised-unreachable") == []


def test_a_name_that_is_never_dialled_while_metadata_repeats() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(12):
        line.ask(1 + at, "Metadata", 9, {"Topics": []}, metadata("kafka.internal"))
    (found,) = scene.findings("advertised-unreachable")
    assert found.severity == "warning"
    assert "got kafka.internal:9092 from 12 answers and dialled none of them" in found.what


def test_a_client_that_goes_on_is_fine() -> None:
    scene = Scene()
    line = scene.connect(0)
    for at in range(12):
        line.ask(1 + at, "Metadata", 9, {"Topics": []}, metadata("kafka.internal"))
    line.ask(14, "Heartbeat", 3, {"GroupId": "g", "MemberId": "m", "GenerationId": 1}, {"ErrorCode": 0})
    assert scene.findings("advertised-unreachable") == []
