"""Faults on the way: what the rules make of requests that pass and of their answers, without sockets."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from struct import pack, unpack_from
from typing import Any

import pytest

from kwire.broker.context import Request, Seen
from kwire.broker.fault_rules import ONCE
from kwire.broker.faults import Faults
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.errors import KwireError
from kwire.proxy.cutter import Dead, End, Piece, Wait
from kwire.proxy.faults import Judge
from kwire.proxy.link import Edits, Link

LIBRARY = builtin_library()
HEARTBEAT = {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}
LARGEST = 1 << 20
SECOND = 1_000_000_000


def key_of(api: str) -> int:
    key = LIBRARY.registry.find(api).definition.key
    assert key is not None
    return key


def request(api: str, version: int, body: dict[str, Any], correlation: int = 7, client: str = "c1") -> bytes:
    key = key_of(api)
    head = {"RequestApiKey": key, "RequestApiVersion": version, "CorrelationId": correlation, "ClientId": client}
    header = request_header_version(key, version, LIBRARY.message(f"{api}Request"))
    data = LIBRARY.codec("RequestHeader", header).encode(head) + LIBRARY.codec(f"{api}Request", version).encode(body)
    return pack(">i", len(data)) + data


def response(api: str, version: int, body: dict[str, Any], correlation: int = 7) -> bytes:
    tail = b"\0" * response_header_version(key_of(api), version, LIBRARY.message(f"{api}Response"))
    data = pack(">i", correlation) + tail + LIBRARY.codec(f"{api}Response", version).encode(body)
    return pack(">i", len(data)) + data


def body(api: str, version: int, frame: Piece) -> dict[str, Any]:
    assert isinstance(frame, bytes)
    assert unpack_from(">i", frame)[0] == len(frame) - 4
    start = 8 + response_header_version(key_of(api), version, LIBRARY.message(f"{api}Response"))
    return LIBRARY.codec(f"{api}Response", version).decode(frame[start:])


class Way:
    """A connection with faults: what goes on to the broker, and what the client gets."""

    def __init__(self, *rules: str, node: int = 1) -> None:
        self.faults = Faults(cannot=ONCE)
        for rule in rules:
            self.faults.add(rule)
        self.told: list[Any] = []
        self.seen: list[Any] = []
        self.time, self.paused = 0, 0
        judge = Judge(
            self.faults, lambda: node, lambda: self.time, lambda *said: self.told.append(said), self._pause,
            self.seen.append,
        )  # fmt: skip
        self.link = Link(Edits(), LARGEST, judge)

    def _pause(self) -> None:
        self.paused += 1

    def ask(self, data: bytes) -> tuple[bytes, list[Piece]]:
        """What the broker gets, and the client at once."""
        pieces = self.link.requests(data)
        forward = b"".join(piece for piece in pieces if isinstance(piece, bytes | memoryview))
        rest = [piece for piece in pieces if not isinstance(piece, bytes | memoryview)]
        return forward, rest + self.link.responses(b"")

    def answer(self, data: bytes) -> list[Piece]:
        return [bytes(piece) if isinstance(piece, memoryview) else piece for piece in self.link.responses(data)]


ASKED, ANSWER = request("Heartbeat", 4, HEARTBEAT), response("Heartbeat", 4, {})


def test_no_rule_nothing_changes() -> None:
    way = Way("Fetch:cut")
    assert way.ask(ASKED) == (ASKED, [])
    assert way.answer(ANSWER) == [ANSWER]
    assert way.seen == [Seen(0, "Heartbeat", 4, "c1", ":0", "", 1)]


def test_an_error_in_place_of_the_answer() -> None:
    way = Way("Heartbeat:error=REBALANCE_IN_PROGRESS,after=1,times=1")
    assert way.ask(ASKED) == (ASKED, [])
    way.answer(ANSWER)
    forward, (made,) = way.ask(request("Heartbeat", 4, HEARTBEAT, 9))
    assert (forward, body("Heartbeat", 4, made)["ErrorCode"]) == (b"", 27)
    assert unpack_from(">i", made, 4) == (9,)
    assert way.ask(ASKED)[0] == ASKED
    assert way.told == [("Heartbeat", "Heartbeat:error=REBALANCE_IN_PROGRESS,after=1,times=1")]


def test_an_answer_made_here_waits_for_its_turn() -> None:
    way = Way("Heartbeat:error=27")
    first, last = request("Metadata", 1, {"Topics": None}, 1), request("Metadata", 1, {"Topics": None}, 3)
    assert way.ask(first + ASKED + last) == (first + last, [])
    one, three = response("Metadata", 1, {}, 1), response("Metadata", 1, {}, 3)
    got = way.answer(one[:10])
    assert got == [one[:10]]
    got = way.answer(one[10:] + three)
    assert (got[0], got[2]) == (one[10:], three)
    assert body("Heartbeat", 4, got[1])["ErrorCode"] == 27


@pytest.mark.parametrize("rule", ["Produce:error=NOT_LEADER_OR_FOLLOWER", "Produce:delay=1s", "Produce:cut=after"])
def test_what_asks_for_no_answer_gets_none(rule: str) -> None:
    way = Way(rule)
    asked = request("Produce", 9, {"Acks": 0, "TopicData": [{"Name": "t", "PartitionData": [{"Index": 0}]}]})
    forward, got = way.ask(asked)
    assert (forward, got) == (b"" if "error" in rule else asked, [])
    way.ask(request("Metadata", 1, {"Topics": None}, 8))
    assert way.answer(response("Metadata", 1, {}, 8)) == [response("Metadata", 1, {}, 8)]


@pytest.mark.parametrize(
    ("rule", "forward", "at_once", "later"),
    [
        ("Heartbeat:drop", b"", [], None),
        ("Heartbeat:drop=after", ASKED, [], []),
        ("Heartbeat:cut", b"", [End("cut on purpose")], None),
        ("Heartbeat:cut=after", ASKED, [], [End("cut on purpose")]),
        ("Heartbeat:short=5", ASKED, [], [ANSWER[:5], End("cut short after 5 bytes, on purpose")]),
        ("Heartbeat:delay=2s", ASKED, [], [Wait(2 * SECOND), ANSWER]),
        ("Heartbeat:half-open", b"", [Dead()], None),
        ("any,node=1:cut", b"", [End("cut on purpose")], None),
        ("any,node=2:cut", ASKED, [], [ANSWER]),
        ("any,client=c*:drop", b"", [], None),
        ("any,client=d*:drop", ASKED, [], [ANSWER]),
        ("any,version=4:drop", b"", [], None),
        ("any,version=3:drop", ASKED, [], [ANSWER]),
        ("group=g:drop", b"", [], None),
        ("group=h:drop", ASKED, [], [ANSWER]),
        ("any:cut,chance=0", ASKED, [], [ANSWER]),
        ("Heartbeat:versions=0-3", b"", [End("Heartbeat v4 is not served, 0-3 are, on purpose")], None),
    ],
)
def test_what_becomes_of_request_and_answer(
    rule: str, forward: bytes, at_once: list[Piece], later: list[Piece] | None
) -> None:
    way = Way(rule)
    assert way.ask(ASKED) == (forward, at_once)
    if later is not None:
        assert way.answer(ANSWER) == later
    assert not way.link.waiting


def test_damage_spares_size_and_correlation_id() -> None:
    way = Way("Heartbeat:flip=3")
    way.ask(ASKED)
    (bad,) = way.answer(ANSWER)
    assert isinstance(bad, bytes)
    assert (bad[:8], len(bad)) == (ANSWER[:8], len(ANSWER))
    assert sum(a != b for a, b in zip(bad, ANSWER, strict=True)) == 3


def test_throttling_is_said_where_it_can_be() -> None:
    way = Way("any:throttle=1500ms")
    way.ask(ASKED)
    (said,) = way.answer(ANSWER)
    assert body("Heartbeat", 4, said)["ThrottleTimeMs"] == 1500
    way.ask(request("Heartbeat", 0, HEARTBEAT))
    assert way.answer(response("Heartbeat", 0, {})) == [response("Heartbeat", 0, {})]


def test_several_rules_come_together() -> None:
    way = Way("Heartbeat:error=27", "Heartbeat:delay=1s")
    _, (wait, made) = way.ask(ASKED)
    assert wait == Wait(SECOND)
    assert body("Heartbeat", 4, made)["ErrorCode"] == 27


def test_nothing_is_asked_behind_an_end() -> None:
    way = Way("Heartbeat:cut")
    metadata = request("Metadata", 1, {"Topics": None}, 1)
    assert way.ask(metadata + ASKED + metadata) == (metadata, [])
    assert way.link.ending
    answer = response("Metadata", 1, {}, 1)
    assert way.answer(answer) == [answer, End("cut on purpose")]


def test_versions_that_are_not_served() -> None:
    way = Way("ApiVersions:versions=0-2")
    forward, (made,) = way.ask(request("ApiVersions", 4, {"ClientSoftwareName": "x", "ClientSoftwareVersion": "1"}))
    said = body("ApiVersions", 0, made)
    assert (forward, said["ErrorCode"], [row["ApiKey"] for row in said["ApiKeys"]]) == (b"", 35, [18])


def test_a_pause_is_of_the_broker() -> None:
    way = Way("Heartbeat:pause=2s")
    assert way.ask(ASKED) == (ASKED, [])
    assert (way.paused, way.faults.silence(1, SECOND), way.faults.silence(2, SECOND)) == (1, 100_000_000, 0)
    assert way.faults.silence(1, 2 * SECOND) == 0
    way.ask(ASKED)
    assert way.paused == 1


def test_hooks_see_requests_and_answer_them() -> None:
    way = Way()
    asked: list[Request] = []

    def hook(request: Request) -> Any:
        asked.append(request)
        return [None, "error=27", {"ErrorCode": 25}, "forget", "nonsense"][len(asked) - 1]

    with way.faults.control("Heartbeat", hook):
        assert way.ask(ASKED) == (ASKED, [])
        way.answer(ANSWER)
        assert [body("Heartbeat", 4, way.ask(ASKED)[1][0])["ErrorCode"] for _ in range(2)] == [27, 25]
        (end,) = way.ask(ASKED)[1]
    assert isinstance(end, End)
    assert end.why.endswith("only a broker can forget, and this is a proxy")
    assert (asked[0].body["GroupId"], asked[0].client_id, asked[0].node) == ("g", "c1", 1)


@pytest.mark.parametrize("rule", ["any:drop", "any:error=27", "group=g:drop"])
def test_an_api_that_nobody_knows(rule: str) -> None:
    frame = pack(">ihhih", 10, 999, 0, 7, -1)
    way = Way(rule)
    assert way.ask(frame) == (b"" if rule == "any:drop" else frame, [])


def test_in_pieces_of_any_size() -> None:
    for size in range(1, 40):
        way = Way("Heartbeat:error=27")
        stream = request("Metadata", 1, {"Topics": None}, 1) + ASKED
        got = [way.ask(stream[at : at + size]) for at in range(0, len(stream), size)]
        assert b"".join(forward for forward, _ in got) == stream[: -len(ASKED)]
        answer = response("Metadata", 1, {}, 1)
        out = [piece for at in range(0, len(answer), size) for piece in way.answer(answer[at : at + size])]
        assert b"".join(out[:-1]) == answer
        assert body("Heartbeat", 4, out[-1])["ErrorCode"] == 27


def test_what_only_a_broker_can() -> None:
    with pytest.raises(KwireError, match="fault Heartbeat:expire: only a broker can expire, and this is a proxy"):
        Way("Heartbeat:expire")
