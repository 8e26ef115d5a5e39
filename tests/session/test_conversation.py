"""One connection: which answer belongs to which request, and what stays without one."""

from __future__ import annotations

import random
from collections.abc import Callable
from struct import pack
from typing import Any

import pytest

from kwire.capture.ip import endpoint
from kwire.session.pairing import OPEN_MOST

SECOND = 1_000_000_000
TIMES = ("time", "last_time", "latency_ns", "packet", "last_packet")


def beats(traffic: Any, *idents: int) -> bytes:
    return b"".join(traffic.request("Heartbeat", 3, {"GroupId": "g"}, ident) for ident in idents)


def replies(traffic: Any, *idents: int) -> bytes:
    return b"".join(traffic.response("Heartbeat", 3, {"ThrottleTimeMs": ident}, ident) for ident in idents)


def pairs(outcome: Any) -> list[tuple[int, int | None]]:
    """Of each exchange the ids of request and response; a response's throttle time is its own id."""
    return [
        (each.request.correlation_id, each.response and each.response.body()["ThrottleTimeMs"])
        for each in outcome.exchanges
    ]


def endings(outcome: Any) -> list[tuple[str, str | None, str | None]]:
    return [(each.first.quality, each.ending, each.first.note) for each in outcome.exchanges]


@pytest.mark.parametrize("feed", [None, 1])
def test_pipelined_requests_get_the_answers_in_their_order(traffic: Any, feed: int | None) -> None:
    traffic.connection().send(beats(traffic, 1, 2, 3)).answer(replies(traffic, 1)).send(beats(traffic, 4)).answer(
        replies(traffic, 2, 3, 4)
    )
    assert pairs(traffic.read(feed=feed)) == [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("idents", [[7, 7, 7], [5, 6, 5, 6], [2**31 - 2, 2**31 - 1, -(2**31), -1, 0]])
def test_ids_that_come_again_or_wrap(traffic: Any, idents: list[int]) -> None:
    tcp = traffic.connection()
    for n, ident in enumerate(idents):
        tcp.send(traffic.request("Heartbeat", 3, {"GenerationId": n}, ident))
    for n, ident in enumerate(idents):
        tcp.answer(traffic.response("Heartbeat", 3, {"ThrottleTimeMs": n}, ident))
    for feed in (None, 1, 2):
        found = [
            (each.request.body()["GenerationId"], each.response.body()["ThrottleTimeMs"])
            for each in traffic.read(feed=feed).exchanges
        ]
        assert found == [(n, n) for n in range(len(idents))]


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("feed", [None, 1])
def test_produce_with_acks_0_waits_for_nothing_and_nothing_slips(traffic: Any, version: int, feed: int | None) -> None:
    silent = [traffic.request("Produce", version, {"Acks": 0}, ident) for ident in (1, 3)]
    tcp = traffic.connection().send(silent[0] + beats(traffic, 2) + silent[1] + beats(traffic, 4))
    tcp.answer(replies(traffic, 2, 4))
    outcome = traffic.read(feed=feed)
    by_id = sorted(outcome.exchanges, key=lambda each: each.correlation_id)
    assert [(each.api, each.silent, each.response is None) for each in by_id] == [
        ("Produce", True, True), ("Heartbeat", False, False), ("Produce", True, True), ("Heartbeat", False, False),
    ]  # fmt: skip
    assert {message.quality for message in outcome.messages} == {"ok"}


@pytest.mark.parametrize("feed", [None, 1])
def test_answers_captured_before_their_requests(traffic: Any, feed: int | None) -> None:
    tcp = traffic.connection().send(beats(traffic, 1)).answer(replies(traffic, 1))
    tcp.answer(replies(traffic, 2, 3)).send(beats(traffic, 2)).send(beats(traffic, 3))
    outcome = traffic.read(feed=feed)
    assert sorted(pairs(outcome)) == [(1, 1), (2, 2), (3, 3)]
    latencies = {each.correlation_id: each.latency for each in outcome.exchanges}
    assert latencies == {1: 1_000_000, 2: -1_000_000, 3: -2_000_000}


def test_an_answer_long_before_its_request_is_an_orphan(traffic: Any) -> None:
    tcp = traffic.connection().send(beats(traffic, 1)).answer(replies(traffic, 1)).answer(replies(traffic, 2))
    traffic.now += 2 * SECOND
    tcp.send(beats(traffic, 3)).answer(replies(traffic, 3)).send(beats(traffic, 2))
    outcome = traffic.read(feed=1)
    assert [(i, a, b) for _, i, a, b in outcome.pairs] == [
        (1, True, True),
        (2, False, True),
        (3, True, True),
        (2, True, False),
    ]


def test_a_later_answer_says_that_the_earlier_ones_will_not_come(traffic: Any) -> None:
    traffic.connection().send(beats(traffic, 1, 2, 3)).answer(replies(traffic, 3))
    outcome = traffic.read()
    assert pairs(outcome) == [(1, None), (2, None), (3, 3)]
    said = "a later request was answered"
    assert endings(outcome)[:2] == [("orphan", said, f"no answer: {said}")] * 2


@pytest.mark.parametrize(("end", "why"), [
    (lambda tcp: tcp.close(), "the connection closed"),
    (lambda tcp: tcp.reset(), "the connection was reset"),
    (lambda tcp: tcp.close().reset(), "the connection closed"),
    (lambda tcp: tcp.close().answer(b"late").reset(0), "the connection closed"),  # as a client's kernel does
    (lambda tcp: tcp.close(sides=(0,)), "the connection closed"),
    (lambda tcp: tcp.close(sides=(0,)).reset(), "the connection closed"),
    (lambda tcp: tcp.reset().close(), "the connection was reset"),
    (lambda tcp: tcp, "the capture ended"),
])  # fmt: skip
@pytest.mark.parametrize("feed", [None, 1])
def test_what_is_open_at_the_end(traffic: Any, end: Callable[[Any], Any], why: str, feed: int | None) -> None:
    end(traffic.connection().send(beats(traffic, 1)).answer(replies(traffic, 1)).send(beats(traffic, 2)))
    outcome = traffic.read(feed=feed)
    assert endings(outcome) == [("ok", None, None), ("orphan", why, f"no answer: {why}")]


def test_a_response_that_nobody_asked_for_is_an_orphan(traffic: Any) -> None:
    traffic.connection().send(beats(traffic, 1)).answer(replies(traffic, 1)).answer(
        traffic.size_prefixed(pack(">i", 99) + b"\xee" * 7)
    )
    outcome = traffic.read()
    assert outcome.pairs == [("Heartbeat", 1, True, True), ("unknown", 99, False, True)]
    orphan = outcome.messages[-1]
    assert (orphan.quality, orphan.note) == ("orphan", "its request is not in the capture")


@pytest.mark.parametrize(("end", "note"), [
    (lambda tcp: tcp.close(), "the connection closed after 100 of 304 bytes"),
    (lambda tcp: tcp.close().reset(), "the connection closed after 100 of 304 bytes"),
    (lambda tcp: tcp.reset(), "the connection was reset after 100 of 304 bytes"),
    (lambda tcp: tcp, "the capture ended after 100 of 304 bytes"),
])  # fmt: skip
def test_a_frame_that_never_ended_says_why(traffic: Any, end: Callable[[Any], Any], note: str) -> None:
    frame = traffic.size_prefixed(pack(">i", 2) + bytes(296))
    end(traffic.connection().send(beats(traffic, 1, 2)).answer(replies(traffic, 1)).answer(frame[:100]))
    (cut,) = (message for message in traffic.read().messages if message.kind == "response" and len(message.data) == 100)
    assert (cut.quality, cut.note) == ("truncated", note)


@pytest.mark.parametrize(("sent", "note"), [
    (2, "the connection closed after 2 bytes"),
    (9, "the connection closed after 9 of 26 bytes"),
    (25, "the connection closed after 25 of 26 bytes"),
])  # fmt: skip
def test_a_frame_cut_by_the_close_is_no_gap(traffic: Any, sent: int, note: str) -> None:
    frame = traffic.request("Heartbeat", 3, {"GroupId": "g"}, 2)
    frame = frame[:3] + bytes([22]) + frame[4:][:22].ljust(22, b"\0")
    traffic.connection().send(beats(traffic, 1)).answer(replies(traffic, 1)).send(frame[:sent]).close()
    outcome = traffic.read()
    if sent < 4:
        assert [(way, skipped.length, skipped.reason) for _, way, skipped in outcome.skipped] == [
            ("request", sent, note)
        ]
    else:
        cut = outcome.messages[-1]
        assert (cut.quality, cut.note, len(cut.data), outcome.skipped) == ("truncated", note, sent, [])


def test_a_response_too_short_for_a_header_answers_nothing(traffic: Any) -> None:
    traffic.connection().send(beats(traffic, 1)).answer(traffic.size_prefixed(b"\0\0")).answer(replies(traffic, 1))
    outcome = traffic.read(feed=1)
    assert sorted(each.first.kind for each in outcome.exchanges) == ["request", "response"]
    assert [message.note for message in outcome.messages if message.quality == "malformed"] == [
        "2 bytes are no response header"
    ]


# ---------------------------------------------------------------- what nobody knows


def test_unknown_apis_and_versions_are_paired_like_all_others(traffic: Any) -> None:
    tcp = traffic.connection().send(beats(traffic, 1)).answer(replies(traffic, 1))
    tcp.send(traffic.request(200, 1, b"abcd", 2) + traffic.request(3, 64, b"", 3) + beats(traffic, 4))
    tcp.answer(b"".join(traffic.size_prefixed(pack(">i", ident) + b"\0??") for ident in (2, 3)) + replies(traffic, 4))
    outcome = traffic.read()
    assert outcome.pairs[1:] == [
        ("ApiKey200", 2, True, True), ("Metadata", 3, True, True), ("Heartbeat", 4, True, True),
    ]  # fmt: skip
    notes = [(message.name, message.quality, message.note) for message in outcome.messages[2:6]]
    assert notes == [
        ("ApiKey200Request v1", "unsupported", "no API has the key 200"),
        ("ApiKey200Response v1", "unsupported", "no API has the key 200"),
        ("MetadataRequest v64", "unsupported", "MetadataRequest has versions 0-13"),
        ("MetadataResponse v64", "unsupported", "MetadataResponse has versions 0-13"),
    ]


@pytest.mark.parametrize("version", [5, 6, 99])
def test_a_refused_api_versions_and_the_next_try(traffic: Any, version: int) -> None:
    refusal = traffic.response("ApiVersions", 0, {"ErrorCode": 35, "ApiKeys": []}, 1)
    tcp = traffic.connection().send(beats(traffic, 0)).answer(replies(traffic, 0))
    tcp.send(traffic.request(18, version, b"\2x\2y\0", 1)).answer(refusal)
    tcp.send(traffic.request("ApiVersions", 0, ident=2)).answer(traffic.response("ApiVersions", 0, ident=2))
    first, second = traffic.read().exchanges[1:]
    assert (first.error, first.response.quality, first.response.body()) == (35, "ok", {"ErrorCode": 35, "ApiKeys": []})
    assert (second.error, second.api_version) == (None, 0)


# ---------------------------------------------------------------- bounds


def test_a_capture_of_requests_alone_keeps_few_of_them_open(traffic: Any) -> None:
    tcp = traffic.connection()
    for start in range(0, OPEN_MOST + 200, 100):
        tcp.send(beats(traffic, *range(start, start + 100)))
    outcome = traffic.read(feed=10)
    endings = [each.ending for each in outcome.exchanges]
    assert len(endings) == 4300
    assert endings.count("none was captured") >= 4300 - OPEN_MOST
    assert endings[-1] == "the capture ended"


def test_what_is_open_for_a_quarter_of_an_hour_is_open_no_longer(traffic: Any) -> None:
    tcp = traffic.connection().send(beats(traffic, 1))
    for ident in (2, 3, 4):
        traffic.now += 400 * SECOND
        tcp.send(beats(traffic, ident))
    assert [each.ending for each in traffic.read(feed=1).exchanges] == ["none was captured"] + ["the capture ended"] * 3


@pytest.mark.parametrize(("address", "text"), [("10.0.0.7", "10.0.0.7:92"), ("::1", "[::1]:92")])
def test_endpoints(address: str, text: str) -> None:
    assert endpoint(address, 92) == text


# ---------------------------------------------------------------- any segmentation, any order


def long_talk(traffic: Any, mss: Callable[[], int]) -> None:
    """A connection with all that is special in it."""
    ask, reply = traffic.request, traffic.response
    tcp = traffic.connection()
    tcp.send(ask(18, 5, b"\2x\2y\0", 1), mss()).answer(reply("ApiVersions", 0, {"ErrorCode": 35}, 1), mss())
    tcp.send(ask("Metadata", 9, ident=2), mss()).answer(reply("Metadata", 9, {"ClusterId": "k" * 90}, 2), mss())
    silent = ask("Produce", 9, {"Acks": 0, "TopicData": [{"Name": "t" * 200}]}, 3)
    tcp.send(silent + ask("Produce", 9, {"Acks": 1}, 4) + ask(200, 3, b"???", 5), mss())
    tcp.answer(reply("Produce", 9, ident=4) + traffic.size_prefixed(pack(">i", 5) + b"\0!"), mss())
    tcp.send(beats(traffic, 6, 7, 8), mss()).answer(replies(traffic, 6, 8), mss())
    tcp.send(beats(traffic, 9), mss()).close()


def stripped(outcome: Any) -> list[tuple[Any, ...]]:
    rows = [tuple((name, value) for name, value in row.items() if name not in TIMES) for row in outcome.rows]
    return sorted(rows, key=str)


@pytest.mark.parametrize("seed", range(60))
def test_any_segmentation_and_order_gives_the_same_exchanges(seed: int, traffic: Any) -> None:
    long_talk(traffic, lambda: 1 << 15)
    expected = stripped(traffic.read())
    assert len(expected) == 15
    rng = random.Random(seed)
    traffic.packets.clear()
    long_talk(traffic, lambda: rng.choice((1, 2, 3, 4, 7, 50, 1000)))
    first, rest = traffic.packets[:2], traffic.packets[2:]
    feed = rng.choice((None, 1, 2, 3, 10, 50))
    assert stripped(traffic.read(feed=feed)) == expected
    order = sorted(range(len(rest)), key=lambda n: n + rng.random() * rng.choice((1, 3, 8)))
    shuffled = [*first, *(rest[n] for n in order for _ in range(rng.choice((1, 1, 2))))]
    assert stripped(traffic.read(shuffled)) == expected
