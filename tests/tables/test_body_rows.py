"""Rows of what bodies say: agree with the official reading of every capture; and what is odd, made by hand."""

from __future__ import annotations

import base64
from collections import Counter
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any
from uuid import UUID

import pytest
from tablerows import rows_of
from vectors import jsonl

from kwire.codec.example import BATCH
from kwire.records import read_records
from kwire.session.exchange import Exchange
from kwire.session.reading import Reading
from kwire.tables.build import tables_of
from kwire.tables.group_events import GROUP_TYPES
from kwire.tables.partitions import PARTITIONED

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NAMES = sorted(path.name.removesuffix(".truth.jsonl.gz") for path in CAPTURES.glob("*.truth.jsonl.gz"))
each = pytest.mark.parametrize("name", NAMES)
Row = dict[str, Any]


@cache
def rows(name: str) -> dict[str, list[Row]]:
    path = next(iter(CAPTURES.glob(f"{name}.pcap*")))
    found = tables_of([path], ["partitions", "batches", "group_events"])
    return {table: sorted(rows_of(made), key=lambda row: row["time"]) for table, made in found.items()}


@cache
def exchanges(name: str) -> list[Exchange]:
    return list(Reading([next(iter(CAPTURES.glob(f"{name}.pcap*")))], tracking=True).exchanges())


@cache
def truth(name: str) -> dict[tuple[str, str, int], Row]:
    """Every frame as the official classes read it, by connection, kind and number."""
    return {(row["connection"], row["kind"], row["n"]): row for row in jsonl(f"captures/{name}.truth")}


def official(name: str, keys: set[int]) -> list[tuple[Row, Row | None, Row | None]]:
    """The official requests of these APIs, their bodies, and those of the answers (None: above 64 KiB, or none)."""
    out = []
    for (connection, kind, _), row in truth(name).items():
        if kind == "request" and row["apiKey"] in keys:
            at = row.get("response_n")
            answer = truth(name).get((connection, "response", at)) if at is not None else None
            bodies = [((each or {}).get("json") or {}).get("body") for each in (row, answer)]
            out.append((row, bodies[0], bodies[1]))
    return out


def partitions(body: Row | None) -> Counter[int]:
    """How often each partition's number stands in an official body."""
    found: Counter[int] = Counter()
    for group in (body or {}).get("groups") or [body or {}]:
        for topic in group.get("topics") or group.get("topicData") or group.get("responses") or ():
            for inner in (
                topic.get("partitions")
                or topic.get("partitionData")
                or topic.get("partitionResponses")
                or (topic.get("partitionIndexes") or ())
            ):
                if isinstance(inner, int):
                    found[inner] += 1
                    continue
                names = ("partitionIndex", "partition", "index")
                found[next(inner[field] for field in names if field in inner)] += 1
    return found


# ---------------------------------------------------------------- captures


@each
def test_partitions_are_those_of_the_official_bodies(name: str) -> None:
    ours: dict[tuple[str, int], Counter[int]] = {}
    for row in rows(name)["partitions"]:
        ours.setdefault((row["client_id"], row["correlation_id"]), Counter())[row["partition"]] += 1
    theirs: dict[tuple[str, int], Counter[int]] = {}
    unread = set()
    for row, asked, answered in official(name, set(PARTITIONED)):
        key = row["clientId"], row["correlationId"]
        if asked is None or (answered is None and row.get("response_n") is not None):
            unread.add(key)  # too long for the table of truth
        theirs.setdefault(key, Counter()).update(partitions(asked) | partitions(answered))
    for key in theirs.keys() | ours.keys():
        if key not in unread:
            assert ours.get(key, Counter()) == theirs.get(key, Counter()), key


@each
def test_batches_are_those_that_reading_records_finds(name: str) -> None:
    expected = []
    for exchange in exchanges(name):
        if exchange.api in ("Produce", "Fetch"):
            side = exchange.request if exchange.api == "Produce" else exchange.response
            expected += [
                {
                    "base_offset": batch.base_offset if batch.magic == 2 else None, "bytes": batch.size,
                    "magic": batch.magic, "compression": batch.compression, "number": number,
                    "crc_ok": batch.crc_ok, "is_control": batch.is_control,
                    "is_transactional": batch.is_transactional,
                    "records": len(batch.records) if batch.magic == 2 or batch.compression == "none" else None,
                    "last_offset": batch.last_offset if batch.magic == 2 else None,
                    "max_timestamp": batch.max_timestamp if batch.magic == 2 else None,
                    "producer_id": None if batch.producer_id < 0 else batch.producer_id,
                }
                for records in _records((side.body() if side else None) or {})
                for number, batch in enumerate(read_records(records))
            ]  # fmt: skip
    ours = [
        {column: row[column] for column in expected[0]}
        | ({} if row["magic"] == 2 else {"base_offset": None, "last_offset": None, "max_timestamp": None})
        for row in rows(name)["batches"]
    ]
    assert sorted(map(repr, ours)) == sorted(map(repr, expected))


def _records(value: Any) -> list[bytes]:
    if isinstance(value, list):
        return [found for inner in value for found in _records(inner)]
    if not isinstance(value, dict):
        return []
    own = [value["Records"]] if value.get("Records") else []
    return own + [found for inner in value.values() for found in _records(inner)]


def partition_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("connection", "api", "correlation_id", "topic", "partition"))


@each
def test_sums_of_partitions_are_those_of_their_batches(name: str) -> None:
    found = rows(name)
    assert sum(row["batches"] or 0 for row in found["partitions"]) == len(found["batches"])
    of_one: dict[tuple[Any, ...], list[int | None]] = {}
    for row in found["batches"]:
        of_one.setdefault(partition_of(row), []).append(row["records"])
    for row in found["partitions"]:
        told = of_one.get(partition_of(row))
        if told is not None and row["batches"]:
            assert row["records"] == (None if None in told else sum(count or 0 for count in told)), row
    assert sum(row["bytes"] or 0 for row in found["partitions"]) >= sum(row["bytes"] for row in found["batches"])
    total = sum(
        len(base64.b64decode(records))
        for _, asked, answered in official(name, {0, 1})
        for body in (asked, answered)
        for records in _official_records(body)
    )
    if not any(None in (asked, answered) for _, asked, answered in official(name, {0, 1})):
        assert sum(row["bytes"] or 0 for row in found["partitions"]) == total


def _official_records(value: Any) -> list[str]:
    if isinstance(value, list):
        return [found for inner in value for found in _official_records(inner)]
    if not isinstance(value, dict):
        return []
    own = [value["records"]] if isinstance(value.get("records"), str) else []
    return own + [found for inner in value.values() for found in _official_records(inner)]


@each
def test_group_events_are_those_of_the_official_bodies(name: str) -> None:
    expected = []
    for row, asked, answered in official(name, set(GROUP_TYPES)):
        assert asked is not None
        body = answered or {}
        leaving = asked.get("members") or [] if row["apiKey"] == 13 else []
        for member in leaving or [{}]:
            ident = member.get("memberId") or body.get("memberId") or asked.get("memberId") or None
            expected.append((
                row["time"], row["apiKey"], asked["groupId"], GROUP_TYPES[row["apiKey"]], ident,
                _first_error(body) if answered else None, asked.get("sessionTimeoutMs"),
                body.get("protocolName") or asked.get("protocolName") or None,
            ))  # fmt: skip
    ours = [
        (
            row["time"], row["api_key"], row["group"], row["group_type"], row["member"], row["error_code"],
            row["session_timeout_ms"], row["protocol"],
        )
        for row in rows(name)["group_events"]
    ]  # fmt: skip
    assert sorted(map(repr, ours)) == sorted(map(repr, expected))


def _first_error(value: Any) -> int | None:
    if isinstance(value, list):
        return next((code for inner in value if (code := _first_error(inner)) is not None), None)
    if not isinstance(value, dict):
        return None
    return value.get("errorCode") or next(
        (code for inner in value.values() if (code := _first_error(inner)) is not None), None
    )


# ---------------------------------------------------------------- by hand


def facts(traffic: Any, api: str, version: int, asked: Any, answer: Any = None) -> dict[str, list[Row]]:
    """The rows of one exchange."""
    tcp = traffic.connection().send(traffic.request(api, version, asked))
    if answer is not None:
        tcp.answer(traffic.response(api, version, answer))
    tcp.close()
    made = tables_of([traffic.save(traffic.folder / "made.pcap")], ["partitions", "batches", "group_events"])
    return {table: rows_of(found) for table, found in made.items()}


def test_groups_that_fetch_offsets_of_the_same_partition_have_a_row_each(traffic: Any) -> None:
    topics = [{"Name": "t", "PartitionIndexes": [0, 1]}]
    found = [
        {"GroupId": group, "Topics": [{"Name": "t", "Partitions": [
            {"PartitionIndex": number, "CommittedOffset": offset + number} for number in (0, 1)]}]}
        for group, offset in (("a", 10), ("b", 20))
    ]  # fmt: skip
    asked = {"Groups": [{"GroupId": group, "Topics": topics} for group in ("a", "b")]}
    made = facts(traffic, "OffsetFetch", 9, asked, {"Groups": found})["partitions"]
    assert [(row["topic"], row["partition"], row["offset"]) for row in made] == [
        ("t", 0, 10), ("t", 1, 11), ("t", 0, 20), ("t", 1, 21),
    ]  # fmt: skip


def test_an_answer_that_lists_more_than_was_asked_has_rows_too(traffic: Any) -> None:
    answer = {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 3, "CommittedOffset": 7, "ErrorCode": 29}]}]}
    (row,) = facts(traffic, "OffsetFetch", 5, {"GroupId": "g", "Topics": None}, answer)["partitions"]
    assert (row["topic"], row["partition"], row["offset"]) == ("t", 3, 7)
    assert (row["error_code"], row["error"]) == (29, "TOPIC_AUTHORIZATION_FAILED")


def test_a_topic_of_unknown_name_goes_by_its_id(traffic: Any) -> None:
    ident = UUID(int=77 << 64)
    asked = {"Topics": [{"TopicId": ident, "Partitions": [{"Partition": 2, "FetchOffset": 5}]}]}
    found = {"PartitionIndex": 2, "HighWatermark": 9, "Records": BATCH}
    answer = {"Responses": [{"TopicId": ident, "Partitions": [found]}]}
    made = facts(traffic, "Fetch", 16, asked, answer)
    (row,) = made["partitions"]
    assert (row["topic"], row["topic_id"]) == ("AAAAAAAAAE0AAAAAAAAAAA", "AAAAAAAAAE0AAAAAAAAAAA")
    assert (row["partition"], row["offset"], row["high_watermark"]) == (2, 5, 9)
    assert (row["bytes"], row["batches"], row["records"], row["compression"]) == (len(BATCH), 1, 1, "none")
    (batch,) = made["batches"]
    assert (batch["base_offset"], batch["last_offset"], batch["crc_ok"], batch["magic"]) == (1042, 1042, True, 2)


@pytest.mark.parametrize(
    ("records", "batches", "crc"),
    [
        (b"", 0, []),
        (BATCH[:-1], 0, []),
        (BATCH + BATCH[:30], 1, [True]),
        (BATCH + b"\xff" * 40, 1, [True]),
        (BATCH[:16] + b"\x09" + BATCH[17:], 0, []),
        (BATCH[:-1] + b"!", 1, [False]),
        (BATCH * 3, 3, [True] * 3),
    ],
    ids=["none", "cut", "a cut second", "no batch behind it", "an unknown magic", "a wrong checksum", "three"],
)
def test_records_are_counted_as_far_as_they_can_be(traffic: Any, records: bytes, batches: int, crc: list[bool]) -> None:
    asked = {"TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": records}]}]}
    made = facts(traffic, "Produce", 9, asked, {})
    (row,) = made["partitions"]
    assert (row["bytes"], row["batches"], row["records"]) == (len(records), batches, batches) or not records
    assert [batch["crc_ok"] for batch in made["batches"]] == crc


def test_an_offset_beyond_64_bits_is_left_out(traffic: Any) -> None:
    records = pack(">q", (1 << 63) - 1) + BATCH[8:23] + pack(">i", 5) + BATCH[27:]
    asked = {"TopicData": [{"Name": "t", "PartitionData": [{"Index": 0, "Records": records}]}]}
    (batch,) = facts(traffic, "Produce", 9, asked, {})["batches"]
    assert (batch["base_offset"], batch["last_offset"], batch["crc_ok"]) == ((1 << 63) - 1, None, False)


def test_members_that_leave_together_have_a_row_each(traffic: Any) -> None:
    members = [{"MemberId": "m-1", "GroupInstanceId": None}, {"MemberId": "", "GroupInstanceId": "static"}]
    made = facts(traffic, "LeaveGroup", 4, {"GroupId": "g", "Members": members}, {})["group_events"]
    assert [(row["group"], row["member"], row["instance"]) for row in made] == [
        ("g", "m-1", None), ("g", None, "static"),
    ]  # fmt: skip


def test_a_request_without_an_answer_has_its_rows(traffic: Any) -> None:
    (row,) = facts(traffic, "Heartbeat", 4, {"GroupId": "g", "GenerationId": 3, "MemberId": "m"})["group_events"]
    assert (row["group"], row["member"], row["generation"], row["latency_ns"]) == ("g", "m", 3, None)
