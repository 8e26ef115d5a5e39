"""Frames: header and body of the official vectors and of real clients, with or without size, whole, cut or wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest
from spans import gap
from vectors import damaged, jsonl

from kwire.codec.frames import MAX_SIZE, Frame, decode_frame, has_size, split
from kwire.codec.library import builtin_library
from kwire.codec.span import UNDECODED, Span
from kwire.errors import UnknownName


def official() -> list[dict[str, Any]]:
    """Frames whose body the official classes can read."""
    return [row for row in jsonl("vectors/frames") if "body" in row]


def sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "big") + raw


def asked(row: dict[str, Any]) -> dict[str, Any]:
    """What decode_frame must be told: of a request nothing, of a response its request."""
    return {"api": row["apiKey"], "version": row["apiVersion"]} if row["kind"] == "response" else {}


HEARTBEAT = bytes.fromhex("000c0004 00000007 00026d65 00 0267 00000003 026d 00 00")
ANSWER = bytes.fromhex("00000007 00 00000000 001b 00")
FETCH = bytes.fromhex("0001000b 00000000 ffff ffffffff 000001f4 00000001 00000400 00") + bytes(18)
VERSIONS_ANSWER = bytes.fromhex("00000007 0023 00000001 0012 0000 0004")


# ---------------------------------------------------------------- whole frames


@pytest.mark.parametrize("with_size", [False, True], ids=["no size", "size"])
@pytest.mark.parametrize("found_out", [False, True], ids=["told", "found out"])
def test_official_frames_are_read_with_and_without_their_size(with_size: bool, found_out: bool) -> None:
    codec = builtin_library().codec
    for row in official():
        raw = bytes.fromhex(row["hex"])
        frame = decode_frame(sized(raw) if with_size else raw, size=None if found_out else with_size, **asked(row))
        where = f"{row['name']} v{row['apiVersion']}"
        assert frame.quality == "ok", f"{where}: {frame.note}"
        assert (frame.kind, frame.api_key, frame.api_version) == (row["kind"], row["apiKey"], row["bodyVersion"]), where
        assert frame.name == f"{row['name']} v{row['bodyVersion']}"
        assert frame.header_version == row["headerVersion"], where
        assert frame.correlation_id == row["header"]["correlationId"], where
        assert frame.client_id == row["header"].get("clientId"), where
        assert repr(frame.body) == repr(codec(row["name"], row["bodyVersion"]).decode(raw[row["headerBytes"] :])), where
        assert gap([frame.span], 0, len(raw) + 4 * with_size) is None, where
        assert (frame.note is not None) == row.get("fallback", False), where


def test_frames_of_real_clients_are_read() -> None:
    for row in jsonl("frames/real"):
        data = bytes.fromhex(row["hex"])
        api = row["name"].removesuffix("Request").removesuffix("Response")
        told = {"api": api, "version": row["version"]} if row["name"].endswith("Response") else {}
        frame = decode_frame(data, **told)
        assert (frame.name, frame.quality) == (f"{row['name']} v{row['version']}", "ok")
        assert (frame.header_version, frame.correlation_id) == (row["header_version"], row["header"]["correlationId"])
        assert frame.span.children[0] == Span("message_size", "int32", 0, 4, len(data) - 4)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_a_frame_says_what_its_header_says(form: Any) -> None:
    frame = decode_frame(form(sized(HEARTBEAT)))
    assert (frame.kind, frame.api_key, frame.api, frame.api_version) == ("request", 12, "Heartbeat", 4)
    assert (frame.header_version, frame.correlation_id, frame.client_id) == (2, 7, "me")
    assert frame.header == {"request_api_key": 12, "request_api_version": 4, "correlation_id": 7, "client_id": "me"}
    assert frame.body == {"GroupId": "g", "GenerationId": 3, "MemberId": "m", "GroupInstanceId": None}
    assert [child.name for child in frame.span.children] == [
        "message_size", "Request Header v2 · flexible", "HeartbeatRequest v4",
    ]  # fmt: skip
    assert (frame.span.name, frame.span.type) == ("HeartbeatRequest v4", "frame")


@pytest.mark.parametrize("api", [12, "Heartbeat", "HeartbeatResponse", "heartbeat"])
def test_a_response_is_read_by_the_key_or_name_of_its_api(api: str | int) -> None:
    frame = decode_frame(ANSWER, api=api, version=4)
    assert (frame.name, frame.api_key, frame.kind) == ("HeartbeatResponse v4", 12, "response")
    assert (frame.header, frame.client_id) == ({"correlation_id": 7}, None)
    assert frame.body == {"ThrottleTimeMs": 0, "ErrorCode": 27}


# ---------------------------------------------------------------- ApiVersions


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_a_refused_version_of_api_versions_is_answered_in_the_form_of_v0(version: int) -> None:
    frame = decode_frame(VERSIONS_ANSWER, api=18, version=version)
    assert (frame.name, frame.header_version, frame.quality) == ("ApiVersionsResponse v0", 0, "ok")
    assert frame.body == {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}]}
    assert frame.note == f"the broker does not know ApiVersions v{version}: it answers error 35 in the form of v0"


def test_api_versions_v0_with_error_35_is_nothing_special() -> None:
    frame = decode_frame(VERSIONS_ANSWER, api=18, version=0)
    assert (frame.name, frame.quality, frame.note) == ("ApiVersionsResponse v0", "ok", None)


def test_error_35_in_the_form_that_was_asked_for_stays_in_it() -> None:
    raw = bytes.fromhex("00000007 0023 01 00000000 00")
    frame = decode_frame(raw, api=18, version=3)
    assert (frame.name, frame.quality, frame.note) == ("ApiVersionsResponse v3", "ok", None)


# ---------------------------------------------------------------- frames that are not whole, or not right


def beyond(api: str, have: str) -> str:
    return f"{api} has versions {have}; newer ones come with kwire schema import, or --schema"


WRONG = [
    ("trailing", sized(HEARTBEAT + b"\0"), {}, "trailing", "HeartbeatRequest v4: 1 byte left over behind the message"),
    ("cut", sized(HEARTBEAT)[:-3], {}, "truncated",
     "HeartbeatRequest v4: MemberId: needs 1 byte at offset 24, has 0"),
    ("cut behind the header", sized(HEARTBEAT)[:17], {}, "truncated",
     "HeartbeatRequest v4: GroupId: needs the length at offset 17, and 0 bytes hold none"),
    ("cut without size", HEARTBEAT[:-3], {}, "malformed",
     "HeartbeatRequest v4: MemberId: needs 1 byte at offset 20, has 0"),
    ("more than the size says", b"\0\0\0\x05" + HEARTBEAT + b"\0", {"size": True}, "trailing",
     "HeartbeatRequest v4: 1 byte left over behind the message"),
    ("a larger size over a whole body", b"\0\0\0\x30" + HEARTBEAT, {}, "truncated",
     "the frame has 23 bytes behind its size"),
    ("null where none may be", bytes.fromhex("000c0004 00000007 ffff 00 00"), {}, "malformed",
     "HeartbeatRequest v4: GroupId: is null, and this field must not be"),
    ("half a header", HEARTBEAT[:6], {}, "malformed",
     "Request Header v2 · flexible: correlation_id: needs 4 bytes at offset 4, has 2"),
    ("a client id cut", HEARTBEAT[:11], {}, "malformed",
     "Request Header v2 · flexible: client_id: needs 2 bytes at offset 10, has 1"),
    ("nothing", b"", {}, "malformed",
     "Request Header v2 · flexible: request_api_key: needs 2 bytes at offset 0, has 0"),
    ("half a size", b"\0\0\0", {"size": True}, "truncated", "message_size: needs 4 bytes at offset 0, has 3"),
    ("no size", b"", {"size": True}, "truncated", "message_size: needs 4 bytes at offset 0, has 0"),
    ("half a size of a response", b"\0", {"size": True, "api": 12, "version": 4}, "truncated",
     "message_size: needs 4 bytes at offset 0, has 1"),
    ("an unknown key", bytes.fromhex("03e80002 00000007 ffff 00 abcd"), {}, "unsupported",
     "ApiKey1000Request v2: no API has the key 1000"),
    ("a newer version", bytes.fromhex("000c0009 00000007 ffff 00 abcd"), {}, "unsupported",
     "HeartbeatRequest v9: " + beyond("HeartbeatRequest", "0-4")),
    ("a version far beyond", bytes.fromhex("000c0063 00000007 ffff 00 abcd"), {}, "unsupported",
     "HeartbeatRequest v99: HeartbeatRequest has versions 0-4"),
    ("a negative version", bytes.fromhex("000cffff 00000007 ffff 00"), {}, "unsupported",
     "HeartbeatRequest v-1: HeartbeatRequest has versions 0-4"),
    ("a response that is cut", sized(ANSWER)[:-3], {"api": 12, "version": 4, "size": True}, "truncated",
     "HeartbeatResponse v4: ErrorCode: needs 2 bytes at offset 13, has 0"),
    ("a response of the wrong version", ANSWER, {"api": 12, "version": 0}, "trailing",
     "HeartbeatResponse v0: 6 bytes left over behind the message"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "data", "told", "quality", "note"), WRONG, ids=[case[0] for case in WRONG])
def test_a_frame_says_what_is_wrong_with_it(what: str, data: bytes, told: Any, quality: str, note: str) -> None:
    frame = decode_frame(data, **told)
    assert (frame.quality, frame.note) == (quality, note), what
    assert gap([frame.span], 0, len(data)) is None


def test_of_a_broken_body_what_could_be_read_is_there() -> None:
    assert decode_frame(HEARTBEAT[:-3]).body == {"GroupId": "g", "GenerationId": 3}
    assert decode_frame(HEARTBEAT[:6]).body is None
    assert decode_frame(HEARTBEAT[:6]).header == {"request_api_key": 12, "request_api_version": 4}


def test_the_body_of_an_unknown_version_is_one_undecoded_span() -> None:
    frame = decode_frame(bytes.fromhex("000c0009 00000007 00026d65 00 abcd"))
    body = frame.span.children[1]
    assert (frame.client_id, frame.body) == ("me", {})
    assert [(part.name, part.type, part.start, part.end) for part in body.children] == [("body", UNDECODED, 13, 15)]


@pytest.mark.parametrize("correlation", [0, 1, 31, 65537])
def test_a_small_correlation_id_makes_no_cut_frame(correlation: int) -> None:
    raw = FETCH[:4] + correlation.to_bytes(4, "big") + FETCH[8:]
    frame = decode_frame(raw)
    assert (frame.name, frame.quality, frame.correlation_id) == ("FetchRequest v11", "ok", correlation)
    broken = decode_frame(raw[:-3])
    assert (broken.name, broken.quality, broken.correlation_id) == ("FetchRequest v11", "malformed", correlation)


REQUESTS = [row for row in official() if row["kind"] == "request"]


@pytest.mark.parametrize("row", REQUESTS[::9], ids=lambda row: row["name"])
def test_a_cut_frame_is_told_from_one_without_size(row: dict[str, Any]) -> None:
    data = sized(bytes.fromhex(row["hex"]))
    for length in range(4 + row["headerBytes"], len(data)):
        frame = decode_frame(data[:length])
        assert (frame.api_key, frame.api_version, frame.quality) == (row["apiKey"], row["apiVersion"], "truncated")


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"api": 9999, "version": 0}, "no API key 9999"),
        ({"api": "Fetsh", "version": 0}, "no message Fetsh; did you mean Fetch?"),
        ({"api": "RequestHeader", "version": 0}, "no API RequestHeader"),
        ({"api": "Heartbeat", "version": 5}, "no version 5 of HeartbeatResponse (it has 0-4)"),
        ({"api": "Heartbeat"}, "no version none of HeartbeatResponse (it has 0-4)"),
    ],
)
def test_an_unknown_api_or_version_is_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownName) as caught:
        decode_frame(ANSWER, **told)
    assert str(caught.value).startswith(message)


def test_damaged_frames_still_make_frames() -> None:
    rng, made = random.Random(5), 0
    for row in official()[::3]:
        raw = bytes.fromhex(row["hex"])
        for _ in range(4):
            data = damaged(sized(raw) if rng.random() < 0.5 else raw, rng)
            cut = data[: rng.randrange(len(data) + 1)]
            frame = decode_frame(cut, size=rng.choice((None, True, False)), **asked(row))
            assert isinstance(frame, Frame)
            assert gap([frame.span], 0, len(cut)) is None, cut.hex()
            assert frame.quality == "ok" or frame.note
            made += 1
    assert made > 900


# ---------------------------------------------------------------- frames in a row


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", []),
        ("00", [(0, 1)]),
        ("00000000", [(0, 4)]),
        ("0000000161", [(0, 5)]),
        ("0000000161 00000000 0000000262", [(0, 5), (5, 9), (9, 14)]),
        ("0000000161 000000", [(0, 5), (5, 8)]),
        ("0000000961", [(0, 5)]),
        ("ffffffff61 0000000161", [(0, 10)]),
        (f"{MAX_SIZE:08x}61", [(0, 5)]),
        (f"{MAX_SIZE + 1:08x}61 0000000161", [(0, 10)]),
    ],
)  # fmt: skip
def test_split(raw: str, expected: list[tuple[int, int]]) -> None:
    assert split(bytes.fromhex(raw)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("", 0), ("000000", 0), ("00000000", 1), ("0000000161", 1), ("000000016161", 0), ("ffffffff", 0)],
)
def test_has_size(raw: str, expected: int) -> None:
    assert has_size(bytes.fromhex(raw)) is bool(expected)
