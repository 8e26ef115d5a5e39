"""Offsets that are gone, or were never committed."""

from __future__ import annotations

from provoked import assert_proven
from scenes import Scene


def test_provoked() -> None:
    found = assert_proven("offset-reset", "offset-reset")
    assert "asked for offset 5 of offset-reset-t-0" in found.what
    assert "the log's start is 12: 7 records are gone unread" in found.what


def test_a_group_without_commits_is_a_note() -> None:
    found = assert_proven("offset-lost", "offset-reset", "note")
    assert "begins at the log's end (offset-lost-t-0 at 20)" in found.what


def begun(*asked: int) -> list[str]:
    """A member without commits that asks for these ends of the log: -2 is the start, 3, and -1 the end, 9."""
    scene = Scene()
    line = scene.connect(0)
    none = {"PartitionIndex": 0, "CommittedOffset": -1, "Metadata": None, "ErrorCode": 0}
    topics = [{"Name": "orders", "PartitionIndexes": [0]}]
    answer = {"Topics": [{"Name": "orders", "Partitions": [none]}], "ErrorCode": 0}
    line.ask(1, "OffsetFetch", 5, {"GroupId": "g", "Topics": topics}, answer)
    for number, timestamp in enumerate(asked):
        part = {"PartitionIndex": 0, "Timestamp": timestamp}
        told = {"PartitionIndex": 0, "ErrorCode": 0, "Timestamp": -1, "Offset": 3 if timestamp == -2 else 9}
        line.ask(
            2 + number, "ListOffsets", 1, {"ReplicaId": -1, "Topics": [{"Name": "orders", "Partitions": [part]}]},
            {"Topics": [{"Name": "orders", "Partitions": [told]}]},
        )  # fmt: skip
    return [one.what.partition(": ")[2] for one in scene.findings("offset-reset")]


def test_who_asks_for_both_ends_is_not_said_to_begin_at_each() -> None:
    assert begun(-2) == ["it begins at the log's start (orders-0 at 3)"]
    assert begun(-1) == ["it begins at the log's end (orders-0 at 9)"]
    assert begun(-1, -2) == ["it asks for the log's start and end (orders-0: 3 and 9)"]
