"""Uuids: sixteen bytes, Kafka's 22 characters, and the form with hyphens."""

from __future__ import annotations

import copy
import pickle
from uuid import UUID

import pytest
from vectors import jsonl

from kwire.wire import uuids

PAIRS = [
    ("00000000-0000-0000-0000-000000000000", "AAAAAAAAAAAAAAAAAAAAAA"),
    ("00000000-0000-0000-0000-000000000001", "AAAAAAAAAAAAAAAAAAAAAQ"),
    ("ffffffff-ffff-ffff-ffff-ffffffffffff", "_____________________w"),
    ("b0e4aa41-8656-4e3b-9c76-3e705425af3e", "sOSqQYZWTjucdj5wVCWvPg"),
    ("fbefbe00-0000-0000-0000-0000000000fb", "----AAAAAAAAAAAAAAAA-w"),
]


@pytest.mark.parametrize(("usual", "short"), PAIRS)
def test_the_forms_stand_for_one_uuid(usual: str, short: str) -> None:
    value = UUID(usual)
    assert uuids.to_text(value) == short
    assert uuids.from_text(short) == value
    assert uuids.from_text(usual) == value


@pytest.mark.parametrize("usual", [usual for usual, _ in PAIRS])
def test_a_uuid_of_bytes_is_like_any_other(usual: str) -> None:
    expected = UUID(usual)
    made = uuids.from_bytes(expected.bytes)
    assert type(made) is UUID
    assert (made, hash(made), str(made), made.bytes) == (expected, hash(expected), usual, expected.bytes)
    assert made.is_safe is expected.is_safe
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == expected


def test_the_zero_uuid_is_zero() -> None:
    assert uuids.from_bytes(bytes(16)) == uuids.ZERO == uuids.from_text("A" * 22)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        "sOSqQYZWTjucdj5wVCWvP",  # 21 characters
        "sOSqQYZWTjucdj5wVCWvPgg",  # 23
        "sOSqQYZWTjucdj5wVCWv=g",
        "b0e4aa41-8656-4e3b-9c76-3e705425af3",
        "g0e4aa41-8656-4e3b-9c76-3e705425af3e",
    ],
)
def test_other_text_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the words are Python's own where the text is not of 22 characters)
        uuids.from_text(text)


@pytest.mark.parametrize("text", ["sOSqQYZWTjucdj5wVCWv!g", "sOSqQYZWTjucdj5wVCWv==", "ключключключключключкл"])
def test_a_wrong_text_of_22_characters_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=f"^not a uuid: {text}$"):
        uuids.from_text(text)


def test_topic_ids_are_written_as_the_official_classes_write_them() -> None:
    rows = [row for row in jsonl("vectors/requests") if row["name"] == "FetchRequest" and row["version"] >= 13]
    checked = 0
    for row in rows:
        for topic in row["json"]["topics"]:
            assert uuids.from_text(topic["topicId"]).bytes in bytes.fromhex(row["hex"])
            assert uuids.to_text(uuids.from_text(topic["topicId"])) == topic["topicId"]
            checked += 1
    assert checked >= 6
