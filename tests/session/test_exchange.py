"""Messages and exchanges: names, bodies, trees, latency."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.codec.secrets import Withheld
from kwire.codec.span import UNDECODED, Span


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


def hidden(message: Any) -> list[Span]:
    """The leaves that are withheld."""
    tree = message.conceal(message.span(), message.api.message(message.kind))
    return [span for span in tree.below() if not span.children and isinstance(span.value, Withheld)]


@pytest.fixture
def joins(traffic: Any) -> Any:
    """A connection on which a client works, without a login."""
    return traffic.connection().syn().send(traffic.request("Heartbeat", 4)).answer(traffic.response("Heartbeat", 4))


BODY = {"GroupId": "g", "MemberId": "m"}


def test_what_is_not_decoded_of_a_damaged_message_is_withheld(traffic: Any, joins: Any) -> None:
    """A flipped bit in its key makes of AlterUserScramCredentials what cannot hold a secret."""
    joins.send(traffic.request("LeaveGroup", 0, b"\0\1g" + b"\xff" * 20, 2))
    request = traffic.read().exchanges[1].request
    assert request.quality == "malformed"
    (broken,) = [span for span in hidden(request) if span.type == UNDECODED]
    assert "GroupId" not in [span.name for span in hidden(request)]
    assert broken.name == "MemberId"


def test_what_is_not_decoded_of_a_message_that_was_cut_stays(traffic: Any, joins: Any) -> None:
    joins.send(traffic.request("LeaveGroup", 0, {"GroupId": "g", "MemberId": "m" * 40}, 2)[:-9])
    request = traffic.read().exchanges[1].request
    assert (request.quality, hidden(request), request.client_id) == ("truncated", [], "c")


def test_the_client_id_of_a_damaged_request_is_one_that_its_connection_knows(traffic: Any, joins: Any) -> None:
    """Behind a wrong size a frame may begin in the middle of a password."""
    joins.send(traffic.request("LeaveGroup", 0, b"\0\1g" + b"\xff" * 20, 2, client="a password"))
    request = traffic.read().exchanges[1].request
    assert (request.client_id, request.connection.clients) == (None, {b"c": "c"})
    assert [span.name for span in hidden(request)][:2] == ["request_api_key", "request_api_version"]


def test_the_client_id_of_a_first_request_that_a_snaplen_cut_is_known(traffic: Any) -> None:
    tcp = traffic.connection().syn().send(traffic.request("LeaveGroup", 0, BODY)[:-2]).send(b"??", lost=True)
    tcp.send(traffic.request("Heartbeat", 4, BODY, 2)).answer(traffic.response("Heartbeat", 4, {}, 2))
    request = traffic.read().exchanges[0].request
    assert (request.quality, request.client_id) == ("gap", "c")
