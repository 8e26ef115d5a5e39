"""Responses whose request was not seen: named only when a single API reads them."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from kwire.codec.infer import infer
from kwire.session import api_versions, connection_info, orphans

LOST = "its request is not in the capture"
GROUPS = {"Groups": [{"GroupId": "orders", "GroupState": "Stable", "ProtocolType": "consumer"}]}


def orphan(traffic: Any, frame: bytes) -> Any:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 3)).answer(traffic.response("Heartbeat", 3))
    tcp.answer(frame)
    return traffic.read().messages[-1]


def test_an_answer_that_only_one_api_reads_is_named(traffic: Any) -> None:
    body = {
        "ClusterId": "kraft-cluster-1", "ControllerId": 1,
        "Brokers": [{"NodeId": 1, "Host": "broker-1.example.org", "Port": 9092}],
        "Topics": [{"Name": "orders", "ErrorCode": 3, "Partitions": []}],
    }  # fmt: skip
    message = orphan(traffic, traffic.response("Metadata", 9, body, 77))
    assert (message.quality, message.api.api, message.correlation_id) == ("inferred", "Metadata", 77)
    assert message.note.startswith(f"{LOST}; it can only be MetadataResponse v")
    assert message.errors == (3,)
    assert message.body()["ClusterId"] == "kraft-cluster-1"
    assert message.client_id is None


def test_a_refused_api_versions_is_named_and_read_in_the_form_of_v0(traffic: Any) -> None:
    body = {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}]}
    message = orphan(traffic, traffic.response("ApiVersions", 0, body, 77))
    assert message.quality in ("inferred", "orphan")
    if message.quality == "inferred":
        assert (message.body(), message.errors) == (body, (35,))


@pytest.mark.parametrize("rest", [b"", b"\0\0", b"\xff" * 30, b"\0" * 6])
def test_an_answer_that_could_be_anything_stays_without_a_name(traffic: Any, rest: bytes) -> None:
    message = orphan(traffic, traffic.size_prefixed(pack(">i", 77) + rest))
    assert (message.quality, message.note, message.api, message.errors) == ("orphan", LOST, None, ())
    assert (message.name, message.body()) == ("response of an unknown API", None)


def test_its_frame_has_size_id_and_the_rest(traffic: Any) -> None:
    message = orphan(traffic, traffic.size_prefixed(pack(">i", 77) + b"\xff" * 6))
    parts = [(part.name, part.start, part.end, part.value) for part in message.span().children]
    assert parts == [("message_size", 0, 4, 10), ("correlation_id", 4, 8, 77), ("body", 8, 14, None)]


def test_a_damaged_one_keeps_its_quality(traffic: Any) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 3)).answer(traffic.response("Heartbeat", 3))
    tcp.answer(traffic.response("ListGroups", 4, GROUPS, 77)[:-6]).close()
    message = traffic.read().messages[-1]
    assert (message.quality, message.note, message.api) == ("truncated", LOST, None)


def test_large_ones_and_very_many_are_not_looked_at(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_info, "OF_CONNECTION", (2000, 0, 2000))
    monkeypatch.setattr(orphans, "LARGEST", 1000)
    tcp = traffic.connection().send(traffic.request("Heartbeat", 3)).answer(traffic.response("Heartbeat", 3))
    large = {"Groups": [{"GroupId": f"orders-{n}", "ProtocolType": "consumer"} for n in range(60)]}
    tcp.answer(traffic.response("ListGroups", 0, large, 76))
    for ident in (77, 78, 79):
        tcp.answer(traffic.response("SaslHandshake", 1, {"Mechanisms": ["PLAIN", "SCRAM-SHA-256"]}, ident))
    qualities = [message.quality for message in traffic.read().messages[2:]]
    assert qualities == ["orphan", "inferred", "orphan", "orphan"]


def test_guessing_is_bounded_for_the_capture_too(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_versions, "OF_CAPTURE", (2500, 0, 2500))
    for port in range(4):
        tcp = (
            traffic.connection(f"10.0.0.7:{51000 + port}")
            .send(traffic.request("Heartbeat", 3))
            .answer(traffic.response("Heartbeat", 3))
        )
        tcp.answer(traffic.response("SaslHandshake", 1, {"Mechanisms": ["PLAIN", "SCRAM-SHA-256"]}, 77))
    orphaned = [message for message in traffic.read().messages if message.correlation_id == 77]
    assert sorted(message.quality for message in orphaned) == ["inferred", "inferred", "orphan", "orphan"]


def test_the_orphan_comes_where_its_time_says(traffic: Any) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 3)).answer(traffic.response("Heartbeat", 3))
    tcp.answer(traffic.size_prefixed(pack(">i", 77) + b"\xff" * 6))
    for ident in (5, 6):
        tcp.send(traffic.request("Heartbeat", 3, ident=ident)).answer(traffic.response("Heartbeat", 3, ident=ident))
    for feed in (None, 1):
        assert [each.correlation_id for each in traffic.read(feed=feed).exchanges] == [1, 77, 5, 6]


def test_equal_answers_are_tried_once(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []

    def counting(data: bytes, *args: Any, **options: Any) -> Any:
        tried.append(data)
        return infer(data, *args, **options)

    monkeypatch.setattr(orphans, "infer", counting)
    tcp = traffic.connection().send(traffic.request("Heartbeat", 3)).answer(traffic.response("Heartbeat", 3))
    for ident in (77, 78, 1 << 24, 79):
        tcp.answer(traffic.response("SaslHandshake", 1, {"Mechanisms": ["PLAIN", "SCRAM-SHA-256"]}, ident))
    messages = traffic.read().messages[2:]
    assert [message.quality for message in messages] == ["inferred"] * 4
    assert len({message.note for message in messages}) == 1
    assert [int.from_bytes(data[4:8], "big") for data in tried] == [77, 1 << 24]
