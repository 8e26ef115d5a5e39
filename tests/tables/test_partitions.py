"""Rows of partitions and batches, which columns and bodies read one by one must give alike: what is rare, by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from struct import pack
from typing import Any
from uuid import UUID

import pytest

from kwire.capture.source import Source
from kwire.codec.example import BATCH
from kwire.codec.thresholds import NEVER, TOGETHER
from kwire.records.build import build as batch_of

Row = dict[str, Any]
COUNT = 40
FIRST, SECOND, THIRD = (UUID(int=number << 64 | 5) for number in (7, 8, 9))
PAIR = (b"k", b"value")


def produced(*partitions: tuple[int, bytes | None], name: str = "t") -> Row:
    data = [{"Index": number, "Records": records} for number, records in partitions]
    return {"Acks": -1, "TopicData": [{"Name": name, "PartitionData": data}]}


def stored(*partitions: tuple[int, int, int], name: str = "t") -> Row:
    found = [{"Index": number, "BaseOffset": base, "ErrorCode": code} for number, base, code in partitions]
    return {"Responses": [{"Name": name, "PartitionResponses": found}]}


def fetched(topic: Row, *partitions: tuple[int, bytes | None, int]) -> Row:
    found = [
        {"PartitionIndex": number, "HighWatermark": 100 + number, "ErrorCode": code, "Records": records}
        for number, records, code in partitions
    ]
    return {"Responses": [topic | {"Partitions": found}]}


def asked_of(topic: Row, *partitions: tuple[int, int]) -> Row:
    return {"Topics": [topic | {"Partitions": [{"Partition": number, "FetchOffset": at} for number, at in partitions]}]}


RECORDS: dict[str, bytes | None] = {
    "null": None,
    "none": b"",
    "short": BATCH[:16],
    "cut": BATCH[:-1],
    "one": BATCH,
    "three": BATCH * 3,
    "many": BATCH * 50,
    "a cut second": BATCH + BATCH[:30],
    "no batch behind it": BATCH + b"\xff" * 40,
    "an unknown magic": BATCH[:16] + b"\x09" + BATCH[17:],
    "a length that is too small": BATCH[:8] + pack(">i", 20) + BATCH[12:],
    "a negative length": BATCH[:8] + pack(">i", -(1 << 31)) + BATCH[12:],
    "a wrong checksum": BATCH[:-1] + b"!",
    "an unknown codec": BATCH[:22] + b"\x07" + BATCH[23:],
    "a last offset beyond 64 bits": pack(">q", (1 << 63) - 1) + BATCH[8:23] + pack(">i", 5) + BATCH[27:],
    "a last offset below 64 bits": pack(">q", -1 << 63) + BATCH[8:23] + pack(">i", -5) + BATCH[27:],
    "gzip": batch_of([PAIR] * 3, compression="gzip", timestamp=5),
    "all codecs": b"".join(batch_of([PAIR], compression=name) for name in ("snappy", "lz4", "zstd", "none")),
    "append time": batch_of([PAIR], log_append_time=77, timestamp=5),
    "a transaction": batch_of([PAIR] * 2, producer_id=9, producer_epoch=3, base_sequence=11, is_transactional=True),
    "a marker": batch_of([(b"\0\0\0\1", b"\0" * 6)], producer_id=9, producer_epoch=3, is_transactional=True,
                         is_control=True),
}  # fmt: skip
OLD: dict[str, bytes] = {
    "magic 0": batch_of([PAIR] * 2, magic=0),
    "magic 1": batch_of([PAIR] * 2, magic=1, timestamp=5),
    "wrapped": batch_of([PAIR] * 2, magic=1, compression="gzip", timestamp=5),
    "behind a batch": BATCH + batch_of([PAIR], magic=1, timestamp=5),
}


@pytest.mark.parametrize("few", [0, NEVER], ids=["together", "one by one"])
@pytest.mark.parametrize("what", RECORDS)
def test_records(what: str, few: int, made: Any, ways: Any) -> None:
    ways.thresholds = replace(TOGETHER, chains=few)
    records = RECORDS[what]
    body = produced((0, records), (1, BATCH)), stored((0, 5, 0), (1, 6, 0))
    found = made("Produce", 9, body)
    assert len(found["partitions"]) == 2 * COUNT
    assert {row["bytes"] for row in found["partitions"] if not row["partition"]} == {
        None if records is None else len(records)
    }


@pytest.mark.parametrize("what", OLD)
def test_messages_of_old_formats(what: str, made: Any) -> None:
    old = asked_of({"Topic": "t"}, (0, 5)), fetched({"Topic": "t"}, (0, OLD[what], 0))
    new = asked_of({"Topic": "t"}, (0, 5)), fetched({"Topic": "t"}, (0, BATCH, 0))
    found = made("Fetch", 11, old, new)
    assert {row["magic"] for row in found["batches"]} > {2}
    count = int.from_bytes(BATCH[57:61], "big")
    counted = {"magic 0": 2, "magic 1": 2, "wrapped": None, "behind a batch": count + 1}  # compressed, it says nothing
    assert {row["records"] for row in found["partitions"]} == {counted[what], count}


def test_answers_about_other_partitions_than_were_asked_for(made: Any) -> None:
    asked = asked_of({"Topic": "t"}, (0, 5), (3, 9), (-1, 2))
    found = made("Fetch", 11, (asked, fetched({"Topic": "t"}, (3, BATCH, 0), (4, b"", 1), (-1, b"", 0))))
    one = [row for row in found["partitions"] if row["correlation_id"] == 9]
    assert sorted((row["partition"], row["offset"], row["high_watermark"], row["error"]) for row in one) == [
        (-1, 2, 99, None), (0, 5, None, None), (3, 9, 103, None), (4, None, 104, "OFFSET_OUT_OF_RANGE"),
    ]  # fmt: skip


def test_several_topics_take_turns(made: Any) -> None:
    pairs = [
        (
            {"Topics": [asked_of({"Topic": name}, (0, 1))["Topics"][0] for name in names]},
            {"Responses": [fetched({"Topic": name}, (0, BATCH, 0))["Responses"][0] for name in reversed(names)]},
        )
        for names in (("a", "b", "c"), ("b",), (), ("", "d\xe9", "a"))
    ]
    found = made("Fetch", 11, *pairs)
    assert {row["topic"] for row in found["partitions"]} == {"", "a", "b", "c", "d\xe9"}


def test_a_partition_that_is_named_twice_has_two_rows(made: Any) -> None:
    twice = produced((0, BATCH), (1, BATCH), (0, BATCH * 2)), stored((0, 1, 0), (0, 2, 0), (1, 3, 0))
    once = produced((0, BATCH)), stored((0, 7, 0))
    found = made("Produce", 9, twice, once)["partitions"]
    (one,) = {row["correlation_id"] for row in found if row["correlation_id"] == 8}
    rows = [row for row in found if row["correlation_id"] == one]
    assert [(row["partition"], row["batches"], row["offset"]) for row in rows] == [(0, 1, 1), (0, 2, 2), (1, 1, 3)]


def test_errors_and_tagged_fields(made: Any) -> None:
    wrong = stored((0, -1, 6))
    leader = {"LeaderId": 3, "LeaderEpoch": 4}
    partition = {"Index": 0, "ErrorCode": 6, "CurrentLeader": leader}
    tagged = {"Responses": [{"Name": "t", "PartitionResponses": [partition]}]}
    found = made("Produce", 10, *((produced((0, BATCH)), answer) for answer in (wrong, tagged, {})))
    assert {row["error"] for row in found["partitions"]} == {None, "NOT_LEADER_OR_FOLLOWER"}


METADATA = (
    {"Topics": None},
    {"Topics": [{"Name": "first", "TopicId": FIRST}, {"Name": "second", "TopicId": SECOND}, {"Name": None}]},
)


@pytest.mark.parametrize("window", [1 << 20, 3000], ids=["at once", "piece by piece"])
@pytest.mark.parametrize("where", ["before", "between", "behind", "elsewhere"])
def test_names_of_topic_ids(
    where: str, window: int, traffic: Any, ways: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Wherever they are told, also by a connection that is read later."""
    tcp = traffic.connection()

    def tell(on: Any, ident: int) -> None:
        on.send(traffic.request("Metadata", 12, METADATA[0], ident, b"m"))
        on.answer(traffic.response("Metadata", 12, METADATA[1], ident))

    def fetch(ident: int) -> None:
        topics = [{"TopicId": topic, "Partitions": [{"Partition": 0}]} for topic in (FIRST, SECOND, THIRD, UUID(int=0))]
        tcp.send(traffic.request("Fetch", 16, {"Topics": topics}, ident))
        answer = {"Responses": [fetched({"TopicId": SECOND}, (0, BATCH, 0))["Responses"][0]]}
        tcp.answer(traffic.response("Fetch", 16, answer, ident))

    for ident in range(COUNT):
        told = {"before": ident < 15, "between": ident % 5 == 0, "behind": ident > 30, "elsewhere": False}[where]
        tell(tcp, ident) if told else fetch(ident)
    tcp.close()
    if where == "elsewhere":
        other = traffic.connection(51600)
        for ident in range(COUNT):
            tell(other, ident)
        other.close()
    monkeypatch.setattr("kwire.capture.files.Source", partial(Source, window=window))
    found = ways.both(traffic.save(traffic.folder / "made.pcap"))
    assert ways.taken > COUNT - 15
    assert {(row["topic"], row["topic_id"]) for row in found["partitions"]} == {
        ("first", "AAAAAAAAAAcAAAAAAAAABQ"), ("second", "AAAAAAAAAAgAAAAAAAAABQ"),
        ("AAAAAAAAAAkAAAAAAAAABQ", "AAAAAAAAAAkAAAAAAAAABQ"),
    }  # fmt: skip


def test_two_ids_of_one_name_are_one_topic(made: Any, traffic: Any) -> None:
    topics = {"Topics": [{"Name": "t", "TopicId": FIRST}, {"Name": "t", "TopicId": SECOND}]}
    other = traffic.connection(51600)
    for ident in range(COUNT):
        other.send(traffic.request("Metadata", 12, METADATA[0], ident))
        other.answer(traffic.response("Metadata", 12, topics, ident))
    asked = asked_of({"TopicId": FIRST}, (0, 5), (1, 6))
    found = made("Fetch", 16, (asked, fetched({"TopicId": SECOND}, (0, BATCH, 0))))
    one = [row for row in found["partitions"] if row["correlation_id"] == 9]
    assert sorted((row["topic"], row["partition"], row["high_watermark"]) for row in one) == [
        ("t", 0, 100), ("t", 1, None),
    ]  # fmt: skip


@pytest.mark.parametrize("version", [0, 1, 7])
def test_offsets_that_are_listed(version: int, made: Any) -> None:
    asked = {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": n, "Timestamp": -1 - n} for n in (0, 1)]}]}
    found: Row = {"PartitionIndex": 0} | ({"Offset": 8} if version else {"OldStyleOffsets": [8, 3]})
    rows = made("ListOffsets", version, (asked, {"Topics": [{"Name": "t", "Partitions": [found]}]}))
    assert {(row["partition"], row["offset"], row["timestamp"]) for row in rows["partitions"]} == {
        (0, 8, -1), (1, None, -2),
    }  # fmt: skip


@pytest.mark.parametrize("group", ["g", "", "gr\xfcn"])
@pytest.mark.parametrize("version", [2, 9, 10])
def test_offsets_that_are_committed(version: int, group: str, made: Any) -> None:
    topic: Row = {"Name": "t"} if version < 10 else {"TopicId": FIRST}
    asked = {"GroupId": group, "Topics": [topic | {"Partitions": [{"PartitionIndex": 0, "CommittedOffset": 8}]}]}
    found = {"Topics": [topic | {"Partitions": [{"PartitionIndex": 0, "ErrorCode": 22}]}]}
    rows = made("OffsetCommit", version, (asked, found))["partitions"]
    assert {(row["group"], row["offset"], row["error"]) for row in rows} == {(group, 8, "ILLEGAL_GENERATION")}


@pytest.mark.parametrize("topics", [None, [], [{"Name": "t", "PartitionIndexes": [0, 2]}]], ids=["all", "none", "some"])
@pytest.mark.parametrize("version", [1, 7])
def test_offsets_of_a_group(version: int, topics: Any, made: Any) -> None:
    found = {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0, "CommittedOffset": 8}]}]}
    asked = {"GroupId": "g", "Topics": topics if version > 1 else topics or []}
    rows = made("OffsetFetch", version, (asked, found), (asked, {}))["partitions"]
    assert {(row["group"], row["partition"], row["offset"]) for row in rows} >= {("g", 0, 8)}


@pytest.mark.parametrize("version", [8, 9, 10])
def test_offsets_of_several_groups(version: int, made: Any) -> None:
    topic: Row = {"Name": "t"} if version < 10 else {"TopicId": FIRST}
    asked = {"Groups": [
        {"GroupId": "a", "Topics": [topic | {"PartitionIndexes": [0, 1]}]}, {"GroupId": "b", "Topics": None},
        {"GroupId": "", "Topics": [topic | {"PartitionIndexes": [0]}]},
    ]}  # fmt: skip
    found = {"Groups": [
        {"GroupId": group, "Topics": [topic | {"Partitions": [{"PartitionIndex": 0, "CommittedOffset": at}]}]}
        for group, at in (("b", 7), ("a", 8))
    ]}  # fmt: skip
    rows = made("OffsetFetch", version, (asked, found), (asked, {"Groups": []}))["partitions"]
    assert {(row["group"], row["partition"], row["offset"]) for row in rows} == {
        ("a", 0, 8), ("a", 0, None), ("a", 1, None), ("b", 0, 7), (None, 0, None),
    }  # fmt: skip
