"""What bodies say, as rows, read one exchange after the other: what the tables partitions, batches and group_events are
compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from struct import unpack_from
from typing import Any
from uuid import UUID

from tablerows import names_of

from kwire.errors import DecodeError
from kwire.records import batch as v2
from kwire.records import legacy
from kwire.records.compression import name_of
from kwire.records.read import walk
from kwire.schema.keys import FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE
from kwire.session.exchange import Exchange
from kwire.session.record import error_name
from kwire.session.topics import Topics
from kwire.tables.arrow import mended
from kwire.tables.schemas import SCHEMAS
from kwire.wire import uuids

PARTITIONED = (PRODUCE, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH)
GROUP_TYPES = {11: "classic", 12: "classic", 13: "classic", 14: "classic", 68: "consumer", 76: "share", 88: "streams"}
NO_PRODUCER = -1
Row = dict[str, Any]
Key = tuple[str | None, str, int, int]  # group, where a message has several; topic, partition, how often before
MOST = (1 << 63) - 1


def head_row(exchange: Exchange) -> Row:
    """The columns with which the rows of an exchange begin."""
    first, kind = exchange.first, exchange.first.api
    return {
        "capture": exchange.connection.places.of(first.packet)[0] or exchange.connection.capture,
        "connection": exchange.connection.name,
        "time": exchange.time,
        "api_key": kind.key if kind else None,
        "api": exchange.api if kind or first.token else None,
        "api_version": exchange.api_version,
        "correlation_id": first.correlation_id,
        "client_id": exchange.client_id,
    }


def expected(exchanges: Iterable[Exchange], table: str) -> list[Row]:
    """The rows of a table, with all its columns."""
    facts, columns = Facts(frozenset({table})), names_of(SCHEMAS[table])
    found = [row for exchange in exchanges for _, row in facts.rows(exchange)]
    return [
        {name: mended(value) if isinstance(value := row.get(name), str) else value for name in columns}
        for row in found
    ]  # fmt: skip


class Facts:
    """rows(exchange) gives (table, row) of the tables that were asked for."""

    def __init__(self, names: frozenset[str]) -> None:
        self._partitions = "partitions" in names
        self._batches = "batches" in names
        self._groups = "group_events" in names

    def asks(self, key: int) -> bool:
        """Whether exchanges of this API have something to say."""
        if key in PARTITIONED:
            return self._partitions or (self._batches and key <= FETCH)
        return self._groups and key in GROUP_TYPES

    def rows(self, exchange: Exchange) -> Iterator[tuple[str, Row]]:
        """What the exchange has to say."""
        kind = exchange.first.api
        if kind is None or exchange.request is None or not self.asks(kind.key):
            return
        if kind.key in PARTITIONED:
            yield from self._of_partitions(exchange, kind.key)
        else:
            yield from (("group_events", row) for row in _group_rows(exchange, kind.key))

    def _of_partitions(self, exchange: Exchange, key: int) -> Iterator[tuple[str, Row]]:
        topics = exchange.connection.topics
        request = exchange.request.body() if exchange.request else None
        response = exchange.response.body() if exchange.response else None
        asked = dict(_partitions(request or {}, topics))
        answered = dict(_partitions(response or {}, topics))
        head = head_row(exchange)
        for place in asked | answered:
            group, topic, partition, _ = place
            mine, theirs = asked.get(place, {}), answered.get(place, {})
            row = head | {"topic": topic, "partition": partition, "topic_id": _id(mine) or _id(theirs)}
            row["group"] = group or (request or {}).get("GroupId")
            records = (mine if key == PRODUCE else theirs).get("Records") if key <= FETCH else None
            batches = list(_batch_rows(records)) if records else []
            if self._partitions:
                yield "partitions", row | _of_kind(key, mine, theirs) | _sums(batches, records) | _error(theirs)
            if self._batches:
                for number, batch in enumerate(batches):
                    yield "batches", row | batch | {"number": number}


def _partitions(body: Row, topics: Topics) -> Iterator[tuple[Key, Row]]:
    """Every struct of a partition with what it is about, and the topic's id beside its own fields."""
    groups = body.get("Groups")
    times: Counter[tuple[str | None, str, int]] = Counter()
    for group in groups or [body]:
        lists = (group.get(name) for name in ("Topics", "TopicData", "Responses"))
        for topic in next((found for found in lists if found), []):
            ident = topic.get("TopicId")
            name = next((found for field in ("Name", "Topic") if (found := topic.get(field)) is not None), None)
            if not name and isinstance(ident, UUID) and ident.int:
                name = topics.name(ident)
            inner: list[Any] = next(
                (topic[field] for field in topic if field.startswith("Partition") and topic[field]), []
            )
            for partition in inner:
                row = partition if isinstance(partition, dict) else {"PartitionIndex": partition}
                number = next((row[field] for field in ("PartitionIndex", "Partition", "Index") if field in row), None)
                if name is not None and number is not None:
                    key = group.get("GroupId") if groups else None, name, number
                    times[key] += 1
                    yield (*key, times[key]), row | {"TopicId": ident}


def _of_kind(key: int, asked: Row, answered: Row) -> Row:
    offset = {
        PRODUCE: answered.get("BaseOffset"),
        FETCH: asked.get("FetchOffset"),
        LIST_OFFSETS: answered.get("Offset", (answered.get("OldStyleOffsets") or [None])[0]),
        OFFSET_COMMIT: asked.get("CommittedOffset"),
        OFFSET_FETCH: answered.get("CommittedOffset"),
    }[key]
    known = {
        column: None if answered.get(field) == -1 else answered.get(field)
        for column, field in (
            ("last_stable_offset", "LastStableOffset"), ("log_start_offset", "LogStartOffset"),
            ("preferred_read_replica", "PreferredReadReplica"),
        )
    }  # fmt: skip
    return known | {
        "offset": offset, "timestamp": asked.get("Timestamp"), "high_watermark": answered.get("HighWatermark"),
    }  # fmt: skip


def _id(row: Row) -> str | None:
    ident = row.get("TopicId")
    return uuids.to_text(ident) if isinstance(ident, UUID) and ident.int else None


def _error(row: Row) -> Row:
    code = row.get("ErrorCode") or None
    return {"error_code": code, "error": error_name(code)}


def _sums(batches: list[Row], records: bytes | None) -> Row:
    if records is None:
        return {}
    counts = [batch["records"] for batch in batches]  # None where what is compressed does not say it
    return {
        "bytes": len(records),
        "batches": len(batches),
        "records": None if None in counts else sum(counts),
        "compression": batches[0]["compression"] if batches else None,
    }


def _batch_rows(records: bytes) -> Iterator[Row]:
    """The batches, by their headers alone."""
    try:
        for start, end in walk(records):
            if records[start + v2.MAGIC_AT] >= 2:
                yield _of_batch(records, start, end)
            else:
                yield _of_message(records, start, end)
    except DecodeError:
        return


def _of_batch(records: bytes, start: int, end: int) -> Row:
    header = v2.read_header(records, start)
    produced = header.producer_id != NO_PRODUCER
    last = header.base_offset + header.last_offset_delta
    return {
        "base_offset": header.base_offset,
        "last_offset": last if -MOST - 1 <= last <= MOST else None,
        "records": header.record_count,
        "bytes": end - start,
        "magic": header.magic,
        "compression": header.compression,
        "timestamp_type": "append" if header.log_append_time else "create",
        "first_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id if produced else None,
        "producer_epoch": header.producer_epoch if produced else None,
        "base_sequence": header.base_sequence if produced else None,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "crc_ok": v2.crc32c(memoryview(records)[start + v2.CRC_START : end]) == header.crc,
    }


def _of_message(records: bytes, start: int, end: int) -> Row:
    offset, _, crc, magic, attributes = unpack_from(">qiIbb", records, start)
    timestamp = unpack_from(">q", records, start + 18)[0] if magic == 1 else None
    assert end - start >= legacy.MIN_SIZE[magic]
    return {
        "base_offset": offset,
        "last_offset": offset,
        "records": None if attributes & 7 else 1,
        "bytes": end - start,
        "magic": magic,
        "compression": name_of(attributes),
        "timestamp_type": None if timestamp is None else "append" if attributes & 8 else "create",
        "first_timestamp": timestamp,
        "max_timestamp": timestamp,
        "is_transactional": False,
        "is_control": False,
        "crc_ok": v2.crc32(memoryview(records)[start + 16 : end]) == crc,
    }


def _group_rows(exchange: Exchange, key: int) -> Iterator[Row]:
    """A row for each member: LeaveGroup may name several."""
    request = (exchange.request.body() if exchange.request else None) or {}
    response = (exchange.response.body() if exchange.response else None) or {}
    code = exchange.error
    epoch = next(
        (body[name] for body in (response, request) for name in ("GenerationId", "MemberEpoch") if name in body), None
    )
    row = head_row(exchange) | {
        "latency_ns": exchange.latency,
        "group": request.get("GroupId"),
        "group_type": GROUP_TYPES[key],
        "member": response.get("MemberId") or request.get("MemberId") or None,
        "instance": request.get("GroupInstanceId") or request.get("InstanceId") or None,
        "generation": epoch if epoch != -1 or key != 11 else None,
        "protocol": response.get("ProtocolName") or request.get("ProtocolName") or None,
        "leader": response.get("Leader") or None,
        "members": len(response["Members"]) if key == 11 and response.get("Members") else None,
        "session_timeout_ms": request.get("SessionTimeoutMs"),
        "rebalance_timeout_ms": request.get("RebalanceTimeoutMs"),
        "error_code": code,
        "error": error_name(code),
    }
    members: list[dict[str, Any]] = request.get("Members") or [] if key == 13 else []
    if not members:
        yield row
    for member in members:
        yield row | {"member": member["MemberId"] or None, "instance": member["GroupInstanceId"]}
