"""Every official vector and every real frame: what the official classes wrote, we read and write byte for byte.

Both directions have a converter of their own, neither through the other: our values to the official JSON, and the
official JSON to what from_json reads.
"""

# mypy: disable-error-code="misc"

from __future__ import annotations

import base64
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from vectors import FIXTURES, damaged, jsonl

from kwire.codec.annotate import annotate
from kwire.codec.frames import Frame, decode_frame
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.span import Span, plain
from kwire.errors import DecodeError
from kwire.render.jsonform import from_json
from kwire.schema.errorcodes import errors
from kwire.schema.model import snake
from kwire.schema.registry import builtin

Row = dict[str, Any]


@cache
def by_message(name: str) -> dict[str, list[Row]]:
    found = defaultdict(list)
    for row in jsonl(f"vectors/{name}"):
        found[row["name"]].append(row)
    return found


BODIES = [row for name in ("requests", "responses", "data") for row in by_message(name).values()]
messages = pytest.mark.parametrize("vectors", BODIES, ids=lambda vectors: vectors[0]["name"])


def official(value: Any) -> Any:
    """Our value as the official JsonConverter gives it: names with a small first letter, base64, 22-character uuids."""
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: official(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [official(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def capitals(value: Any) -> Any:
    """The official JSON under our names."""
    if isinstance(value, dict):
        return {name[0].upper() + name[1:]: capitals(inner) for name, inner in value.items()}
    return [capitals(inner) for inner in value] if isinstance(value, list) else value


def same(value: Any) -> str:
    """Text that tells 1 from true and from 1.0, and 0.0 from -0.0; == does not."""
    return json.dumps(value, sort_keys=True)


# ---------------------------------------------------------------- bodies


@messages
def test_decoding_gives_the_official_reading(vectors: list[Row]) -> None:
    for row in vectors:
        message = builtin_library().codec(row["name"], row["version"]).decode(bytes.fromhex(row["hex"]))
        assert same(official(message)) == same(row["json"]), (row["version"], row["style"])


@messages
def test_encoding_what_was_decoded_gives_the_same_bytes(vectors: list[Row]) -> None:
    for row in vectors:
        codec = builtin_library().codec(row["name"], row["version"])
        assert codec.encode(codec.decode(bytes.fromhex(row["hex"]))).hex() == row["hex"], (row["version"], row["style"])


@messages
def test_encoding_the_official_json_gives_the_official_bytes(vectors: list[Row]) -> None:
    for row in vectors:
        codec = builtin_library().codec(row["name"], row["version"])
        message = from_json(codec.plan, json.dumps(capitals(row["json"])))
        assert codec.encode(message).hex() == row["hex"], (row["version"], row["style"])


@messages
def test_what_is_not_given_is_the_official_default(vectors: list[Row]) -> None:
    for row in [row for row in vectors if row["style"] == "default"]:
        assert builtin_library().codec(row["name"], row["version"]).encode({}).hex() == row["hex"], row["version"]


@messages
def test_the_span_tree_holds_what_decoding_gives(vectors: list[Row]) -> None:
    for row in vectors:
        codec = builtin_library().codec(row["name"], row["version"])
        data = bytes.fromhex(row["hex"])
        tree = annotate(codec.plan, data)
        assert tree.broken() is None
        assert (tree.start, tree.end) == (0, len(data))
        assert plain(tree) == codec.decode(data), (row["version"], row["style"])


@messages
def test_damage_is_refused_in_the_words_of_the_span_tree_or_read_as_it_reads_it(vectors: list[Row]) -> None:
    rng = Random(vectors[0]["name"])
    for row in [row for row in vectors if row["hex"]][-9:]:
        codec = builtin_library().codec(row["name"], row["version"])
        for data in [damaged(bytes.fromhex(row["hex"]), rng) for _ in range(10)]:
            tree = annotate(codec.plan, data)
            broken = tree.broken()
            if broken is None:
                assert repr(codec.decode(data)) == repr(plain(tree))
                continue
            with pytest.raises(DecodeError) as caught:
                codec.decode(data)
            error = caught.value
            assert (error.path, error.offset, error.reason) == (broken[0], broken[1].start, broken[1].note), data.hex()


def test_fields_come_in_the_order_of_the_wire() -> None:
    body = {"GroupId": "g", "GenerationId": 3, "MemberId": "m", "GroupInstanceId": None}
    codec = builtin_library().codec("HeartbeatRequest", 4)
    assert list(codec.decode(codec.encode(dict(reversed(body.items()))))) == list(body)


# ---------------------------------------------------------------- completeness


@pytest.mark.parametrize(("name", "index"), [("requests", 0), ("responses", 1)])
def test_vectors_cover_every_version_of_every_api(name: str, index: int) -> None:
    ours = {(api.key, version) for api in builtin().apis() for version in api.messages[index].versions.each()}
    assert {(row["apiKey"], row["version"]) for row in jsonl(f"vectors/{name}")} == ours
    assert len(ours) == 368


def test_the_keys_are_0_to_94() -> None:
    assert builtin().keys() == list(range(95))
    assert {row["id"] for row in jsonl("vectors/apis")} == set(range(95))


def test_every_official_message_beside_the_apis_is_known_in_the_same_versions() -> None:
    official = {(row["name"], row["version"]) for row in jsonl("vectors/data")}
    names = {name for name, _ in official}
    # ours alone: messages whose official classes have no JSON form, or that have no official definition
    ours = {(d.name, version) for d in builtin().data() for version in d.messages[0].versions.each() if d.name in names}
    assert ours == official
    assert len(ours) == 127


APIS = [row for row in jsonl("vectors/apis") if not row["removed"]]


@pytest.mark.parametrize("row", APIS, ids=lambda row: f"{row['name']} {row['jar']}")
def test_header_versions_equal_the_official_ones(row: Row) -> None:
    key = row["id"]
    request, response = builtin().api(key).messages
    asked = {v: request_header_version(key, int(v), request) for v in row["requestHeaderVersion"]}
    answered = {v: response_header_version(key, int(v), response) for v in row["responseHeaderVersion"]}
    assert asked == row["requestHeaderVersion"]
    assert answered == row["responseHeaderVersion"]


@pytest.mark.parametrize("field", ["requestHeaderVersion", "responseHeaderVersion"])
def test_header_versions_are_checked_for_every_version(field: str) -> None:
    checked = {(row["id"], int(version)) for row in APIS for version in row[field]}
    assert checked == {(api.key, version) for api in builtin().apis() for version in api.messages[0].versions.each()}


# ---------------------------------------------------------------- frames


def frame_of(row: Row) -> Frame:
    data = bytes.fromhex(row["hex"])
    if row["kind"] == "request":
        return decode_frame(data, size=False)
    return decode_frame(data, api=row["apiKey"], version=row["apiVersion"], size=False)


def header_fields(row: Row) -> Row:
    """The official reading of a header under our names, unknown tagged fields included."""
    header = {snake(name): value for name, value in row["header"].items()}
    tags = {tag["tag"]: bytes.fromhex(tag["hex"]) for tag in row.get("headerUnknownTags", [])}
    return header | ({"_tagged": tags} if tags else {})


@cache
def frames_by_key() -> dict[int, list[Row]]:
    found = defaultdict(list)
    for row in jsonl("vectors/frames"):
        found[row["apiKey"]].append(row)
    return found


@pytest.mark.parametrize("key", range(95))
def test_frames_have_the_official_header_and_body(key: int) -> None:
    for row in frames_by_key()[key]:
        frame = frame_of(row)
        header = frame.span.children[0]
        assert frame.header == header_fields(row)
        assert (header.start, header.end) == (0, row["headerBytes"])
        assert (frame.kind, frame.api_key, frame.header_version) == (row["kind"], key, row["headerVersion"])
        assert frame.correlation_id == row["header"]["correlationId"]
        assert frame.client_id == row["header"].get("clientId")
        if not row.get("unsupportedApiVersions"):
            assert same(official(frame.body)) == same(row["body"])
            assert (frame.quality, frame.name) == ("ok", f"{row['name']} v{row['bodyVersion']}")


def test_frames_cover_every_version() -> None:
    found = {kind: {(r["apiKey"], r["apiVersion"]) for r in jsonl("vectors/frames") if r["kind"] == kind}
             for kind in ("request", "response")}  # fmt: skip
    assert {kind: len(pairs) for kind, pairs in found.items()} == {"request": 369, "response": 368}
    assert found["request"] - found["response"] == {(18, 99)}


@pytest.mark.parametrize("version", range(1, 6))
def test_an_answer_to_an_unknown_api_versions_version_is_read_as_v0(version: int) -> None:
    (row,) = (row for row in frames_by_key()[18] if row.get("fallback") and row["apiVersion"] == version)
    frame = frame_of(row)
    assert frame.name == "ApiVersionsResponse v0"
    assert frame.note == f"the broker does not know ApiVersions v{version}: it answers error 35 in the form of v0"
    assert frame.body == {"ErrorCode": 35, "ApiKeys": [{"ApiKey": 18, "MinVersion": 0, "MaxVersion": 4}]}


def test_a_request_of_an_unknown_api_versions_version_has_a_header_and_no_body() -> None:
    (row,) = (row for row in frames_by_key()[18] if row.get("unsupportedApiVersions"))
    frame = frame_of(row)
    left = frame.span.children[-1]
    assert (frame.name, frame.quality, frame.header_version) == ("ApiVersionsRequest v99", "unsupported", 2)
    assert frame.note == "ApiVersionsRequest v99: ApiVersionsRequest has versions 0-5"
    assert frame.body == {}
    assert left.end - left.start == row["remaining"]


# ---------------------------------------------------------------- frames of real clients

real = pytest.mark.parametrize(
    "row", jsonl("frames/real"), ids=lambda row: f"{row['capture']} {row['name']} v{row['version']}"
)


def real_frame(data: bytes, name: str, version: int) -> Frame:
    if name.endswith("Request"):
        return decode_frame(data)
    return decode_frame(data, api=name.removesuffix("Response"), version=version)


@real
def test_real_frames_have_the_official_header_and_body(row: Row) -> None:
    data = bytes.fromhex(row["hex"])
    frame = real_frame(data, row["name"], row["version"])
    assert (frame.name, frame.header_version) == (f"{row['name']} v{row['version']}", row["header_version"])
    assert (frame.quality, frame.note) == ("ok", None)
    assert frame.span.children[0].value == len(data) - 4
    assert frame.header == header_fields(row)
    assert same(official(frame.body)) == same(row["body"])


@real
def test_headers_and_bodies_of_real_frames_encode_to_the_same_bytes(row: Row) -> None:
    name = "RequestHeader" if row["name"].endswith("Request") else "ResponseHeader"
    header = builtin_library().codec(name, row["header_version"])
    body = builtin_library().codec(row["name"], row["version"])
    data = bytes.fromhex(row["hex"])
    said, start = header.decode_at(data, 4)
    assert header.encode(said).hex() == data[4:start].hex()
    assert body.encode(body.decode(data[start:])).hex() == data[start:].hex()


def error_codes(span: Span) -> set[int]:
    """The error codes anywhere in a tree, without 0."""
    return {child.value for child in span.below() if child.slot and child.slot.field.error and child.value}


@pytest.mark.parametrize("path", sorted((FIXTURES / "frames").glob("*.bin")), ids=lambda path: path.stem)
def test_frame_files_hold_what_their_names_say(path: Path) -> None:
    name, version, *error = path.stem.split(".")
    frame = real_frame(path.read_bytes(), name, int(version[1:]))
    assert (frame.name, frame.quality) == (f"{name} {version}", "ok")
    assert [errors[code].name.lower() for code in sorted(error_codes(frame.span))] == error
