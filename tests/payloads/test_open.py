"""Which field holds what: records, internal topics, envelopes, principals; the outer message is never lost to it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from spans import gap
from vectors import damaged, jsonl

import kwire
from kwire.codec.annotate import annotate
from kwire.codec.frames import decode_frame
from kwire.codec.library import builtin_library
from kwire.codec.secrets import Withheld, conceal
from kwire.codec.span import Span, fields
from kwire.payloads.open import OPENERS, open_payloads
from kwire.records import build, read_records

METADATA_ID = UUID(int=1)


def vector(name: str, version: int = 0) -> bytes:
    """What lies in a log or a field, of the first official vector of that message."""
    rows = (row for row in jsonl("vectors/data") if (row["name"], row["version"]) == (name, version))
    return bytes.fromhex(next(rows)["wire"])


def real(*names: str) -> list[dict[str, Any]]:
    return [row for row in jsonl("frames/real") if row["name"] in names]


def find(span: Span, name: str) -> Iterator[Span]:
    return (one for one in span.below() if one.name == name)


def closed(message: str, version: int, body: dict[str, Any]) -> tuple[Span, bytes]:
    raw = kwire.encode(message, version, body)
    return annotate(builtin_library().plan(message, version), raw), raw


def opened(message: str, version: int, body: dict[str, Any]) -> Span:
    span, raw = closed(message, version, body)
    tree = open_payloads(span, raw, message)
    assert gap([tree], 0, len(raw)) is None
    return tree


# ---------------------------------------------------------------- records


@pytest.mark.parametrize(
    "row",
    real("ProduceRequest", "FetchResponse", "ShareFetchResponse"),
    ids=lambda row: f"{row['capture']} {row['name']} v{row['version']}",
)
def test_real_records_are_opened(row: dict[str, Any]) -> None:
    raw, name = bytes.fromhex(row["hex"]), row["name"]
    asked = {} if name.endswith("Request") else {"api": name.removesuffix("Response"), "version": row["version"]}
    frame = decode_frame(raw, **asked)
    tree = open_payloads(frame.span, raw, name)
    assert gap([tree], 0, len(raw)) is None
    assert [span.note for span in tree.below() if span.note] == []
    closed_fields = [span for span in frame.span.below() if span.name == "Records" and span.slot]
    opened_fields = [span for span in tree.below() if span.name == "Records" and span.slot]
    for before, after in zip(closed_fields, opened_fields, strict=True):
        assert after.value == before.value
        batches = read_records(before.value) if isinstance(before.value, bytes) else []
        assert [span.type for span in after.children] == ["batch"] * len(batches)
        values = [span.value for span in after.below() if span.name == "Value" and span.type == "bytes (varint)"]
        headers = [value for batch in batches for record in batch.records for _, value in record.headers]
        assert len(values) == sum(len(batch.records) for batch in batches) + len(headers)
        assert set(values) == {record.value for batch in batches for record in batch.records} | set(headers)


def test_the_real_frames_do_hold_records() -> None:
    rows = real("ProduceRequest", "FetchResponse", "ShareFetchResponse")
    assert sum("AAAA" in json.dumps(row["body"]) for row in rows) >= 7


BATCH = build([(b"k", b"v")], compression="lz4")


@pytest.mark.parametrize("records", [None, b""])
def test_no_records_are_left_alone(records: bytes | None) -> None:
    body = {"TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": records}]}]}
    span, raw = closed("ProduceRequest", 9, body)
    assert open_payloads(span, raw, "ProduceRequest") is span


def test_a_message_without_such_fields_is_left_alone() -> None:
    span, raw = closed("HeartbeatRequest", 4, {"GroupId": "g"})
    assert open_payloads(span, raw, "HeartbeatRequest") is span


def test_fields_are_those_of_the_named_message() -> None:
    body = {"TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": BATCH}]}]}
    span, raw = closed("ProduceRequest", 9, body)
    assert open_payloads(span, raw, "FetchRequest") is span
    assert next(find(open_payloads(span, raw, "ProduceRequest"), "Records")).children[0].type == "batch"


def test_every_opener_is_of_a_field_that_exists() -> None:
    library = builtin_library()
    for message, field in OPENERS:
        types = {found.type for _, found in library.message(message).walk() if found.name == field}
        assert types in ({"bytes"}, {"records"}), f"{message}.{field}"


# ---------------------------------------------------------------- internal topics


GROUP_KEY, OFFSET_KEY = vector("GroupMetadataKey"), vector("OffsetCommitKey")
OFFSET = vector("OffsetCommitValue", 3)
TOPIC = vector("TopicRecord")


def produced(name: str, records: bytes) -> Span:
    body = {"TopicData": [{"Name": name, "PartitionData": [{"Index": 0, "Records": records}]}]}
    return opened("ProduceRequest", 9, body)


def fetched(topic: dict[str, Any], version: int, records: bytes) -> Span:
    body = {"Responses": [topic | {"Partitions": [{"PartitionIndex": 0, "Records": records}]}]}
    return opened("FetchResponse", version, body)


def snapshot(records: bytes, position: int = 0) -> Span:
    partition = {"Index": 0, "SnapshotId": {"EndOffset": 9, "Epoch": 1}, "Position": position}
    topic = {"Name": "__cluster_metadata", "Partitions": [partition | {"UnalignedRecords": records}]}
    return opened("FetchSnapshotResponse", 0, {"Topics": [topic]})


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (produced("__consumer_offsets", build([(OFFSET_KEY, OFFSET)], compression="zstd")), "OffsetCommitValue v3"),
        (produced("__consumer_offsets", build([(OFFSET_KEY, None)])), "tombstone"),
        (fetched({"Topic": "__cluster_metadata"}, 12, build([(None, TOPIC)])), "TopicRecord v0"),
        (fetched({"TopicId": METADATA_ID}, 16, build([(None, TOPIC)])), "TopicRecord v0"),
        (snapshot(build([(None, TOPIC)])), "TopicRecord v0"),
        (produced("orders", build([(OFFSET_KEY, OFFSET)])), None),
        (fetched({"TopicId": UUID(int=2)}, 16, build([(None, TOPIC)])), None),
    ],
)
def test_records_of_internal_topics_are_opened(tree: Span, text: str | None) -> None:
    assert [span.text for span in find(tree, "Value")] == [text]


def test_a_group_s_subscriptions_inside_the_offsets_topic_are_opened_too() -> None:
    subscription = b"\0\3" + kwire.encode("ConsumerProtocolSubscription", 3, {"Topics": ["orders"]})
    member = {"MemberId": "m", "Subscription": subscription, "Assignment": b"garbage"}
    value = b"\0\3" + kwire.encode("GroupMetadataValue", 3, {"ProtocolType": "consumer", "Members": [member]})
    for compression in ("none", "gzip"):
        tree = produced("__consumer_offsets", build([(GROUP_KEY, value)], compression=compression))
        assert next(find(tree, "Subscription")).text == "ConsumerProtocolSubscription v3"
        assert "not ConsumerProtocolAssignment v3" in str(next(find(tree, "Assignment")).note)


def test_a_piece_of_a_snapshot_from_its_middle_stays_bytes() -> None:
    piece = build([(None, TOPIC)] * 9)[50:]
    field = next(find(snapshot(piece, 50), "UnalignedRecords"))
    assert (field.value, field.children) == (piece, ())
    assert field.note == "a piece of a snapshot that does not begin with a batch"


def test_a_broken_record_that_may_hold_a_secret_is_withheld() -> None:
    broken = vector("UserScramCredentialRecord") + b"x"
    tree = fetched({"TopicId": METADATA_ID}, 16, build([(None, broken), (None, TOPIC + b"x")]))
    secret, plain = find(tree, "Value")
    assert (secret.note, secret.secret) == ("not UserScramCredentialRecord v0", True)
    assert (plain.note, plain.secret) == ("not TopicRecord v0", False)
    hidden = next(find(conceal(tree, builtin_library().message("FetchResponse")), "Value"))
    assert hidden.value == Withheld(len(broken))


# ---------------------------------------------------------------- envelopes


def enveloped(request: bytes, principal: bytes | None = None) -> Span:
    body = {"RequestData": request, "RequestPrincipal": principal, "ClientHostAddress": b"\x7f\0\0\1"}
    return opened("EnvelopeRequest", 0, body)


HEADER = {"RequestApiKey": 12, "RequestApiVersion": 4, "CorrelationId": 7, "ClientId": "admin"}
HEARTBEAT = kwire.encode("RequestHeader", 2, HEADER) + kwire.encode("HeartbeatRequest", 4, {"GroupId": "billing"})


def test_the_request_in_an_envelope_is_opened_in_place() -> None:
    field = next(find(enveloped(HEARTBEAT), "RequestData"))
    assert (field.text, field.note) == ("HeartbeatRequest v4", None)
    assert next(find(field, "GroupId")).value == "billing"
    assert fields(next(child for child in field.children if child.type == "header"))["client_id"] == "admin"


@pytest.mark.parametrize("request_data", [b"x", b"\x03\xe7" + HEARTBEAT[2:], HEARTBEAT[:-3], HEARTBEAT + b"x"])
def test_what_is_no_request_in_an_envelope_stays_one_secret(request_data: bytes) -> None:
    tree = enveloped(request_data)
    field = next(find(tree, "RequestData"))
    assert (field.value, field.children, field.secret) == (request_data, (), True)
    assert str(field.note).startswith("not a request: ")
    hidden = next(find(conceal(tree, builtin_library().message("EnvelopeRequest")), "RequestData"))
    assert hidden.value == Withheld(len(request_data))


def test_the_principal() -> None:
    field = next(find(enveloped(HEARTBEAT, vector("DefaultPrincipalData")), "RequestPrincipal"))
    assert (field.text, field.note) == ("DefaultPrincipalData v0", None)
    own = next(find(enveloped(HEARTBEAT, b"a builder of one's own"), "RequestPrincipal"))
    assert (own.value, own.children) == (b"a builder of one's own", ())
    assert own.note == "DefaultPrincipalData has versions 0, not 24864"


# ---------------------------------------------------------------- whatever is inside


CASES = [
    ("ProduceRequest", 9, {"TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": BATCH * 2}]}]}),
    ("SyncGroupResponse", 5, {"ProtocolType": "consumer", "Assignment": b"\0\3" + bytes(9)}),
    ("SaslAuthenticateRequest", 2, {"AuthBytes": b"c=biws,r=abc,p=dHzb"}),
    ("EnvelopeRequest", 0, {"RequestData": HEARTBEAT, "ClientHostAddress": b"\x7f\0\0\1"}),
    (
        "ProduceRequest",
        9,
        {
            "TopicData": [
                {
                    "Name": "__consumer_offsets",
                    "PartitionData": [{"Index": 0, "Records": build([(OFFSET_KEY, OFFSET)] * 3)}],
                }
            ]
        },
    ),
]


@pytest.mark.parametrize(("message", "version", "body"), CASES, ids=[f"{n} {case[0]}" for n, case in enumerate(CASES)])
def test_mutations_and_prefixes_never_lose_the_outer_message(message: str, version: int, body: dict[str, Any]) -> None:
    raw = kwire.encode(message, version, body)
    plan = builtin_library().plan(message, version)
    draw = random.Random(message)
    inputs = [raw[:size] for size in range(len(raw))]
    inputs += [damaged(raw, draw) for _ in range(500)]
    for data in inputs:
        before = annotate(plan, data)
        after = open_payloads(before, data, message)
        assert gap([after], 0, len(data)) is None
        outer = [(span.name, span.start, span.end) for span in before.below()]
        inner = {(span.name, span.start, span.end) for span in after.below()}
        assert inner.issuperset(outer)
