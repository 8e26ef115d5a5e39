"""Messages and exchanges: names, bodies, trees, latency."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def talk(traffic: Any) -> Any:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 4, {"GroupId": "g" * 30}, client="app"), 20)
    tcp.answer(traffic.response("Heartbeat", 4, {"ErrorCode": 27}), 5)
    return traffic.read().exchanges[0]


def test_an_exchange_speaks_for_its_messages(talk: Any) -> None:
    assert (talk.api, talk.api_version, talk.correlation_id, talk.client_id, talk.error) == (
        "Heartbeat",
        4,
        1,
        "app",
        27,
    )
    assert (talk.first, talk.time, talk.ending, talk.silent) == (talk.request, talk.request.time, None, False)
    assert talk.latency == talk.response.time - talk.request.last_time == 1_000_000
    assert talk.about.groups == ["g" * 30]


def test_names_bodies_and_trees(talk: Any) -> None:
    assert (talk.request.name, talk.response.name) == ("HeartbeatRequest v4", "HeartbeatResponse v4")
    assert talk.response.body() == {"ThrottleTimeMs": 0, "ErrorCode": 27}
    for message in (talk.request, talk.response):
        span = message.span()
        assert (span.name, span.start, span.end, span.broken()) == (message.name, 0, len(message.data), None)


def test_marks_say_where_packets_begin(talk: Any) -> None:
    assert talk.request.marks == ((0, 3), (20, 4), (40, 5))
    assert talk.response.marks == ((0, 6), (5, 7), (10, 8), (15, 9))
    assert (talk.response.packet, talk.response.last_packet) == (6, 9)


def test_a_damaged_body_is_none_and_its_tree_ends_undecoded(traffic: Any) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 4))
    tcp.answer(traffic.response("Heartbeat", 4, b"\0\0"))
    response = traffic.read().exchanges[0].response
    assert (response.quality, response.body(), response.frame().quality) == ("malformed", None, "malformed")


@pytest.mark.parametrize(("key", "version"), [(200, 3), (3, 64)])
def test_the_answer_to_what_nobody_knows_has_a_header_and_the_rest(traffic: Any, key: int, version: int) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 4)).answer(traffic.response("Heartbeat", 4))
    tcp.send(traffic.request(key, version, b"abc", 2)).answer(traffic.size_prefixed(b"\0\0\0\2\0wxyz"))
    response = traffic.read().exchanges[1].response
    size, header, body = response.span().children
    assert (response.body(), response.frame().kind, response.span().name) == (None, "response", response.name)
    assert [(part.name, part.value) for part in (size, *header.children)][:2] == [
        ("message_size", 9),
        ("correlation_id", 2),
    ]
    assert [(part.type, part.start, part.end) for part in body.children] == [("undecoded", 9, 13)]


def test_an_orphan_has_no_latency_and_no_error(traffic: Any) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 4)).answer(traffic.response("Heartbeat", 4))
    tcp.answer(traffic.size_prefixed(b"\0\0\0\x09" + b"\xff" * 8))
    orphan = traffic.read().exchanges[1]
    assert (orphan.latency, orphan.error, orphan.api, orphan.api_version) == (None, None, "unknown", None)
    assert (orphan.first, orphan.request) == (orphan.response, None)
