"""Records of internal topics: every official key and value, in batches of every kind, opened by its schema."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack
from typing import Any

import pytest
from spans import gap
from vectors import jsonl

import kwire
from kwire.codec.library import builtin_library
from kwire.codec.secrets import METADATA, SECRET_RECORDS, may_hold_secrets
from kwire.codec.span import Span, fields
from kwire.payloads.topics import BY_NAME, open_batches, open_strays
from kwire.records import build
from kwire.records.annotate import annotate_records
from kwire.schema.registry import builtin

OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
Row = dict[str, Any]

ROWS = jsonl("vectors/data")
RECORDS = [row for row in ROWS if row["kind"] == "metadata" and not row["name"].startswith("Remote")]


def topic_of(name: str) -> str:
    if name.startswith("Transaction"):
        return TRANSACTIONS
    return SHARES if name.startswith(("ShareSnapshot", "ShareUpdate")) else OFFSETS


def pairs() -> Iterator[tuple[str, Row, Row]]:
    """(topic, key, value) for every official value, with a key of its record type."""
    keys = {(topic_of(row["name"]), row["apiKey"]): row for row in ROWS if row["kind"] == "coordinator-key"}
    for row in ROWS:
        if row["kind"] == "coordinator-value":
            topic = topic_of(row["name"])
            yield topic, keys[topic, row["apiKey"]], row


def opened(raw: bytes, topic: str) -> list[tuple[Span, Span]]:
    """Key and Value of every record of the batches, which tile all bytes."""
    spans = open_batches(annotate_records(raw), raw, topic)
    assert gap(spans, 0, len(raw)) is None
    return list(_records(spans))


def _records(spans: tuple[Span, ...]) -> Iterator[tuple[Span, Span]]:
    for span in spans:
        parts = {child.name: child for child in span.children}
        if span.type == "record" and parts["Value"].buffer is None:
            yield parts["Key"], parts["Value"]
        else:
            yield from _records(span.children)


def one(key: bytes | None, value: bytes | None, topic: str) -> tuple[Span, Span]:
    (record,) = opened(build([(key, value)]), topic)
    return record


def inside(span: Span, *front: str) -> dict[str, Any]:
    """The fields of the message inside, without what stands in front of it."""
    return {name: value for name, value in fields(span).items() if name not in front}


def official(row: Row) -> dict[str, Any]:
    return builtin_library().codec(row["name"], row["version"]).decode(bytes.fromhex(row["hex"]))


# ---------------------------------------------------------------- official vectors


@pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS, SHARES])
def test_every_official_key_and_value_is_opened(topic: str) -> None:
    found = [(key, value) for at, key, value in pairs() if at == topic]
    assert len(found) >= 6
    for key_row, value_row in found:
        what = f"{value_row['name']} v{value_row['version']}"
        key, value = one(bytes.fromhex(key_row["wire"]), bytes.fromhex(value_row["wire"]), topic)
        assert (key.text, key.note) == (key_row["name"], None), what
        assert inside(key, "record_type") == official(key_row), what
        assert (value.text, value.note) == (what, None)
        assert inside(value, "version") == official(value_row), what


def test_every_coordinator_record_of_the_schema_was_among_them() -> None:
    expected = {
        definition.name
        for definition in builtin_library().registry.data()
        if definition.messages[0].kind in ("coordinator-key", "coordinator-value")
    }
    assert {row["name"] for _, key, value in pairs() for row in (key, value)} == expected


def test_every_official_metadata_record_is_opened() -> None:
    for row in RECORDS:
        _, value = one(None, bytes.fromhex(row["wire"]), METADATA)
        what = f"{row['name']} v{row['version']}"
        assert (value.text, value.note) == (what, None)
        assert inside(value, "frame_version", "record_type", "version") == official(row), what
        assert [child.value for child in value.children[:3]] == [1, row["apiKey"], row["version"]]
    known = {one.name for one in builtin_library().registry.data() if one.area == BY_NAME[METADATA]}
    assert {row["name"] for row in RECORDS} == known


# ---------------------------------------------------------------- batches of every kind


KEY = bytes.fromhex(next(row["wire"] for row in ROWS if row["name"] == "OffsetCommitKey"))
VALUE = bytes.fromhex(next(row["wire"] for row in ROWS if row["name"] == "OffsetCommitValue" and row["version"] == 3))


@pytest.mark.parametrize(
    ("magic", "compression"),
    [(2, "zstd"), *((magic, name) for magic in (0, 1, 2) for name in ("none", "gzip", "snappy", "lz4"))],
)
def test_every_magic_and_compression(magic: int, compression: str) -> None:
    raw = build([(KEY, VALUE), (KEY, None)], magic=magic, compression=compression)
    texts = [(key.text, value.text) for key, value in opened(raw, OFFSETS)]
    assert texts == [("OffsetCommitKey", "OffsetCommitValue v3"), ("OffsetCommitKey", "tombstone")]


def test_several_batches_and_a_cut_one() -> None:
    raw = build([(KEY, VALUE)]) * 3
    spans = open_batches(annotate_records(raw[:-1]), raw[:-1], OFFSETS)
    assert gap(spans, 0, len(raw) - 1) is None
    assert [span.type for span in spans] == ["batch", "batch", "cut batch"]
    assert [key.text for key, _ in _records(spans[:2])] == ["OffsetCommitKey"] * 2


def test_a_control_batch_is_not_a_record_of_the_topic() -> None:
    raw = build([(b"\0\0\0\1", pack(">hi", 0, 5))], is_control=True, is_transactional=True, producer_id=1)
    ((key, value),) = opened(raw, OFFSETS)
    assert [child.name for child in key.children] == ["version", "Type"]
    assert value.text == "EndTxnMarker v0"


# ---------------------------------------------------------------- what is not that


@pytest.mark.parametrize(
    ("key", "value", "key_note", "value_note"),
    [
        (None, VALUE, None, None),
        (b"", VALUE, None, None),
        (b"\0", VALUE, None, None),
        (b"\x27\x0f" + KEY[2:], VALUE, "record type 9999 is not known in __consumer_offsets", None),
        (b"\xff\xff", VALUE, "record type -1 is not known in __consumer_offsets", None),
        (KEY[:-1], VALUE, "not OffsetCommitKey", None),
        (KEY + b"x", VALUE, "not OffsetCommitKey", None),
        (KEY, b"", None, "too short for OffsetCommitValue"),
        (KEY, b"\0\x63" + VALUE[2:], None, "OffsetCommitValue has versions 0-4, not 99"),
        (KEY, VALUE + b"x", None, "not OffsetCommitValue v3: 1 byte left over behind the message"),
        (KEY, VALUE[:-1], None, "not OffsetCommitValue v3: needs 8 bytes at offset "),
    ],
)
def test_a_record_that_is_not_that_stays_bytes(
    key: bytes | None, value: bytes, key_note: str | None, value_note: str | None
) -> None:
    keys, values = one(key, value, OFFSETS)
    assert keys.note == key_note
    assert str(values.note).startswith(str(value_note))
    assert keys.value == key
    assert values.value == value
    assert not values.children
    assert bool(keys.children) == (value_note is not None)


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (b"\x01", "not a metadata record"),
        (b"\x01\x80", "not a metadata record"),
        (b"\xff" * 9, "not a metadata record"),
        (b"\x01\xe7\x07\x00", "metadata record type 999 version 0 is not known"),
        (b"\x01\x02\x63", "metadata record type 2 version 99 is not known"),
        (b"\x01\x02\x00garbage", "not TopicRecord v0"),
    ],
)
def test_a_metadata_record_that_is_none(value: bytes, note: str) -> None:
    _, found = one(None, value, METADATA)
    assert (found.value, found.note, found.children) == (value, note, ())


@pytest.mark.parametrize("value", [None, b""])
def test_a_metadata_record_without_a_value_is_left_alone(value: bytes | None) -> None:
    _, found = one(None, value, METADATA)
    assert (found.value, found.note, found.children) == (value, None, ())


@pytest.mark.parametrize("topic", BY_NAME)
def test_no_prefix_of_a_record_raises(topic: str) -> None:
    found = [(value["wire"], key["wire"]) for at, key, value in pairs() if at == topic][-1:]
    value, key = map(bytes.fromhex, found[0] if found else (RECORDS[-1]["wire"], "00"))
    for size in range(len(value)):
        _, cut = one(key, value[:size], topic)
        assert cut.value == value[:size]
        assert not cut.children
    for size in range(len(key)):
        assert one(key[:size], value, topic)[0].value == key[:size]


def test_a_secret_record_of_the_metadata_log_is_opened_in_any_topic() -> None:
    """A flipped bit makes another topic of it."""
    config = {"ResourceType": 2, "ResourceName": "t", "Name": "sasl.jaas.config", "Value": "password"}
    known = b"\1\4\0" + kwire.encode("ConfigRecord", 0, config)
    broken, topic = known[:-3], b"\1\2\0" + kwire.encode("TopicRecord", 0, {"Name": "t"})
    raw = build([(None, value) for value in (known, broken, topic, None)])
    spans = tuple(open_strays(span, raw) for span in annotate_records(raw))
    values = [value for _, value in _records(spans)]
    assert [value.text for value in values] == ["ConfigRecord v0", None, None, None]
    assert inside(values[0], "frame_version", "record_type", "version") == config


def test_those_are_all_the_records_that_hold_secrets() -> None:
    for row in RECORDS:
        value = b"\1" + bytes((row["apiKey"], 0))
        secret = may_hold_secrets(builtin().find(row["name"]).definition.messages[0])
        assert bool(SECRET_RECORDS.match(value)) == secret, row["name"]
