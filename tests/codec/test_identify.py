"""From unexplained bytes to pieces: frames in a row, requests with their answers, cut ones, bodies, and not Kafka."""

from __future__ import annotations

import random

import pytest
from vectors import damaged, jsonl

from kwire.codec.identify import Item, identify, identify_as
from kwire.codec.library import builtin_library
from kwire.errors import UnknownName

LIBRARY = builtin_library()


def sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "big") + raw


def heartbeat(correlation: int, group: str = "billing") -> bytes:
    head = bytes.fromhex("000c0004") + correlation.to_bytes(4, "big") + bytes.fromhex("00026d65 00")
    return head + LIBRARY.codec("HeartbeatRequest", 4).encode({"GroupId": group, "GenerationId": 3, "MemberId": "m"})


def answer(correlation: int, error: int = 0) -> bytes:
    return correlation.to_bytes(4, "big") + b"\0" + LIBRARY.codec("HeartbeatResponse", 4).encode({"ErrorCode": error})


def said(items: list[Item]) -> list[tuple[int, int, str, str]]:
    return [(item.start, item.end, item.span.name, item.quality) for item in items]


def cover(items: list[Item], data: bytes) -> bool:
    """Whether the pieces lie one behind the other from the first byte to the last."""
    ends = [0, *(item.end for item in items)]
    return ends[-1] == len(data) and all(item.start == end for item, end in zip(items, ends, strict=False))


REQUEST, ANSWER = heartbeat(7), answer(7, 27)


# ---------------------------------------------------------------- one frame


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (sized(REQUEST), ("HeartbeatRequest v4", "ok", True)),
        (REQUEST, ("HeartbeatRequest v4", "ok", True)),
        (sized(REQUEST + b"\0"), ("HeartbeatRequest v4", "trailing", True)),
        (sized(REQUEST)[:-4], ("HeartbeatRequest v4", "truncated", True)),
        (REQUEST[:3] + b"\x09" + REQUEST[4:], ("HeartbeatRequest v9", "unsupported", True)),
        (sized(REQUEST[:3] + b"\x09" + REQUEST[4:]), ("HeartbeatRequest v9", "unsupported", True)),
        (sized(ANSWER), ("HeartbeatResponse v4", "inferred", False)),
        (ANSWER, ("HeartbeatResponse v4", "inferred", False)),
    ],
)
def test_a_frame_alone(data: bytes, expected: tuple[str, str, bool]) -> None:
    (item,) = identify(data)
    assert (item.span.name, item.quality, item.sure) == expected
    assert (item.start, item.end, item.span.end) == (0, len(data), len(data))
    assert item.frame is not None
    assert item.message is LIBRARY.message("Heartbeat" + item.frame.kind.capitalize())


@pytest.mark.slow
def test_a_cut_produce_request_is_told_from_a_response() -> None:
    row = next(row for row in jsonl("vectors/frames") if (row["name"], row["apiVersion"]) == ("ProduceRequest", 9))
    data = sized(bytes.fromhex(row["hex"]))
    for length in range(40, len(data), 160):
        assert said(identify(data[:length])) == [(0, length, "ProduceRequest v9", "truncated")]


@pytest.mark.parametrize("with_size", [True, False], ids=["size", "no size"])
def test_every_official_request_names_itself(with_size: bool) -> None:
    for row in jsonl("vectors/frames"):
        if row["kind"] == "request" and "body" in row:
            raw = bytes.fromhex(row["hex"])
            (item,) = identify(sized(raw) if with_size else raw)
            assert (item.span.name, item.quality) == (f"{row['name']} v{row['apiVersion']}", "ok")


def test_a_body_alone_is_inferred() -> None:
    body = LIBRARY.codec("JoinGroupRequest", 5).encode({"GroupId": "billing", "ProtocolType": "consumer"})
    (item,) = identify(body)
    assert (item.span.name, item.span.type, item.quality) == ("JoinGroupRequest v5", "message", "inferred")
    assert item.frame is None
    assert item.message is LIBRARY.message("JoinGroupRequest")
    assert (item.readings[0].title, item.readings[0].form) == ("JoinGroupRequest v5", "body")


# ---------------------------------------------------------------- frames in a row


def test_a_request_explains_the_response_behind_it() -> None:
    data = sized(heartbeat(7)) + sized(answer(7, 27))
    items = identify(data)
    assert said(items) == [(0, 33, "HeartbeatRequest v4", "ok"), (33, 49, "HeartbeatResponse v4", "ok")]
    assert items[1].sure
    assert items[1].frame is not None
    assert items[1].frame.body == {"ThrottleTimeMs": 0, "ErrorCode": 27}
    assert [child.start for child in items[1].span.children] == [0, 4, 9]  # offsets count from the piece's own start


def test_responses_find_their_requests_by_correlation_id() -> None:
    fetch = sized(bytes.fromhex("00030004 00000009 00026d65" + "00000000 01"))
    metadata = sized(bytes.fromhex("00000009") + LIBRARY.codec("MetadataResponse", 4).encode({"ClusterId": "c"}))
    data = sized(heartbeat(7)) + fetch + metadata + sized(answer(7))
    names = [item.span.name for item in identify(data)]
    assert names == ["HeartbeatRequest v4", "MetadataRequest v4", "MetadataResponse v4", "HeartbeatResponse v4"]


def test_a_broken_answer_is_still_the_answer() -> None:
    data = sized(heartbeat(7)) + sized(answer(7)[:-3])
    assert said(identify(data))[1] == (33, 46, "HeartbeatResponse v4", "malformed")


def test_a_cut_answer_is_still_the_answer() -> None:
    data = sized(heartbeat(7)) + sized(answer(7))[:-3]
    assert said(identify(data))[1] == (33, 46, "HeartbeatResponse v4", "truncated")


def test_an_answer_without_its_request_is_inferred() -> None:
    items = identify(sized(heartbeat(7)) + sized(answer(8, 27)))
    assert [(item.quality, item.sure) for item in items] == [("ok", True), ("inferred", False)]


def test_a_cut_request_ends_the_row() -> None:
    data = sized(heartbeat(1)) + sized(heartbeat(2))[:20]
    assert said(identify(data)) == [(0, 33, "HeartbeatRequest v4", "ok"), (33, 53, "HeartbeatRequest v4", "truncated")]


@pytest.mark.parametrize("correlation", [1, 5, 9, 11, 1000, 70000])
def test_a_small_correlation_id_is_not_taken_for_a_size(correlation: int) -> None:
    data = answer(correlation, 27)
    assert said(identify(data)) == [(0, 12, "HeartbeatResponse v4", "inferred")]


@pytest.mark.parametrize("left", [b"\0", b"\0\0\0", b"\xff" * 9, b"\0\0\x10\0ab"])
def test_what_is_left_behind_frames_is_opaque(left: bytes) -> None:
    items = identify(sized(heartbeat(1)) + left)
    assert said(items) == [(0, 33, "HeartbeatRequest v4", "ok"), (33, 33 + len(left), "bytes", "opaque")]
    assert (items[1].message, items[1].frame, items[1].verdict) == (None, None, None)


def test_many_frames_of_real_clients_in_a_row() -> None:
    requests = [row for row in jsonl("frames/real") if row["name"].endswith("Request")]
    data = b"".join(bytes.fromhex(row["hex"]) for row in requests)
    items = identify(data)
    assert cover(items, data)
    assert [(item.span.name, item.quality) for item in items] == [
        (f"{row['name']} v{row['version']}", "ok") for row in requests
    ]


def test_real_requests_explain_the_responses_behind_them() -> None:
    answers = {(row["name"], row["version"]): row for row in jsonl("frames/real")}
    for row in jsonl("frames/real"):
        name = row["name"].removesuffix("Request") + "Response"
        if not row["name"].endswith("Request") or (name, row["version"]) not in answers:
            continue
        response = bytearray.fromhex(answers[name, row["version"]]["hex"])
        request = bytearray.fromhex(row["hex"])
        request[8:12] = response[4:8] = b"\x7a\x00\x00\x01"
        items = identify(bytes(request + response))
        assert [(item.span.name, item.quality) for item in items] == [
            (f"{row['name']} v{row['version']}", "ok"), (f"{name} v{row['version']}", "ok"),
        ]  # fmt: skip


# ---------------------------------------------------------------- ApiVersions

ASK = bytes.fromhex("00120003 00000007 00026d65 00 026b 0231 00")
REFUSED = bytes.fromhex("00000007 0023 00000001 0012 0000 0002")


def test_a_refused_version_is_answered_in_the_form_of_v0() -> None:
    items = identify(sized(ASK) + sized(REFUSED))
    assert [(item.span.name, item.quality) for item in items] == [
        ("ApiVersionsRequest v3", "ok"), ("ApiVersionsResponse v0", "ok"),
    ]  # fmt: skip
    assert items[1].frame is not None
    assert items[1].frame.note == "the broker does not know ApiVersions v3: it answers error 35 in the form of v0"


def test_an_answer_to_an_unknown_version_is_inferred() -> None:
    items = identify(sized(ASK[:3] + b"\x08" + ASK[4:]) + sized(REFUSED))
    assert [(item.span.name, item.quality) for item in items] == [
        ("ApiVersionsRequest v8", "unsupported"), ("ApiVersionsResponse v0", "inferred"),
    ]  # fmt: skip


def test_its_response_has_header_v0_in_every_version() -> None:
    body = LIBRARY.codec("ApiVersionsResponse", 3).encode({"ApiKeys": [{"ApiKey": 18, "MaxVersion": 4}]})
    items = identify(sized(ASK) + sized(bytes.fromhex("00000007") + body))
    assert [item.span.name for item in items] == ["ApiVersionsRequest v3", "ApiVersionsResponse v3"]
    assert items[1].frame is not None
    assert items[1].frame.header_version == 0


# ---------------------------------------------------------------- bytes with a name


def named(data: bytes, name: str, version: int | None = None) -> list[Item]:
    found = LIBRARY.registry.find(name)
    return identify_as(data, found.definition, found.message, version)


@pytest.mark.parametrize(
    ("data", "name", "version", "expected"),
    [
        (sized(ANSWER), "HeartbeatResponse", 4, [("HeartbeatResponse v4", "ok")]),
        (sized(ANSWER), "HeartbeatResponse", None, [("HeartbeatResponse v4", "ok")]),
        (sized(ANSWER), "Heartbeat", None, [("HeartbeatResponse v4", "ok")]),
        (ANSWER, "HeartbeatResponse", 4, [("HeartbeatResponse v4", "ok")]),
        (ANSWER[5:], "HeartbeatResponse", 4, [("HeartbeatResponse v4", "ok")]),
        (sized(REQUEST), "Heartbeat", None, [("HeartbeatRequest v4", "ok")]),
        (REQUEST[13:], "HeartbeatRequest", 4, [("HeartbeatRequest v4", "ok")]),
        (sized(ANSWER)[:-2], "HeartbeatResponse", 4, [("HeartbeatResponse v4", "truncated")]),
        (sized(ANSWER + b"\1"), "HeartbeatResponse", 4, [("HeartbeatResponse v4", "trailing")]),
        (sized(ANSWER) + sized(answer(8)), "HeartbeatResponse", 4, [("HeartbeatResponse v4", "ok")] * 2),
        (sized(REQUEST) + sized(ANSWER), "Heartbeat", 4,
         [("HeartbeatRequest v4", "ok"), ("HeartbeatResponse v4", "ok")]),
        (sized(answer(7)[:-1]), "HeartbeatResponse", 3, [("HeartbeatResponse v3", "trailing")]),
        (bytes.fromhex("0000 00000001 000161 000162"), "ListGroupsResponse", 0,
         [("ListGroupsResponse v0", "ok")]),
        (bytes.fromhex("0001 00000001 000161 ffffffff"), "ConsumerProtocolSubscription", 1,
         [("ConsumerProtocolSubscription v1", "malformed")]),
        (sized(REQUEST), "FetchRequest", None, [("HeartbeatRequest v4", "ok")]),  # the header knows better
    ],
)  # fmt: skip
def test_bytes_that_are_said_to_be_a_message(
    data: bytes, name: str, version: int | None, expected: list[tuple[str, str]]
) -> None:
    items = named(data, name, version)
    assert [(item.span.name, item.quality) for item in items] == expected
    assert cover(items, data)


def test_versions_that_fit_alike_leave_it_unsure() -> None:
    row = next(row for row in jsonl("frames/real") if (row["name"], row["version"]) == ("SyncGroupResponse", 3))
    (item,) = named(bytes.fromhex(row["hex"]), "SyncGroupResponse")
    assert (item.quality, item.sure) == ("inferred", False)
    assert [reading.title for reading in item.readings] == ["SyncGroupResponse v5", "SyncGroupResponse v1-3"]


def test_only_readings_that_fit_are_named_when_some_do() -> None:
    (item,) = named(sized(ANSWER), "Heartbeat")
    assert [reading.title for reading in item.readings] == ["HeartbeatResponse v4"]


def test_a_version_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"^no version 9 of HeartbeatResponse \(it has 0-4\)$"):
        named(ANSWER, "HeartbeatResponse", 9)


# ---------------------------------------------------------------- not Kafka


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"GET / HTTP/1.1\r\nHost: kafka:9092\r\n\r\n", "HTTP request"),
        (bytes.fromhex("15030300020246"), "TLS alert"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (b"ruok", "ZooKeeper command"),
    ],
)
def test_another_protocol_gets_a_verdict(data: bytes, what: str) -> None:
    (item,) = identify(data)
    assert item.verdict is not None
    assert (item.verdict.what, item.quality, item.span.name) == (what, "opaque", what)
    assert (item.start, item.end, item.message, item.frame) == (0, len(data), None, None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_bytes_are_opaque(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        data = rng.randbytes(rng.randrange(24, 90))
        items = identify(data)
        assert cover(items, data)
        assert {item.quality for item in items} == {"opaque"}, data.hex()


@pytest.mark.slow
def test_damaged_frames_raise_nothing_and_are_covered() -> None:
    rng = random.Random(3)
    for row in rng.sample(jsonl("frames/real"), 16):
        data = bytes.fromhex(row["hex"])
        for _ in range(3):
            raw = damaged(data, rng)[: rng.randrange(1, len(data) + 1)]
            assert cover(identify(raw), raw), raw.hex()
            assert cover(named(raw, row["name"], row["version"]), raw), raw.hex()
