"""Values as JSON and back: what stands for bytes and uuids, and what a wrong value is told."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from vectors import jsonl

from kwire.codec.library import builtin_library
from kwire.codec.secrets import Withheld
from kwire.errors import EncodeError
from kwire.render.jsonform import dumps, from_json, to_jsonable


@pytest.mark.parametrize(
    ("value", "jsonable"),
    [
        (None, None),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (0.5, 0.5),
        ("x\x1b", "x\x1b"),
        (b"\x00\xff", "AP8="),
        (memoryview(b"ab"), "YWI="),
        (UUID(int=1), "AAAAAAAAAAAAAAAAAAAAAQ"),
        ([b"", {"Key": b"a"}], ["", {"Key": "YQ=="}]),
        ({"_tagged": {7: b"a"}}, {"_tagged": {"7": "YQ=="}}),
        (Withheld(3), "withheld (3 bytes; --show-secrets)"),
    ],
)
def test_plain_values(value: object, jsonable: object) -> None:
    assert to_jsonable(value) == jsonable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("über", '"über"'),
        ("a\x1b\u202e\n", '"a\\u001b\\u202e\\n"'),
        ("\udc80", '"\\udc80"'),
        ({"a": [1]}, '{\n  "a": [\n    1\n  ]\n}'),
    ],
)
def test_text_escapes_what_could_act(value: object, text: str) -> None:
    assert dumps(value) == text
    assert json.loads(dumps(value)) == value


def test_text_in_one_line() -> None:
    assert dumps({"a": [1, b"b"]}, indent=None) == '{"a": [1, "Yg=="]}'


def test_every_real_body_comes_back_from_its_json() -> None:
    library = builtin_library()
    for row in (*jsonl("vectors/requests")[::5], *jsonl("vectors/responses")[::5]):
        codec = library.codec(row["name"], row["version"])
        message = codec.decode(bytes.fromhex(row["hex"]))
        assert from_json(codec.plan, dumps(message)) == message


@pytest.mark.parametrize(
    ("name", "version", "text", "path", "reason"),
    [
        ("HeartbeatRequest", 4, "", "", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("HeartbeatRequest", 4, "[1]", "", "needs an object with fields, has [1]"),
        (
            "HeartbeatRequest",
            4,
            '{"Group": "g"}',
            "Group",
            "no such field in HeartbeatRequest v4; did you mean GroupId?",
        ),
        (
            "HeartbeatRequest",
            2,
            '{"GroupInstanceId": "i"}',
            "GroupInstanceId",
            "not in v2: HeartbeatRequest has it in v3-4",
        ),
        ("HeartbeatRequest", 4, '{"GroupId": 1}', "GroupId", "needs a string, has the number 1"),
        ("HeartbeatRequest", 4, '{"GroupId": null}', "GroupId", "is null, and this field must not be"),
        ("HeartbeatRequest", 4, '{"GenerationId": "3"}', "GenerationId", "needs int32, has the string '3'"),
        ("HeartbeatRequest", 4, '{"GenerationId": true}', "GenerationId", "needs int32, has true"),
        (
            "HeartbeatRequest",
            4,
            '{"GenerationId": 2147483648}',
            "GenerationId",
            "2,147,483,648 is out of range for int32 (-2,147,483,648 to 2,147,483,647)",
        ),
        ("MetadataRequest", 12, '{"Topics": {}}', "Topics", "needs a list, has {}"),
        ("MetadataRequest", 12, '{"Topics": [1]}', "Topics[0]", "needs an object with fields, has 1"),
        (
            "MetadataRequest",
            12,
            '{"Topics": [{}, {"TopicId": "x"}]}',
            "Topics[1].TopicId",
            "needs a uuid of 22 characters, has 'x'",
        ),
        ("MetadataRequest", 12, '{"Topics": [{"TopicId": 1}]}', "Topics[0].TopicId", "needs a uuid, has the number 1"),
        ("SyncGroupResponse", 5, '{"Assignment": [1]}', "Assignment", "needs base64 text, has [1]"),
        ("SyncGroupResponse", 5, '{"Assignment": "A"}', "Assignment", "not base64: "),
        ("SyncGroupResponse", 5, '{"_tagged": {"x": ""}}', "_tagged", "x is not a tag number"),
        ("SyncGroupResponse", 5, '{"_tagged": {"4294967296": ""}}', "_tagged", "4294967296 is not a tag number"),
        ("SyncGroupResponse", 5, '{"_tagged": {"7": "A"}}', "_tagged[7]", "not base64: "),
        ("SyncGroupResponse", 3, '{"_tagged": {}}', "_tagged", "no such field in SyncGroupResponse v3"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(name: str, version: int, text: str, path: str, reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        from_json(builtin_library().plan(name, version), text)
    assert caught.value.path == path
    assert caught.value.reason.startswith(reason)


def test_unknown_tags_come_back() -> None:
    plan = builtin_library().plan("SyncGroupResponse", 5)
    message: dict[str, Any] = from_json(plan, '{"_tagged": {"7": "YWI="}}')
    assert message == {"_tagged": {7: b"ab"}}


def test_nesting_without_end_is_no_json() -> None:
    with pytest.raises(EncodeError, match="not JSON"):
        from_json(builtin_library().plan("HeartbeatRequest", 4), "[" * 200_000)
