"""The columnar codec says what the values codec says, of every message and version: official ones, made-up ones, broken
ones in between."""

from __future__ import annotations

import random
from collections.abc import Sequence
from struct import pack
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import damaged, names, vectors

from kwire.codec.columnar import Lists, Numbers, Slices, Structs, decode_columns
from kwire.codec.example import example
from kwire.codec.library import builtin_library
from kwire.codec.plan import Slot, StructPlan
from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.errors import DecodeError
from kwire.schema.registry import builtin

MESSAGES = [message for definition in (*builtin().apis(), *builtin().data()) for message in definition.messages]
NAMES = [message.name for message in MESSAGES]
LAYOUTS = [(message.name, start) for message in MESSAGES for start in builtin_library().layout_starts(message)]
each = pytest.mark.parametrize("name", NAMES)
NUMBERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}


official = pytest.mark.parametrize("name", names())


def columns_of(
    name: str, version: int, bodies: Sequence[bytes], thresholds: Thresholds = DEFAULT
) -> tuple[Structs, list[bool], list[Any]]:
    """The columns, which bodies are among them, and what the columns say."""
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends, buffer = np.cumsum(sizes), b"".join(bodies)
    columns, fine = decode_columns(builtin_library().plan(name, version), buffer, ends - sizes, ends, thresholds)
    return columns, fine.tolist(), columns.to_list(buffer)


def check(name: str, version: int, bodies: Sequence[bytes], thresholds: Thresholds = DEFAULT) -> list[bool]:
    """What is among the columns is what the values codec reads, in order; what is broken is not among them."""
    codec = builtin_library().codec(name, version)
    columns, fine, got = columns_of(name, version, bodies, thresholds)
    expected = []
    for body, good in zip(bodies, fine, strict=True):
        if good:
            expected.append(codec.decode(body))
    assert len(columns) == len(expected) == sum(fine)
    assert repr(got) == repr(expected), codec.plan.title
    return fine


def made(plan: StructPlan, rng: random.Random, tags: float, deep: int = 0) -> dict[str, Any]:
    """Any values that the plan can write; tags is how often tagged fields are among them."""
    out = {slot.name: _value(slot, rng, tags, deep) for slot in plan.slots}
    if plan.flexible and rng.random() < tags:
        out |= {slot.name: _value(slot, rng, tags, deep) for slot in plan.tagged.values() if rng.random() < 0.7}
        if rng.random() < 0.5:
            out["_tagged"] = {90: b"", 1000: b"later"}
    return out


def _value(slot: Slot, rng: random.Random, tags: float, deep: int) -> Any:
    if slot.nullable and rng.random() < 0.2:
        return None
    if slot.array:
        single = slot._replace(array=False, nullable=False)
        return [_value(single, rng, tags, deep + 1) for _ in range(rng.choice((0, 1, 1, 2, 3)) if deep < 3 else 1)]
    if slot.struct:
        return made(slot.struct, rng, tags, deep)
    if slot.type in NUMBERS:
        bits = NUMBERS[slot.type]
        number = rng.choice((0, 1, rng.getrandbits(bits), 1 << (bits - 1), (1 << bits) - 1)) % (1 << bits)
        return number if slot.type[0] == "u" or number < 1 << (bits - 1) else number - (1 << bits)
    match slot.type:
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return rng.choice((0.0, -0.0, 1.5, float("inf"), float("nan")))
        case "string":
            return rng.choice(("", "a", "topic", "grüße ☃", "\udcff\udc80", "x" * 126, "y" * 300))
        case "uuid":
            return rng.choice((UUID(int=0), UUID(int=rng.getrandbits(128))))
        case _:
            return rng.choice((b"", b"\0", rng.randbytes(20), rng.randbytes(127), rng.randbytes(200)))


# ---------------------------------------------------------------- official messages


def test_there_are_vectors_of_nearly_every_message_and_version() -> None:
    assert sum(len(versions) for versions in vectors().values()) >= 2 * 368 + 120
    assert len(set(NAMES) - set(vectors())) == 5


@official
def test_official_messages_are_read_as_the_values_codec_reads_them(name: str) -> None:
    for version, bodies in vectors()[name].items():
        many = bodies * 8
        random.Random(1).shuffle(many)
        fine = check(name, version, many)
        plain = [body for body, good in zip(many, fine, strict=True) if good]
        assert plain or all(_tagged(name, version, body) for body in bodies), version
        assert all(check(name, version, plain))


def _tagged(name: str, version: int, body: bytes) -> bool:
    """Whether a message is left alone by right: it has tagged fields, or is longer than there are messages."""
    message = builtin_library().codec(name, version).decode(body)
    return _has_tags(builtin_library().plan(name, version).root, message)


def _has_tags(plan: StructPlan, message: dict[str, Any]) -> bool:
    if len(message) > len(plan.slots):
        return True
    for slot in plan.slots:
        value = message[slot.name]
        if slot.struct and value is not None:
            inner = slot.struct
            if any(_has_tags(inner, each) for each in (value if slot.array else [value])):
                return True
    return False


# ---------------------------------------------------------------- made-up messages


@each
def test_made_up_messages_are_read_as_the_values_codec_reads_them(name: str) -> None:
    rng = random.Random(name)
    for version in builtin_library().layout_starts(builtin_library().message(name)):
        codec = builtin_library().codec(name, version)
        plain = [codec.encode(made(codec.plan.root, rng, 0)) for _ in range(7)]
        tagged = [codec.encode(made(codec.plan.root, rng, 0.5)) for _ in range(4)]
        whole = [*plain, *tagged, codec.encode(example(codec.plan))] * 2
        rng.shuffle(whole)
        fine = check(name, version, whole)
        has = {body: _tagged(name, version, body) for body in whole}
        assert not any(good for body, good in zip(whole, fine, strict=True) if has[body]), codec.plan.title


@each
def test_broken_messages_fall_out_and_the_others_stay_right(name: str) -> None:
    rng = random.Random(f"{name} broken")
    for version in builtin_library().layout_starts(builtin_library().message(name)):
        codec = builtin_library().codec(name, version)
        bodies = [codec.encode(made(codec.plan.root, rng, 0.1)) for _ in range(5)]
        mixed = bodies + [damaged(rng.choice(bodies), rng) for _ in range(20)]
        rng.shuffle(mixed)
        fine = check(name, version, mixed)
        for body, good in zip(mixed, fine, strict=True):
            try:
                codec.decode(body)
            except DecodeError:
                assert not good, body.hex()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(LAYOUTS), st.randoms(use_true_random=False), st.integers(0, 40), st.floats(0, 1), st.floats(0, 1)
)
def test_any_mixture_is_read_right(
    layout: tuple[str, int], rng: random.Random, count: int, tags: float, broken: float
) -> None:
    codec = builtin_library().codec(*layout)
    bodies = [codec.encode(made(codec.plan.root, rng, tags)) for _ in range(count)]
    check(*layout, [damaged(body, rng) if rng.random() < broken else body for body in bodies])


# ---------------------------------------------------------------- how many, and in what parts


@pytest.mark.parametrize(("chunk", "least"), [(1, 1), (1, 2), (40, 1), (300, 3), (1 << 22, 256)])
def test_chunks_change_nothing(chunk: int, least: int) -> None:
    thresholds = Thresholds(chunk=chunk, least=least)
    rng = random.Random(5)
    for name, version in [
        ("MetadataResponse", 12), ("MetadataResponse", 1), ("OffsetFetchResponse", 9), ("FetchResponse", 16),
        ("JoinGroupResponse", 9), ("ConsumerGroupDescribeResponse", 1), ("HeartbeatRequest", 4),
    ]:  # fmt: skip
        codec = builtin_library().codec(name, version)
        bodies = [codec.encode(made(codec.plan.root, rng, 0.1)) for _ in range(12)]
        bodies = [damaged(body, rng) if rng.random() < 0.2 else body for body in bodies]
        check(name, version, bodies, thresholds)
        assert check(name, version, [], thresholds) == []


@official
def test_one_message_alone_and_none_at_all(name: str) -> None:
    for version, bodies in vectors()[name].items():
        check(name, version, bodies[:1])
        columns, fine, values = columns_of(name, version, [])
        assert (len(columns), fine, values) == (0, [], [])
        plan = builtin_library().plan(name, version)
        assert list(columns.fields) == [slot.name for slot in plan.root.slots]


def test_messages_may_lie_anywhere_in_the_buffer() -> None:
    codec = builtin_library().codec("HeartbeatRequest", 4)
    rng = random.Random(3)
    bodies = [codec.encode(made(codec.plan.root, rng, 0)) for _ in range(9)]
    buffer, starts, ends = b"\xff" * 7, [], []
    for body in bodies:
        starts.append(len(buffer))
        ends.append(len(buffer) + len(body))
        buffer += body + rng.randbytes(rng.randrange(9))
    order = rng.sample(range(9), 9)
    columns, fine = decode_columns(codec.plan, buffer, np.array(starts)[order], np.array(ends)[order])
    assert fine.all()
    assert columns.to_list(buffer) == [codec.decode(bodies[number]) for number in order]


# ---------------------------------------------------------------- what is rare


def _metadata(count: bytes, rest: bytes = b"") -> bytes:
    """A MetadataRequest v4, whose topics are an array of names, with a count of its own."""
    return count + rest + b"\1"


RARE = {
    "a varint of two bytes": (
        "HeartbeatRequest", 4, b"\xad\x02" + b"g" * 300 + bytes(4) + b"\2m\0\0", True,
    ),
    "a varint of three bytes": (
        "HeartbeatRequest", 4, b"\xa1\x9c\x01" + b"g" * 20000 + bytes(4) + b"\2m\0\0", False,
    ),
    "a varint longer than it needs": ("HeartbeatRequest", 4, b"\x82\x00g" + bytes(4) + b"\2m\0\0", True),
    "an unknown tag": ("HeartbeatRequest", 4, b"\2g" + bytes(4) + b"\2m\0\1\x5a\2ab", False),
    "text that is no UTF-8": ("HeartbeatRequest", 4, b"\3\xff\xfe" + bytes(4) + b"\2m\0\0", True),
    "null": ("MetadataRequest", 4, _metadata(pack(">i", -1)), True),
    "an empty array": ("MetadataRequest", 4, _metadata(pack(">i", 0)), True),
    "a long array": ("MetadataRequest", 4, _metadata(pack(">i", 3000), b"\0\1t" * 3000), False),
    "a truth value of 2": ("MetadataRequest", 4, pack(">i", 0) + b"\2", True),
}  # fmt: skip


@pytest.mark.parametrize("what", RARE)
def test_what_is_rare_is_right_or_left_alone(what: str) -> None:
    name, version, body, among = RARE[what]
    usual = vectors()[name][version]
    fine = check(name, version, [*usual, body, *usual])
    assert fine[len(usual)] is among
    builtin_library().codec(name, version).decode(body)


BROKEN = {
    "nothing at all": ("HeartbeatRequest", 4, b""),
    "a text beyond the end": ("HeartbeatRequest", 4, b"\x7fg" + bytes(4) + b"\2m\0\0"),
    "null where none may be": ("HeartbeatRequest", 4, b"\0" + bytes(4) + b"\2m\0\0"),
    "a length below null": ("HeartbeatRequest", 0, b"\xff\xfe" + bytes(4) + b"\0\1m"),
    "bytes behind the end": ("HeartbeatRequest", 4, b"\2g" + bytes(4) + b"\2m\0\0!"),
    "an array of 2,147,483,647": ("MetadataRequest", 4, _metadata(pack(">i", (1 << 31) - 1))),
    "a count below null": ("MetadataRequest", 4, _metadata(pack(">i", -2))),
    "a count beyond 32 bits": ("MetadataRequest", 9, b"\xff\xff\xff\xff\x7f\1\0\0\0"),
    "more numbers than bytes": ("OffsetFetchRequest", 1, b"\0\1g" + pack(">ih1si", 1, 1, b"t", 1 << 30)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_falls_out(what: str) -> None:
    name, version, body = BROKEN[what]
    usual = vectors()[name][version]
    fine = check(name, version, [*usual, body, *usual])
    assert not fine[len(usual)]
    assert check(name, version, [body]) == [False]
    with pytest.raises(DecodeError):
        builtin_library().codec(name, version).decode(body)


def test_a_huge_count_takes_no_memory() -> None:
    bodies = [pack(">i", 0x7FFFFFFF) + bytes(100)] * 50
    for name, version in [("MetadataRequest", 1), ("DescribeGroupsRequest", 0), ("DeleteTopicsRequest", 1)]:
        assert not any(check(name, version, bodies))


def test_columns_are_laid_out_as_arrow_lays_lists_out() -> None:
    codec = builtin_library().codec("OffsetFetchRequest", 2)
    bodies = [
        codec.encode({"GroupId": "a", "Topics": [{"Name": "t", "PartitionIndexes": [1, 2, 3]}]}),
        codec.encode({"GroupId": "bc", "Topics": None}),
        codec.encode({"GroupId": "", "Topics": [{"Name": "uv", "PartitionIndexes": []}]}),
    ]
    columns, fine, _ = columns_of("OffsetFetchRequest", 2, bodies)
    group, topics = columns.fields["GroupId"], columns.fields["Topics"]
    assert all(fine)
    assert isinstance(group, Slices)
    assert (group.kind, group.starts.tolist(), group.lengths.tolist()) == ("string", [2, 28, 36], [1, 2, 0])
    assert isinstance(topics, Lists)
    assert isinstance(topics.flat, Structs)
    assert topics.valid is not None
    assert (topics.offsets.tolist(), topics.valid.tolist()) == ([0, 1, 1, 2], [True, False, True])
    indexes = topics.flat.fields["PartitionIndexes"]
    assert isinstance(indexes, Lists)
    assert isinstance(indexes.flat, Numbers)
    assert (indexes.offsets.tolist(), indexes.flat.values.tolist()) == ([0, 3, 3], [1, 2, 3])
    assert indexes.flat.values.dtype == np.dtype("int32").newbyteorder("=")


def test_empty_structs_are_counted() -> None:
    columns, fine, values = columns_of("ListGroupsRequest", 0, [b"", b"", b"x", b""])
    assert (len(columns), fine, values) == (3, [True, True, False, True], [{}, {}, {}])
