"""What a single frame says: header, body, errors, and whether it is whole."""

from __future__ import annotations

import random
from struct import pack
from typing import Any

import pytest
from vectors import damaged, jsonl

from kwire.session.acks import is_silent
from kwire.session.api_versions import Kinds
from kwire.session.exchange import Message
from kwire.session.messages import CLIENTS, read_request, read_response

KINDS = Kinds()


def bare(kind: str, data: bytes, quality: str = "ok") -> Message:
    return Message(None, kind, 0, 0, data, len(data) - 4, 0, 0, 1, 1, quality, None, ())  # type: ignore[arg-type]


def asked(data: bytes, quality: str = "ok", clients: dict[bytes, str] | None = None) -> Message:
    message = bare("request", data, quality)
    read_request(message, KINDS, {} if clients is None else clients)
    return message


def answered(data: bytes, key: int, version: int, quality: str = "ok") -> Message:
    message = bare("response", data, quality)
    message.api = KINDS.of(key, version)
    read_response(message, message.api, KINDS)
    return message


def sized(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


# ---------------------------------------------------------------- requests


CLIENT_IDS = [
    (None, None), (b"", ""), (b"c", "c"), ("größe".encode(), "größe"), (b"\xff\xfe", "\udcff\udcfe"),
    (b"a\x1b[31m\n", "a\x1b[31m\n"), (b"x" * 32767, "x" * 32767),
]  # fmt: skip


@pytest.mark.parametrize(("client", "text"), CLIENT_IDS)
@pytest.mark.parametrize("version", [3, 4])
def test_client_ids(client: bytes | None, text: str | None, version: int, traffic: Any) -> None:
    message = asked(traffic.request("Heartbeat", version, ident=77, client=client))
    assert (message.client_id, message.correlation_id, message.quality) == (text, 77, "ok")
    assert message.body() is not None


def test_client_ids_are_remembered_and_not_without_bound(traffic: Any) -> None:
    clients: dict[bytes, str] = {}
    first, second = (asked(traffic.request("Heartbeat", 0, client="abc"), clients=clients) for _ in range(2))
    assert first.client_id is second.client_id
    for n in range(CLIENTS + 10):
        assert asked(traffic.request("Heartbeat", 0, client=str(n)), clients=clients).client_id == str(n)
    assert len(clients) == CLIENTS


@pytest.mark.parametrize("known", [{}, {b"consu": "consu"}])
def test_a_client_id_that_is_cut_is_none(known: dict[bytes, str], traffic: Any) -> None:
    message = asked(traffic.request("Heartbeat", 4, client="consumer")[:19], "truncated", dict(known))
    assert (message.client_id, message.api and message.api.api, message.body_at) == (None, "Heartbeat", None)


HEADERS = [
    ("", "malformed", "0 bytes are no request header"),
    ("000c 0000 000000", "malformed", "7 bytes are no request header"),
    ("000c 0000 00000001", "malformed", "the header does not fit into the frame"),
    ("000c 0000 00000001 00", "malformed", "the header does not fit into the frame"),
    ("000c 0000 00000001 0005 6161", "malformed", "the header does not fit into the frame"),
    ("000c 0000 00000001 fffe 0000", "malformed", "the client id's length is -2"),
    ("000c 0004 00000001 0001 61 80", "malformed", "the header does not fit into the frame"),
    ("000c 0004 00000001 0001 61 01 00 05 00", "malformed", "the header does not fit into the frame"),
    ("00c8 0001 00000001 0001 61 00 1234", "unsupported", "no API has the key 200"),
    ("000c 0063 00000001 0001 61 00 1234", "unsupported", "HeartbeatRequest has versions 0-4"),
    ("000c ffff 00000001 0001 61 1234", "unsupported", "HeartbeatRequest has versions 0-4"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "quality", "note"), HEADERS)
def test_headers_that_cannot_be_read(data: str, quality: str, note: str) -> None:
    message = asked(sized(bytes.fromhex(data)))
    assert (message.quality, message.note, message.body()) == (quality, note, None)
    cut = asked(sized(bytes.fromhex(data)), "truncated")
    assert (cut.quality, cut.note) == ("truncated", None)  # what framing said stays


@pytest.mark.parametrize("tags", ["00", "01 00 02 aabb", "02 00 01 aa 8001 00", "8000"])
def test_tagged_fields_in_headers(tags: str, traffic: Any) -> None:
    section = bytes.fromhex(tags)
    request = asked(traffic.request("Heartbeat", 4, {"GroupId": "g"}, tags=section))
    response = answered(traffic.response("Heartbeat", 4, {"ErrorCode": 27}, tags=section), 12, 4)
    assert (request.quality, request.body_at) == ("ok", 15 + len(section))
    assert (request.body() or {})["GroupId"] == "g"
    assert (response.quality, response.body_at, response.errors) == ("ok", 8 + len(section), (27,))


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    message = asked(sized(bytes.fromhex("0007 0000 00000009 00000005")))
    assert (message.name, message.quality, message.client_id) == ("ControlledShutdownRequest v0", "ok", None)
    assert (message.correlation_id, message.body_at, message.body()) == (9, 12, {"BrokerId": 5})


# ---------------------------------------------------------------- bodies


def test_bytes_behind_a_body_are_trailing(traffic: Any) -> None:
    frame = traffic.request("AlterUserScramCredentials", 0)
    message = asked(sized(frame[4:] + b"\0"))  # as librdkafka 2.16 sends it
    assert (message.quality, message.note) == ("trailing", "1 byte behind the body")
    assert message.body() == {"Deletions": [], "Upsertions": []}


def test_the_note_of_a_malformed_body_says_where_and_why(traffic: Any) -> None:
    message = answered(traffic.response("Heartbeat", 0, b"\0"), 12, 0)
    assert (message.quality, message.note) == (
        "malformed", "HeartbeatResponse v0: ErrorCode: needs 2 bytes at offset 8, has 1",
    )  # fmt: skip


def test_errors_are_kept_of_a_body_that_breaks_behind_them(traffic: Any) -> None:
    frame = traffic.response("Heartbeat", 4, {"ErrorCode": 25})[:-1]
    assert answered(sized(frame[4:]), 12, 4).quality == "malformed"
    cut = answered(frame, 12, 4, "truncated")
    assert (cut.quality, cut.errors) == ("truncated", (25,))


def test_errors_come_in_the_order_of_the_fields(traffic: Any) -> None:
    body = {"ErrorCode": 3, "Responses": [{"Partitions": [{"ErrorCode": 6}, {"ErrorCode": 0}, {"ErrorCode": 1}]}]}
    message = answered(traffic.response("Fetch", 12, body), 1, 12)
    assert message.errors == (3, 6, 1)


# ---------------------------------------------------------------- ApiVersions that is refused

REFUSED = {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}]}


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 99, 32767])
def test_a_refused_api_versions_is_answered_in_the_form_of_v0(version: int, traffic: Any) -> None:
    message = answered(traffic.response("ApiVersions", 0, REFUSED), 18, version)
    assert (message.quality, message.errors, message.body()) == ("ok", (35,), REFUSED)
    assert message.note == f"the broker does not know ApiVersions v{version}: it answers in the form of v0"
    assert (message.frame().quality, message.frame().body) == ("ok", REFUSED)


@pytest.mark.parametrize("version", [1, 3, 4])
def test_error_35_in_the_form_of_the_version_asked_for_is_read_so(version: int, traffic: Any) -> None:
    body = {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}], "ThrottleTimeMs": 7}
    message = answered(traffic.response("ApiVersions", version, body), 18, version)
    assert (message.quality, message.note, message.errors, message.body()) == ("ok", None, (35,), body)


def test_an_answer_without_error_to_an_unknown_version_stays_undecoded(traffic: Any) -> None:
    message = answered(traffic.response("ApiVersions", 0, {"ErrorCode": 0}), 18, 99)
    assert (message.quality, message.note) == ("unsupported", "ApiVersionsResponse has versions 0-5")
    assert (message.body(), message.frame().quality) == (None, "unsupported")


# ---------------------------------------------------------------- Produce without an answer


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("transaction", [None, "", "t", "t" * 200])
def test_acks_0_is_silent_in_every_version(version: int, acks: int, transaction: str | None, traffic: Any) -> None:
    body: dict[str, Any] = {"Acks": acks, "TimeoutMs": 0}
    if version >= 3:
        body["TransactionalId"] = transaction
    assert silent(asked(traffic.request("Produce", version, body))) is (acks == 0)


def silent(message: Message) -> bool:
    return is_silent(message.api, message.data, message.body_at)


def test_nothing_else_is_silent(traffic: Any) -> None:
    assert not silent(asked(traffic.request("Heartbeat", 0)))
    assert not silent(asked(traffic.request(0, 64, b"\0\0\0\0\0")))
    assert not silent(asked(traffic.request("Produce", 9, {"Acks": 0}, client="abc")[:18], "truncated"))
    assert not silent(asked(traffic.request("Produce", 9, {"Acks": 0})[:17], "truncated"))


# ---------------------------------------------------------------- rows and diagrams agree


@pytest.mark.slow
def test_quality_ids_and_body_are_those_of_the_diagram() -> None:
    rng = random.Random(4)
    for row in jsonl("vectors/frames"):
        whole = bytes.fromhex(row["hex"])
        for data in (whole, damaged(whole, rng), damaged(whole, rng, range(24))):  # where the header is
            if row["kind"] == "request":
                message = asked(sized(data))
            elif len(data) < 4:
                continue
            else:
                message = answered(sized(data), row["apiKey"], row["apiVersion"])
            frame, where = message.frame(), (row["name"], row["apiVersion"], data.hex())
            if message.api is not None and not message.api.supported:
                assert message.quality in ("unsupported", "malformed"), where
                continue
            assert message.quality == frame.quality, where
            if row["kind"] == "request":
                assert (message.client_id, message.correlation_id) == (frame.client_id, frame.correlation_id), where
            if message.quality == "ok":
                assert repr(message.body()) == repr(frame.body), where
