"""Frames to answers: headers, versions, logins, and everything for which Kafka closes the connection."""

from __future__ import annotations

import random
from struct import pack
from typing import Any

import pytest

from kwire.broker.answers import ReplyFrame
from kwire.broker.apis import announced
from kwire.broker.context import BrokerLimits, BrokerSettings, Peer
from kwire.broker.security import ServerLogin
from kwire.broker.service import foreign
from kwire.codec.example import example
from kwire.codec.library import builtin_library
from kwire.records import build

LIBRARY = builtin_library()
CASES = [
    (LIBRARY.registry.api(key).name, version)
    for key, versions in announced(None).items()
    for version in versions.each()
]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "a frame of 0 bytes is no request"),
        (bytes(7), "a frame of 7 bytes is no request"),
        (pack(">hhi", 99, 0, 1), "API key 99 is not served"),
        (pack(">hhi", -5, 0, 1), "API key -5 is not served"),
        (pack(">hhi", 4, 0, 1), "API key 4 (LeaderAndIsr) is not served"),
        (pack(">hhi", 12, 5, 1), "Heartbeat v5 is not served, 0-4 are"),
        (pack(">hhi", 12, -1, 1), "Heartbeat v-1 is not served, 0-4 are"),
        (
            pack(">hhih", 12, 0, 1, -1),
            "Heartbeat v0 cannot be read: HeartbeatRequest v0: GroupId: needs 2 bytes (length) at offset 10, has 0",
        ),
    ],
)
def test_what_closes_a_connection(socketless: Any, data: bytes, why: str) -> None:
    assert socketless.raw(data) == [ReplyFrame(None, why)]


@pytest.mark.parametrize("version", [6, 99, -1])
def test_api_versions_of_an_unknown_version_is_answered_in_the_form_of_v0(socketless: Any, version: int) -> None:
    (reply,) = socketless.raw(pack(">hhi", 18, version, 7) + b"whatever")
    assert socketless.body("ApiVersions", 0, reply) == {
        "ErrorCode": 35,
        "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}],
    }


def test_bytes_behind_the_body_are_taken_as_kafka_does(socketless: Any) -> None:
    (reply,) = socketless.raw(socketless.frame("Metadata", 1, {"Topics": None}) + b"\0")
    assert socketless.body("Metadata", 1, reply)["ControllerId"] == 1


@pytest.mark.parametrize(("api", "version"), CASES)
def test_every_version_of_every_api_is_answered(socketless: Any, api: str, version: int) -> None:
    """With a made-up request: whatever it means, an answer comes (acks=0 has none), at once or after its wait."""
    replies = socketless.send(api, version, example(LIBRARY.plan(f"{api}Request", version)))
    socketless.clock.run(120_000)
    assert len(replies) == 1
    assert api in ("SaslAuthenticate",) or replies[0].close is None
    assert socketless.body(api, version, replies[0]).keys() >= {
        slot.name for slot in LIBRARY.plan(f"{api}Response", version).root.slots
    }


def test_random_bytes_never_raise(socketless: Any) -> None:
    """Every reply is an answer or a reason to close."""
    source = random.Random(5)
    for _ in range(3_000):
        key, version = source.choice(list(announced(None))), source.randrange(-1, 14)
        data = pack(">hhi", key, version, 7) + source.randbytes(source.randrange(60))
        peer = Peer(9, "127.0.0.1", 1, 1)
        replies = socketless.raw(data, peer)
        peer.close()
        assert len(replies) <= 1
        assert all(reply.data is not None or reply.close for reply in replies) or key == 0


def test_only_produce_may_be_large(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(limits=BrokerLimits(other=20)))
    data = socketless.frame("Metadata", 1, {"Topics": [{"Name": "x" * 20}]})
    assert socketless.raw(data) == [ReplyFrame(None, f"Metadata of {len(data)} bytes, the limit is 20")]
    body = {"Acks": 1, "TimeoutMs": 1, "TopicData": [{"Name": "x" * 20, "PartitionData": []}]}
    assert socketless.send("Produce", 9, body)[0].close is None


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("rule", [None, "Fetch:error=1"])
def test_records_of_a_frame_that_was_put_together(make_socketless: Any, version: int, rule: str | None) -> None:
    """They are written as those of any other; where rules may look at them they are bytes."""
    logs = []
    for kind in (bytes, bytearray):
        socketless = make_socketless(BrokerSettings(topics=(("t", 1),)))
        topic = socketless.state.cluster.topics["t"]
        if rule:
            socketless.state.faults.add(rule)
        part = {"Index": 0, "Records": build([(b"k", b"v" * 70_000)], timestamp=1_700_000_000_000)}
        data = [{"Name": "t", "TopicId": topic.id, "PartitionData": [part]}]
        frame = socketless.frame("Produce", version, {"Acks": 1, "TimeoutMs": 1, "TopicData": data})
        replies = [socketless.raw(kind(frame))[0].data for _ in range(2)]
        logs.append(([reply.replace(topic.id.bytes, b"") for reply in replies], topic.partitions[0].log.entries))
    assert logs[0] == logs[1]
    assert [type(entry.data) for entry in logs[1][1]] == [bytes if rule else bytearray] * 2


def test_long_names_are_not_kept_whole(socketless: Any) -> None:
    socketless.ask("Metadata", 1, {"Topics": None}, client="c" * 30_000)
    assert socketless.state.requests[-1].client_id == "c" * 500


def test_era_decides_what_is_served(make_socketless: Any) -> None:
    modern, old, ancient = (make_socketless(BrokerSettings(era=era)) for era in ((4, 3), (3, 9), (0, 9)))
    assert modern.send("Fetch", 3, modern.fetch_body("t"))[0].close == "Fetch v3 is not served, 4-18 are"
    assert modern.send("Metadata", 0, {"Topics": []})[0].close is None
    assert old.send("Fetch", 3, old.fetch_body("t"))[0].close is None
    assert old.send("Fetch", 18, old.fetch_body("t"))[0].close == "Fetch v18 is not served, 0-17 are"
    assert ancient.raw(pack(">hhi", 18, 0, 7)) == [ReplyFrame(None, "API key 18 (ApiVersions) is not served")]


def test_api_versions_says_what_is_served_and_hears_who_asks(socketless: Any) -> None:
    (reply,) = socketless.raw(
        socketless.frame("ApiVersions", 3, {"ClientSoftwareName": "lib", "ClientSoftwareVersion": "1.2"})
    )
    answer = socketless.body("ApiVersions", 3, reply)
    assert [row["ApiKey"] for row in answer["ApiKeys"]] == sorted(announced(None))
    assert {row["Name"]: row["MaxVersionLevel"] for row in answer["FinalizedFeatures"]}["group.version"] == 1
    assert socketless.peer.software == "lib 1.2"


def test_produce_is_announced_from_v0_on_even_where_it_is_not_served(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(era=(4, 3)))
    rows = {row["ApiKey"]: row["MinVersion"] for row in socketless.ask("ApiVersions", 0, {})["ApiKeys"]}
    assert (rows[0], rows[1]) == (0, 4)
    assert socketless.send("Produce", 2, {"Acks": 1, "TimeoutMs": 1})[0].close == "Produce v2 is not served, 3-13 are"


def test_a_bad_software_name_is_refused(socketless: Any) -> None:
    assert (
        socketless.ask("ApiVersions", 3, {"ClientSoftwareName": "a b", "ClientSoftwareVersion": "1"})["ErrorCode"] == 42
    )


def test_requests_are_remembered(socketless: Any) -> None:
    socketless.ask("Metadata", 1, {"Topics": None}, client="me")
    seen = socketless.state.requests[-1]
    assert (seen.api, seen.version, seen.client_id, seen.client, seen.node) == (
        "Metadata",
        1,
        "me",
        "127.0.0.1:40001",
        1,
    )


# ---------------------------------------------------------------- logging in


@pytest.fixture
def guarded(make_socketless: Any) -> Any:
    socketless = make_socketless(BrokerSettings(users=(("ann", "secret"),)))
    socketless.peer.login = ServerLogin(socketless.state.users)
    return socketless


def test_nothing_else_before_the_login(guarded: Any) -> None:
    assert guarded.raw(guarded.frame("Metadata", 1, {"Topics": None})) == [
        ReplyFrame(None, "Metadata before the login")
    ]
    assert guarded.raw(guarded.frame("ApiVersions", 0, {}))[0].close is None


def test_a_login_in_frames(guarded: Any) -> None:
    (reply,) = guarded.raw(guarded.frame("SaslHandshake", 1, {"Mechanism": "PLAIN"}))
    assert guarded.body("SaslHandshake", 1, reply) == {
        "ErrorCode": 0,
        "Mechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
    }
    (reply,) = guarded.raw(guarded.frame("SaslAuthenticate", 2, {"AuthBytes": b"\0ann\0secret"}))
    assert (guarded.body("SaslAuthenticate", 2, reply)["ErrorCode"], reply.close) == (0, None)
    (reply,) = guarded.raw(guarded.frame("Metadata", 1, {"Topics": None}))
    assert guarded.body("Metadata", 1, reply)["ControllerId"] == 1
    (reply,) = guarded.raw(guarded.frame("SaslHandshake", 1, {"Mechanism": "PLAIN"}))
    assert guarded.body("SaslHandshake", 1, reply)["ErrorCode"] == 34


def test_a_wrong_password_is_answered_and_then_closed(guarded: Any) -> None:
    guarded.raw(guarded.frame("SaslHandshake", 1, {"Mechanism": "PLAIN"}))
    (reply,) = guarded.raw(guarded.frame("SaslAuthenticate", 2, {"AuthBytes": b"\0ann\0wrong"}))
    answer = guarded.body("SaslAuthenticate", 2, reply)
    assert answer["ErrorCode"] == 58
    assert answer["ErrorMessage"] == "Authentication failed: Invalid username or password"
    assert reply.close == "the login failed"


def test_bare_tokens_after_a_handshake_of_v0(guarded: Any) -> None:
    guarded.raw(guarded.frame("SaslHandshake", 0, {"Mechanism": "PLAIN"}))
    assert guarded.raw(b"\0ann\0secret") == [ReplyFrame(bytes(4))]
    assert guarded.raw(guarded.frame("Metadata", 1, {"Topics": None}))[0].close is None


def test_a_wrong_bare_token_closes(guarded: Any) -> None:
    guarded.raw(guarded.frame("SaslHandshake", 0, {"Mechanism": "PLAIN"}))
    why = "the login failed: Authentication failed: Invalid username or password"
    assert guarded.raw(b"\0ann\0wrong") == [ReplyFrame(None, why)]


def test_an_unknown_mechanism_is_named(guarded: Any) -> None:
    (reply,) = guarded.raw(guarded.frame("SaslHandshake", 1, {"Mechanism": "GSSAPI"}))
    assert guarded.body("SaslHandshake", 1, reply)["ErrorCode"] == 33


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1195725856, "; this is HTTP (GET), not Kafka"),
        (369295616, "; this is TLS, not Kafka"),
        (352518912, "; this is TLS, not Kafka"),
        (2_000_000_000, ""),
    ],
)
def test_what_a_size_was_instead(size: int, expected: str) -> None:
    assert foreign(size) == expected
