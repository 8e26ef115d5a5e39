"""Partitions in bodies: whose they are, how they are called, and which forms of bodies are passed over."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from kwire.codec.columnar import Numbers, decode_columns
from kwire.codec.library import builtin_library
from kwire.session.decoded import Bodies
from kwire.session.topics import Topics
from kwire.tables.partition_columns import NamedPartitions, PartitionNames

KNOWN, OTHER = UUID(int=7 << 64 | 5), UUID(int=8 << 64)


def columns(name: str, version: int, *bodies: dict[str, Any]) -> Bodies:
    codec = builtin_library().codec(name, version)
    encoded = [codec.encode(body) for body in bodies]
    ends = np.cumsum([len(data) for data in encoded])
    buffer = b"".join(encoded)
    starts = ends - [len(data) for data in encoded]
    found, fine = decode_columns(builtin_library().plan(name, version), buffer, starts, ends)
    assert fine.all()
    return Bodies(found, np.arange(len(bodies)), buffer)


def read(name: str, version: int, *bodies: dict[str, Any]) -> tuple[NamedPartitions, PartitionNames]:
    topics = Topics()
    topics.names[KNOWN] = "known"
    names = PartitionNames(topics)
    return names.of(columns(name, version, *bodies)), names


def rows(found: NamedPartitions, names: PartitionNames) -> list[tuple[Any, ...]]:
    texts = [[*words.known, None] for words in (names.groups, names.topics, names.idents)]
    each = (found.owner, found.group, found.topic, found.ident, found.number)
    return [
        (owner, texts[0][group], texts[1][topic], texts[2][ident], number)
        for owner, group, topic, ident, number in zip(*(column.tolist() for column in each), strict=True)
    ]


def test_topics_by_name() -> None:
    one = {"Topics": [{"Topic": "t", "Partitions": [{"Partition": 3}, {"Partition": -1}]}, {"Topic": "u"}]}
    other = {
        "Topics": [{"Topic": "v", "Partitions": [{"Partition": 0}]}, {"Topic": "t", "Partitions": [{"Partition": 3}]}]
    }
    found, names = read("FetchRequest", 11, one, {}, other)
    assert rows(found, names) == [
        (0, None, "t", None, 3), (0, None, "t", None, -1), (2, None, "v", None, 0), (2, None, "t", None, 3),
    ]  # fmt: skip
    offsets = found.fields["FetchOffset"]
    assert isinstance(offsets, Numbers)
    assert len(offsets.values[found.places]) == len(found) == 4


def test_topics_by_id() -> None:
    topics = [{"TopicId": ident, "Partitions": [{"PartitionIndex": 4}]} for ident in (KNOWN, UUID(int=0), OTHER)]
    found, names = read("FetchResponse", 16, {"Responses": topics}, {"Responses": topics[:1]})
    ident, other = "AAAAAAAAAAcAAAAAAAAABQ", "AAAAAAAAAAgAAAAAAAAAAA"
    assert rows(found, names) == [
        (0, None, "known", ident, 4),
        (0, None, other, other, 4),
        (1, None, "known", ident, 4),
    ]
    assert found.places.tolist() == [0, 2, 3]


def test_several_groups() -> None:
    topics = [{"Name": "t", "PartitionIndexes": [0, 5]}]
    body = {"Groups": [{"GroupId": "a", "Topics": topics}, {"GroupId": "b", "Topics": None}, {"GroupId": ""}]}
    found, names = read("OffsetFetchRequest", 9, body, {"Groups": [{"GroupId": "a", "Topics": topics}]})
    assert rows(found, names) == [
        (0, "a", "t", None, 0), (0, "a", "t", None, 5), (1, "a", "t", None, 0), (1, "a", "t", None, 5),
    ]  # fmt: skip


def test_both_sides_have_the_same_numbers() -> None:
    body = columns("FetchRequest", 11, {"Topics": [{"Topic": "t", "Partitions": [{"Partition": 0}]}]})
    names = PartitionNames(Topics())
    assert names.of(body).topic.tolist() == names.of(body).topic.tolist() == [0]
    assert names.topics.array.to_pylist() == ["t"]


def test_text_that_is_no_utf8_is_mended() -> None:
    topics = [{"Topic": "a\udcff", "Partitions": [{"Partition": 0}]}]
    _, names = read("FetchRequest", 11, {"Topics": topics})
    assert list(names.topics.known) == ["a\udcff"]
    assert names.topics.array.to_pylist() == ["a\ufffd"]


@pytest.mark.parametrize(
    ("name", "version", "body"),
    [
        ("HeartbeatRequest", 4, {"GroupId": "g"}),
        ("MetadataResponse", 12, {"Topics": [{"Name": "t", "TopicId": KNOWN}]}),
        ("DeleteTopicsRequest", 5, {"TopicNames": ["t"]}),
    ],
)
def test_bodies_of_another_form_hold_no_partitions(name: str, version: int, body: dict[str, Any]) -> None:
    assert len(read(name, version, body)[0]) == 0
