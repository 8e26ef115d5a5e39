"""Messages as Arrow arrays: what the values codec reads, in the type that follows from the plan, of every message and
version, broken ones in between."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from vectors import damaged, names, vectors

from kwire.codec import columnar
from kwire.codec.columnar import decode_columns
from kwire.codec.library import builtin_library
from kwire.codec.plan import Slot, StructPlan
from kwire.errors import DecodeError, UnknownName
from kwire.tables import arrow
from kwire.tables.arrow import decode_arrow, slices, struct_type, to_arrow

each = pytest.mark.parametrize("name", names())


def expected(plan: StructPlan, value: dict[str, Any] | None) -> dict[str, Any] | None:
    """A message as Arrow has it: tagged fields null where they are not, uuids as bytes, text mended."""
    if value is None:
        return None
    return {slot.name: _expected(slot, value.get(slot.name)) for slot in (*plan.slots, *plan.tagged.values())}


def _expected(slot: Slot, value: Any) -> Any:
    if isinstance(value, list):
        return [_expected(slot, inner) for inner in value]
    if slot.struct:
        return expected(slot.struct, value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value.bytes if isinstance(value, UUID) else value


def check(name: str, version: int, bodies: Sequence[bytes]) -> tuple[pa.StructArray, list[str | None]]:
    """The array holds what the values codec reads, null with the reason where it reads nothing."""
    codec = builtin_library().codec(name, version)
    array, notes = decode_arrow(name, version, bodies)
    array.validate(full=True)
    assert array.type == struct_type(codec.plan.root)
    values: list[Any] = []
    reasons: list[str | None] = []
    for body in bodies:
        try:
            values.append(expected(codec.plan.root, codec.decode(body)))
            reasons.append(None)
        except DecodeError as error:
            values.append(None)
            reasons.append(str(error))
    assert notes == reasons
    assert repr(array.to_pylist()) == repr(values), codec.plan.title
    return array, notes


# ---------------------------------------------------------------- every message and version


@each
def test_an_array_holds_what_the_values_codec_reads(name: str) -> None:
    for version, bodies in vectors()[name].items():
        array, notes = check(name, version, bodies * 3)
        assert (array.null_count, set(notes)) == (0, {None})
        assert array.equals(pa.array(array.to_pylist(), array.type))


@each
def test_broken_messages_are_null_with_a_note_in_their_places(name: str) -> None:
    rng = random.Random(name)
    for version, bodies in vectors()[name].items():
        mixed = bodies * 2 + [damaged(rng.choice(bodies), rng) for _ in range(6)]
        rng.shuffle(mixed)
        check(name, version, mixed)


@each
def test_no_messages_are_an_empty_array_of_the_same_type(name: str) -> None:
    for version, bodies in vectors()[name].items():
        array, notes = check(name, version, [])
        assert (len(array), notes) == (0, [])
        assert array.type == check(name, version, bodies[:1])[0].type


# ---------------------------------------------------------------- types


def test_the_type_of_a_message_is_known_beforehand() -> None:
    kind = struct_type(builtin_library().plan("FetchRequest", 15).root)
    assert [(field.name, str(field.type)) for field in kind] == [
        ("MaxWaitMs", "int32"),
        ("MinBytes", "int32"),
        ("MaxBytes", "int32"),
        ("IsolationLevel", "int8"),
        ("SessionId", "int32"),
        ("SessionEpoch", "int32"),
        ("Topics", "list<item: struct<TopicId: fixed_size_binary[16], Partitions: list<item: struct<Partition: int32, "
                   "CurrentLeaderEpoch: int32, FetchOffset: int64, LastFetchedEpoch: int32, LogStartOffset: int64, "
                   "PartitionMaxBytes: int32>>>>"),
        ("ForgottenTopicsData", "list<item: struct<TopicId: fixed_size_binary[16], Partitions: list<item: int32>>>"),
        ("RackId", "string"),
        ("ClusterId", "string"),
        ("ReplicaState", "struct<ReplicaId: int32, ReplicaEpoch: int64>"),
    ]  # fmt: skip


def test_an_unknown_message_or_version_is_refused() -> None:
    with pytest.raises(UnknownName, match="FetchRespones"):
        decode_arrow("FetchRespones", 4, [])
    with pytest.raises(UnknownName, match="99 of FetchRequest"):
        decode_arrow("FetchRequest", 99, [])


# ---------------------------------------------------------------- values


def test_tagged_fields_are_null_where_they_are_not_on_the_wire() -> None:
    codec = builtin_library().codec("FetchRequest", 15)
    bodies = [codec.encode({}), codec.encode({"ClusterId": "c", "_tagged": {99: b"x"}}), codec.encode({})]
    array, notes = check("FetchRequest", 15, bodies)
    assert array.field("ClusterId").to_pylist() == [None, "c", None]
    assert notes == [None, None, None]


@pytest.mark.parametrize("tags", [b"\0", b"\1\x63\1a"], ids=["among the columns", "left alone"])
def test_text_that_is_no_utf8_is_mended_alike_in_both_ways(tags: bytes) -> None:
    body = b"\4a\xffb" + bytes(4) + b"\2m\0" + tags
    array, notes = check("HeartbeatRequest", 4, [body] * 3)
    assert array.field("GroupId").to_pylist() == ["a\ufffdb"] * 3
    assert notes == [None] * 3


def test_truth_values_are_true_whatever_byte_says_so() -> None:
    array, _ = check("MetadataRequest", 4, [bytes(4) + bytes([byte]) for byte in (0, 1, 2, 128, 255)])
    assert array.field("AllowAutoTopicCreation").to_pylist() == [False, True, True, True, True]


def test_the_notes_say_what_is_wrong() -> None:
    good = builtin_library().codec("HeartbeatRequest", 4).encode({"GroupId": "g", "MemberId": "m"})
    array, notes = check("HeartbeatRequest", 4, [good, good[:-3], good, b""])
    assert [value is None for value in array.to_pylist()] == [False, True, False, True]
    assert notes[1] == "HeartbeatRequest v4: MemberId: needs 1 byte at offset 7, has 0"
    assert (notes[0], notes[2]) == (None, None)


@pytest.mark.parametrize("chunk", [1, 100])
def test_chunks_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [("MetadataResponse", 12), ("ConsumerGroupDescribeResponse", 1), ("FetchResponse", 16)]
    whole = [decode_arrow(name, version, vectors()[name][version] * 3)[0] for name, version in names]
    monkeypatch.setattr(columnar, "CHUNK", chunk)
    monkeypatch.setattr(columnar, "LEAST", 1)
    for (name, version), array in zip(names, whole, strict=True):
        assert check(name, version, vectors()[name][version] * 3)[0].equals(array)


def test_numbers_are_not_copied() -> None:
    bodies = vectors()["HeartbeatRequest"][4] * 3
    sizes = np.array([len(body) for body in bodies])
    plan, buffer = builtin_library().plan("HeartbeatRequest", 4), b"".join(bodies)
    columns, _ = decode_columns(plan, buffer, np.cumsum(sizes) - sizes, np.cumsum(sizes))
    values = columns.fields["GenerationId"].values  # type: ignore[union-attr]
    made = to_arrow(columns.fields["GenerationId"], buffer, pa.int32())
    assert made.buffers()[1].address == values.ctypes.data


def test_more_bytes_than_offsets_reach_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "LIMIT", 5)
    starts, lengths = np.array([0, 0]), np.array([3, 3])
    assert slices(b"abc", starts[:1], lengths[:1], None, pa.string()).to_pylist() == ["abc"]
    with pytest.raises(OverflowError, match="6 bytes in a column; an array takes 5"):
        slices(b"abc", starts, lengths, None, pa.string())
