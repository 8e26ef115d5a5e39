"""Which side is the broker, and what a connection is that is not Kafka."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from kwire.session import roles
from kwire.session.reader import Settings
from kwire.session.roles import Brokers, is_whole_request

NAME = "10.0.0.7:51522>10.0.0.2:9092#1"


def talk(traffic: Any, tcp: Any, *idents: int, api: str = "Heartbeat", version: int = 3) -> Any:
    for ident in idents:
        body = {"Acks": 1} if api == "Produce" else {}
        tcp.send(traffic.request(api, version, body, ident)).answer(traffic.response(api, version, ident=ident))
    return tcp


def names(outcome: Any) -> list[str]:
    return [connection.name for connection in outcome.over]


@pytest.mark.parametrize("feed", [None, 1])
def test_who_sends_the_syn_is_the_client(traffic: Any, feed: int | None) -> None:
    talk(traffic, traffic.connection("10.0.0.2:9092", "10.0.0.7:51522"), 1)
    assert names(traffic.read(feed=feed)) == ["10.0.0.2:9092>10.0.0.7:51522#1"]


def test_the_answer_to_a_syn_alone_is_enough(traffic: Any) -> None:
    talk(traffic, traffic.connection(), 1)
    assert names(traffic.read(traffic.packets[1:])) == [NAME]


@pytest.mark.parametrize("feed", [None, 1])
@pytest.mark.parametrize("first", [0, 1])
def test_without_a_syn_what_parses_as_a_request_is_the_clients(traffic: Any, feed: int | None, first: int) -> None:
    talk(traffic, traffic.connection(syn=False), 100_000, 100_001)
    outcome = traffic.read(traffic.packets[first:], feed=feed)
    assert names(outcome) == [NAME]
    assert outcome.pairs[-1] == ("Heartbeat", 100_001, True, True)


@pytest.mark.parametrize("feed", [None, 1, 2])
@pytest.mark.parametrize(("api", "version"), [
    ("Heartbeat", 4), ("InitProducerId", 4), ("Metadata", 9), ("ApiVersions", 3), ("Fetch", 12), ("Produce", 2),
])  # fmt: skip
@pytest.mark.parametrize("ident", [0, 1, 2, 3, 9, 12, 13, 14, 29, 65_536 * 12 + 3])
def test_answers_with_small_ids_are_no_produce_requests(
    traffic: Any, feed: int | None, api: str, version: int, ident: int
) -> None:
    talk(traffic, traffic.connection(syn=False), *range(ident, ident + 4), api=api, version=version)
    outcome = traffic.read(traffic.packets[1:], feed=feed)  # begins with an answer
    assert names(outcome) == [NAME]
    assert [each.api for each in outcome.exchanges][-3:] == [api] * 3


def test_a_known_broker_decides(traffic: Any) -> None:
    talk(traffic, traffic.connection(), 1)
    other = traffic.connection("10.0.0.9:50000", syn=False)
    for ident in (7, 8, 9):
        other.answer(traffic.response("Heartbeat", 3, ident=ident))
    assert names(traffic.read()) == [NAME, "10.0.0.9:50000>10.0.0.2:9092#1"]


def test_a_port_that_was_named_decides_and_no_other_port_is_read(traffic: Any) -> None:
    traffic.connection(syn=False).answer(traffic.response("Heartbeat", 3, ident=7))
    talk(traffic, traffic.connection("10.0.0.7:5000", "10.0.0.2:9093"), 1)
    outcome = traffic.read(settings=Settings(ports=frozenset({9092})))
    assert names(outcome) == [NAME]
    assert [(each.correlation_id, each.request) for each in outcome.exchanges] == [(7, None)]


def test_responses_alone_are_told_by_how_they_follow_each_other(traffic: Any) -> None:
    tcp = traffic.connection(syn=False)
    for ident in (70_000, 70_001, 70_002):
        tcp.answer(traffic.response("Heartbeat", 3, ident=ident))
    outcome = traffic.read()
    assert names(outcome) == [NAME]
    assert [(each.request, each.correlation_id) for each in outcome.exchanges] == [
        (None, 70_000), (None, 70_001), (None, 70_002),
    ]  # fmt: skip


@pytest.mark.parametrize("mss", [1, 2, 3, 5])
@pytest.mark.parametrize("feed", [None, 1, 2, 3])
def test_a_first_request_in_tiny_segments_is_waited_for(traffic: Any, mss: int, feed: int | None) -> None:
    tcp = traffic.connection().send(traffic.request("ApiVersions", 3), mss)
    talk(traffic, tcp.answer(traffic.response("ApiVersions", 3)), 2)
    outcome = traffic.read(feed=feed)
    assert outcome.pairs == [("ApiVersions", 1, True, True), ("Heartbeat", 2, True, True)]


@pytest.mark.parametrize("captured", [40, 44, 50, 60, 70])
@pytest.mark.parametrize("feed", [None, 1])
@pytest.mark.parametrize("syn", [True, False])
def test_a_first_request_that_the_snaplen_cut_is_believed(
    traffic: Any, captured: int, feed: int | None, syn: bool
) -> None:
    tcp = traffic.connection(syn=syn)
    for ident in range(100_000, 100_004):
        body = {"GroupId": "g" * 40, "MemberId": "\0\1\2"}
        tcp.send(traffic.request("Heartbeat", 3, body, ident, client="a-long-client-id"))
        tcp.answer(traffic.response("Heartbeat", 3, ident=ident))
    cut = [packet._replace(data=packet.data[:captured]) for packet in traffic.packets]
    outcome = traffic.read(cut, feed=feed)
    if syn and captured >= 60:  # the correlation ids are there
        assert len(outcome.exchanges) == 4
        assert not any(connection.verdict for connection in outcome.over)
    assert {message.quality for message in outcome.messages} <= {"ok", "truncated"}


def test_brokers_hold_named_ports_and_seen_endpoints() -> None:
    known = Brokers(frozenset({9092}))
    known.add(("10.0.0.2", 9093))
    found = [end in known for end in (("x", 9092), ("10.0.0.2", 9093), ("10.0.0.3", 9093), "9092")]
    assert found == [True, True, False, False]


# ---------------------------------------------------------------- not Kafka


def client_hello(name: bytes) -> bytes:
    server_name = pack(">HHBH", len(name) + 5, len(name) + 3, 0, len(name)) + name
    extensions = pack(">H", 0) + server_name
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + pack(">H", len(extensions)) + extensions
    return b"\x16\x03\x01" + pack(">H", len(body) + 4) + b"\x01" + pack(">I", len(body))[1:] + body


NOT_KAFKA = [
    (b"GET /metrics HTTP/1.1\r\n\r\n", b"", "HTTP request", "GET /metrics", 1195725856, None),
    (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP request", "GET /", 1195725856,
     "answered by HTTP response (HTTP/1.1 400 Bad Request)"),
    (client_hello(b"kafka.example"), bytes.fromhex("15030300020228"), "TLS ClientHello", "server name kafka.example",
     369295616, "the server gave up with the alert fatal handshake_failure"),
    (b"", b"SSH-2.0-OpenSSH_9.6\r\n", "SSH", "SSH-2.0-OpenSSH_9.6", 1397966893, None),
    (b"ruok", b"imok", "ZooKeeper command", "ruok", 1920298859, "answered by ZooKeeper command (imok)"),
    (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", b"", "PROXY protocol v1", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2", 1347571544,
     None),
    (bytes(200), b"", "zero bytes", "", 0, None),
    (b"\x01\x02\x03\x04" * 10, b"", "not recognized", "begins with 01 02 03 04", 16909060, None),
]  # fmt: skip


@pytest.mark.parametrize("feed", [None, 1])
@pytest.mark.parametrize("mss", [7, 1 << 15])
@pytest.mark.parametrize(("client", "server", "what", "detail", "size", "answer"), NOT_KAFKA)
def test_what_is_not_kafka(
    traffic: Any,
    feed: int | None,
    mss: int,
    client: bytes,
    server: bytes,
    what: str,
    detail: str,
    size: int,
    answer: str | None,
) -> None:
    traffic.connection().send(client, mss).answer(server, mss).close()
    outcome = traffic.read(feed=feed)
    (connection,) = outcome.over
    assert connection.verdict is not None
    found = connection.verdict.verdict
    assert (found.what, found.detail, found.size) == (what, detail, size)
    assert connection.verdict.answer == answer
    assert connection.verdict.sizes in ([len(client), len(server)], [len(server), len(client)])
    assert (outcome.exchanges, outcome.skipped, connection.is_kafka) == ([], [], False)


@pytest.mark.parametrize("feed", [None, 3])
def test_a_large_stream_of_something_else_in_midstream(traffic: Any, feed: int | None) -> None:
    traffic.connection(syn=False).send(bytes(range(256)) * 2000).answer(b"\xfe" * 2000)
    (connection,) = traffic.read(feed=feed).over
    assert connection.verdict is not None
    assert connection.verdict.verdict.what == "not recognized"


def test_connections_without_bytes_are_neither(traffic: Any) -> None:
    traffic.connection().reset()
    outcome = traffic.read()
    assert [(each.verdict, each.is_kafka) for each in outcome.over] == [(None, False)]


HEADER = pack(">ihhih", 20, 500, 3, 1, 2) + b"me" + bytes(8)


@pytest.mark.parametrize(("data", "whole"), [
    (HEADER, True),
    (HEADER + HEADER[:5], True),
    (HEADER + HEADER[:14], True),
    (HEADER + HEADER, True),
    (HEADER[:-1], False),
    (HEADER[:13], False),
    (b"", False),
    (HEADER + pack(">ihhih", 20, -5, 3, 1, 2) + b"me" + bytes(8), False),
    (HEADER + b"GET / HTTP/1.1\r\n", True),  # could be a header, of a long frame
    (HEADER + bytes(14), False),
])  # fmt: skip
def test_whole_requests_of_what_nobody_knows(data: bytes, whole: bool) -> None:
    """What follows the first frame decides only when it is there: blocks of packets end anywhere."""
    assert is_whole_request(data) is whole


# ---------------------------------------------------------------- too little, too much, no TLS


@pytest.mark.parametrize("feed", [None, 1])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("end", ["close", "reset", None])
@pytest.mark.parametrize("have", [1, 3, 4, 7, 8, 13, 14, 20])
def test_half_a_request_is_no_other_protocol(
    traffic: Any, have: int, end: str | None, answered: bool, feed: int | None
) -> None:
    tcp = traffic.connection().send(traffic.request("Metadata", 12, {}, client="cart-1")[:have])
    if answered:
        tcp.answer(b"\0")
    if end:
        getattr(tcp, end)()
    outcome = traffic.read(feed=feed)
    assert [each.verdict for each in outcome.over] == [None]
    assert [message.quality for message in outcome.messages if message.kind == "request"] == ["truncated"] * (have > 3)


@pytest.mark.parametrize("first", [b"\x16\x03\x01", b"GET", b"\0\0\0\x20\x7f\xff", b"\0\0\0\x20\0\3\0\x77"])
def test_a_few_bytes_that_begin_no_request_are_another_protocols(traffic: Any, first: bytes) -> None:
    traffic.connection().send(first).close()
    (connection,) = traffic.read().over
    assert connection.verdict is not None


def test_of_a_few_bytes_in_midstream_nothing_is_said(traffic: Any) -> None:
    traffic.connection(syn=False).send(b"\x9a\x9b\x9c").close()
    (connection,) = traffic.read().over
    assert (connection.verdict, connection.is_kafka) == (None, False)


@pytest.mark.parametrize("feed", [None, 50])
def test_in_midstream_a_long_frame_is_waited_for(traffic: Any, feed: int | None) -> None:
    tcp = traffic.connection(syn=False).send(b"\x9a" * 900_000, 1400)
    tcp.answer(traffic.response("Produce", 9, ident=5))
    talk(traffic, tcp, 6, 7, api="Metadata", version=9)
    outcome = traffic.read(feed=feed)
    assert names(outcome) == [NAME]
    assert [skipped.length for _, _, skipped in outcome.skipped] == [900_000]
    assert [each.api for each in outcome.exchanges][-2:] == ["Metadata"] * 2


def test_in_midstream_something_else_is_waited_for_in_bounds(traffic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tcp = traffic.connection(syn=False)
    for _ in range(40):
        tcp.send(b"\x9a" * 500_000)
    waited: list[Any] = []

    def decide(*given: Any) -> Any:
        found = decide_of(*given)
        waited.append(sum(len(piece.data) for pieces in given[1] for piece in pieces))
        return found

    decide_of = roles.decide
    monkeypatch.setattr(roles, "decide", decide)
    (connection,) = traffic.read(feed=3).over
    assert max(waited) <= roles.UNDECIDED + (1 << 17)
    assert sum(connection.verdict.sizes) == 20_000_000
    assert len(waited) * (1 << 15) * 3 <= roles.LONG + (1 << 20)


SERVER_HELLO = b"\x16\x03\x03\x00\x2a\x02" + bytes(41)


@pytest.mark.parametrize(("answers", "end", "refused"), [
    ([], "close", True), ([], "reset", True), ([b"\x15\x03\x03\0\2\2\x28"], "close", True),
    ([SERVER_HELLO], "close", False), ([SERVER_HELLO, b"\x15\x03\x03\0\2\2\x30"], "close", False),
])  # fmt: skip
def test_a_hello_without_an_answer_is_not_encrypted(
    traffic: Any, answers: list[bytes], end: str, refused: bool
) -> None:
    tcp = traffic.connection().send(client_hello(b"kafka.example"))
    for answer in answers:
        tcp.answer(answer)
    getattr(tcp, end)()
    (connection,) = traffic.read().over
    found = connection.verdict
    assert (found.is_tls, found.is_refused) == (True, refused)
    assert found.advice.startswith("Not encrypted: " if refused else "Encrypted:")


def test_a_hello_of_which_only_one_direction_was_captured_is_not_judged(traffic: Any) -> None:
    traffic.connection().send(client_hello(b"kafka.example"))
    mine = [packet for at, packet in enumerate(traffic.packets) if at != 1]
    (connection,) = traffic.read(mine).over
    assert (connection.verdict.is_tls, connection.verdict.is_refused) == (True, False)
