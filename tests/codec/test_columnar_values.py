"""Every message comes back as columns, in its place, whichever codec reads it."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from vectors import damaged, names, vectors

from kwire.codec.columnar_values import Messages, decode_messages, take
from kwire.codec.library import builtin_library
from kwire.codec.plan import StructPlan
from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.errors import DecodeError

TOPIC: dict[str, Any] = {"Name": "t", "TopicId": UUID(int=5), "IsInternal": False, "ErrorCode": 0}
PARTITION = {"PartitionIndex": 1, "LeaderId": 2, "ReplicaNodes": [1, 2], "IsrNodes": [2], "OfflineReplicas": []}
BODIES = [
    {"Topics": [TOPIC | {"Partitions": [PARTITION] * count}], "ControllerId": count, "ClusterId": cluster}
    for count, cluster in ((1, "a"), (300, "é"), (0, None), (2, "a"))
]


def read(
    bodies: list[bytes], few: int, name: str = "MetadataResponse", version: int = 12, most: int = DEFAULT.values
) -> Messages:
    library = builtin_library()
    ends = np.cumsum([len(body) for body in bodies])
    starts = ends - [len(body) for body in bodies]
    plan = library.plan(name, version)
    return decode_messages(
        plan, library.codec(name, version), b"".join(bodies), starts, ends, Thresholds(bodies=few, values=most)
    )


@pytest.mark.parametrize("few", [0, 24, 1 << 30])
@pytest.mark.parametrize("most", [1, 5000, DEFAULT.values])
def test_messages_come_back_in_their_order(few: int, most: int) -> None:
    codec = builtin_library().codec("MetadataResponse", 12)
    bodies = [codec.encode(BODIES[number % 4]) for number in range(40)]
    found = read(bodies, few, most=most)
    assert found.there.all()
    assert found.columns.to_list(found.buffer) == [codec.decode(body) for body in bodies]


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_tagged_fields_are_left_out_and_what_is_damaged_is_not_there(few: int) -> None:
    codec = builtin_library().codec("MetadataResponse", 12)
    whole = codec.encode(BODIES[0])
    found = read([whole, whole[:-1] + b"\1\x09\1x", whole[:20], whole], few)
    assert found.there.tolist() == [True, True, False, True]
    assert found.columns.to_list(found.buffer) == [codec.decode(whole)] * 3


def test_rows_are_taken() -> None:
    codec = builtin_library().codec("MetadataResponse", 12)
    bodies = [codec.encode(body) for body in BODIES]
    found = read(bodies, 0)
    assert take(found.columns, np.array([3, 1, 1])).to_list(found.buffer) == [
        codec.decode(bodies[at]) for at in (3, 1, 1)
    ]


@pytest.mark.parametrize("name", names())
def test_broken_messages_are_not_there_and_the_others_are_those_of_the_values_codec(name: str) -> None:
    rng = random.Random(name)
    for version, bodies in vectors()[name].items():
        codec = builtin_library().codec(name, version)
        mixed = bodies * 2 + [damaged(rng.choice(bodies), rng) for _ in range(6)]
        rng.shuffle(mixed)
        expected = []
        for body in mixed:
            with suppress(DecodeError):
                expected.append(plain(codec.plan.root, codec.decode_at(body, 0)[0]))
        for few in (0, 1 << 30):
            found = read(mixed, few, name, version)
            assert repr(found.columns.to_list(found.buffer)) == repr(expected), codec.plan.title
            assert found.there.sum() == len(expected)


def plain(plan: StructPlan, value: Any) -> Any:
    """A message without its tagged fields."""
    if isinstance(value, list):
        return [plain(plan, inner) for inner in value]
    if value is None:
        return None
    return {
        slot.name: value[slot.name] if slot.struct is None else plain(slot.struct, value[slot.name])
        for slot in plan.slots
    }
