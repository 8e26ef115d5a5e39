"""JSON straight from the bytes: what json.dumps says of the decoded values; what decoding refuses it refuses."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from vectors import damaged, each, jsonl, names

import kwire
from kwire import decode_frame
from kwire.codec.library import builtin_library
from kwire.codec.plan import compile_plan
from kwire.codec.values import Codec
from kwire.errors import DecodeError
from kwire.render.jsonform import to_jsonable
from kwire.schema.registry import builtin

BEFORE, BEHIND = b"\xff\x00\x80", b"\x01\xff"  # bytes that belong to something else


def _codec(name: str, version: int) -> Codec:
    return builtin_library().codec(name, version)


def _dumped(name: str, version: int, data: bytes) -> str:
    """The decoded values as json.dumps writes them."""
    return json.dumps(to_jsonable(_codec(name, version).decode_at(data, 0)[0]))


@pytest.mark.parametrize("name", names())
def test_vectors_are_written_as_json_dumps_writes_their_values(name: str) -> None:
    for version, data in each(name):
        text, end = _codec(name, version).json_at(data, 0)
        assert (text, end) == (_dumped(name, version, data), len(data)), version
        assert text.isascii()
        again = _codec(name, version).json_at(BEFORE + data + BEHIND, len(BEFORE))
        assert again == (text, len(BEFORE) + len(data)), version


def test_bodies_of_real_frames() -> None:
    seen = 0
    for row in jsonl("frames/real"):
        name, version, data = row["name"], row["version"], bytes.fromhex(row["hex"])
        if name.endswith("Request"):
            frame = decode_frame(data)
        else:
            frame = decode_frame(data, api=name.removesuffix("Response"), version=version)
        body = next(span for span in frame.span.children if span.type == "message")
        codec = _codec(name, version)
        text, end = codec.json_at(data, body.start)
        assert text == json.dumps(to_jsonable(codec.decode_at(data, body.start)[0])), name
        assert end == body.end
        seen += 1
    assert seen > 150


def _said(read: Callable[[bytes, int], tuple[Any, int]], data: bytes) -> tuple[str, int]:
    """The JSON and where it ends; of what is refused why, and -1."""
    try:
        found, end = read(data, 0)
    except DecodeError as error:
        return str(error), -1
    return found if isinstance(found, str) else json.dumps(to_jsonable(found)), end


@pytest.mark.parametrize("name", names())
def test_damaged_messages_are_read_or_refused_as_decode_at_does(name: str) -> None:
    rng = random.Random(name)
    for version, data in each(name):
        codec = _codec(name, version)
        for broken in (damaged(data, rng), damaged(data, rng)):
            assert _said(codec.json_at, broken) == _said(codec.decode_at, broken), (version, broken.hex())


@pytest.mark.parametrize(
    ("name", "version", "message", "expected"),
    [
        ("HeartbeatRequest", 4, {"GroupId": 'a"b\\c\n\x1b[31m\u202e', "GroupInstanceId": None},
         '{"GroupId": "a\\"b\\\\c\\n\\u001b[31m\\u202e", "GenerationId": 0, "MemberId": "", "GroupInstanceId": null}'),
        ("HeartbeatResponse", 4, {"ErrorCode": 27, "_tagged": {5: b"\0\xff", 300: b""}},
         '{"ThrottleTimeMs": 0, "ErrorCode": 27, "_tagged": {"5": "AP8=", "300": ""}}'),
        ("HeartbeatResponse", 4, {"_tagged": {5: b""}}, '{"ThrottleTimeMs": 0, "ErrorCode": 0, "_tagged": {"5": ""}}'),
        ("DescribeGroupsRequest", 5, {"Groups": ["{x}", "", "ü"]},
         '{"Groups": ["{x}", "", "\\u00fc"], "IncludeAuthorizedOperations": false}'),
        ("SyncGroupResponse", 5, {"Assignment": b"\0\1\2", "ProtocolType": "consumer"},
         '{"ThrottleTimeMs": 0, "ErrorCode": 0, "ProtocolType": "consumer", "ProtocolName": null, '
         '"Assignment": "AAEC"}'),
        ("MetadataRequest", 12, {"Topics": None, "AllowAutoTopicCreation": True},
         '{"Topics": null, "AllowAutoTopicCreation": true, "IncludeTopicAuthorizedOperations": false}'),
        ("MetadataRequest", 12, {"Topics": []},
         '{"Topics": [], "AllowAutoTopicCreation": true, "IncludeTopicAuthorizedOperations": false}'),
    ],
)  # fmt: skip
def test_what_the_text_is(name: str, version: int, message: dict[str, Any], expected: str) -> None:
    data = kwire.encode(name, version, message)
    assert _codec(name, version).json_at(data, 0) == (expected, len(data))


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")])
def test_floats_are_written_as_json_dumps_writes_them(value: float) -> None:
    entries = {"Entries": [{"Entity": [], "Ops": [{"Key": "k", "Value": value, "Remove": True}]}]}
    data = kwire.encode("AlterClientQuotasRequest", 1, entries)
    text, _ = _codec("AlterClientQuotasRequest", 1).json_at(data, 0)
    assert f'"Value": {json.dumps(value)}, "Remove": true' in text


def test_uuids_come_in_kafkas_form() -> None:
    ident = "AAECAwQFBgcICQoLDA0ODw"
    raw = base64.urlsafe_b64decode(ident + "==")
    data = b"\x02" + raw + b"\0\0" + b"\1\0\0"
    text, end = _codec("MetadataRequest", 12).json_at(data, 0)
    assert json.loads(text)["Topics"] == [{"TopicId": ident, "Name": None}]
    assert end == len(data)


@pytest.mark.parametrize("version", [3, 4])
def test_text_that_is_no_utf8_is_escaped_like_decoded_text(version: int) -> None:
    data = kwire.encode("HeartbeatRequest", version, {"GroupId": "g\udcff\udc80", "MemberId": "m"})
    text, end = _codec("HeartbeatRequest", version).json_at(data, 0)
    assert text.startswith('{"GroupId": "g\\udcff\\udc80", ')
    assert (text, end) == (_dumped("HeartbeatRequest", version, data), len(data))


@pytest.mark.parametrize(
    ("tags", "order"),
    [
        ("02 0900 00020261", ["_tagged", "ClusterId"]),
        ("02 00020261 0900", ["ClusterId", "_tagged"]),
        ("03 0900 00020261 0801ff", ["_tagged", "ClusterId"]),
        ("02 00020261 00020262", ["ClusterId"]),
        ("02 0900 0901ff", ["_tagged"]),
    ],
    ids=["an unknown one before", "behind", "around", "the same twice", "the same unknown one twice"],
)
def test_tagged_fields_come_in_the_order_of_the_values(tags: str, order: list[str]) -> None:
    data = kwire.encode("FetchRequest", 17, {})[:-1] + bytes.fromhex(tags)
    text, end = _codec("FetchRequest", 17).json_at(data, 0)
    assert (text, end) == (_dumped("FetchRequest", 17, data), len(data))
    assert [name for name, _ in json.loads(text, object_pairs_hook=list)][-len(order) - 1 :] == ["RackId", *order]


def test_a_message_that_goes_beyond_the_bytes_is_refused() -> None:
    codec = Codec(compile_plan(builtin().message("HeartbeatRequest"), 0))
    with pytest.raises(DecodeError, match="HeartbeatRequest v0: GroupId: needs 5 bytes at offset 3"):
        codec.json_at(b"\xff" + b"\0\5ab", 1)
