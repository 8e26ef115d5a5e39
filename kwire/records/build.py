"""Records to bytes: batches of every magic and compression, byte for byte what Kafka's builder writes uncompressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import error as StructError
from struct import pack

from kwire.errors import KwireError
from kwire.records import batch as v2
from kwire.records.compression import NAMES, compress
from kwire.records.read import Record
from kwire.wire.varint import write_varint

Given = Record | tuple[bytes | None, bytes | None]


def build(
    records: Iterable[Given],
    *,
    magic: int = 2,
    compression: str = "none",
    base_offset: int | None = None,
    timestamp: int = 0,
    log_append_time: int | None = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """One batch (magic 2) or message set (magic 0 and 1) of Records, or of (key, value) pairs.

    Pairs get offsets from base_offset (0) on and the given timestamp, ms since the epoch; Records keep their own. With
    log_append_time that time counts for all. Raises KwireError for what the magic cannot hold.
    """
    if compression not in NAMES:
        raise KwireError(f"unknown compression {compression}; there are {', '.join(NAMES)}")
    first = base_offset or 0
    listed = [
        item if isinstance(item, Record) else Record(first + n, timestamp, item[0], item[1], [])
        for n, item in enumerate(records)
    ]
    if base_offset is None and listed:
        base_offset = listed[0].offset
    base_offset = base_offset or 0
    if magic in (0, 1):
        if any(record.headers for record in listed) or producer_id != -1 or is_control or is_transactional:
            raise KwireError(f"magic {magic} has no headers, producers, transactions or control batches")
        if compression == "zstd":
            raise KwireError("zstd needs magic 2")
    elif magic != 2:
        raise KwireError(f"no magic {magic}; there are 0, 1 and 2")
    attributes = NAMES.index(compression) | 8 * (log_append_time is not None) | 16 * is_transactional | 32 * is_control
    producer = (producer_id, producer_epoch, base_sequence)
    try:
        if magic < 2:
            return _message_set(listed, magic, compression, log_append_time)
        return _batch(listed, attributes, base_offset, log_append_time, partition_leader_epoch, producer)
    except StructError as error:
        raise KwireError(f"a number does not fit: {error}") from error


def rebuilt(
    data: bytes,
    records: Sequence[Record],
    *,
    compression: str | None = None,
    level: int | None = None,
    delete_horizon: int | None = None,
) -> bytes:
    """A batch of magic 2 with these of its records, and all else as it was: offsets, producer, epoch, last offset.

    delete_horizon: ms, when what is in it may go (KIP-534); it stands in place of the base timestamp.
    """
    header = v2.read_header(data, 0)
    attributes = header.attributes
    if compression is not None:
        attributes = attributes & ~7 | NAMES.index(compression)
    base_time = records[0].timestamp if records and records[0].timestamp is not None else header.base_timestamp
    if header.has_delete_horizon and delete_horizon is None:
        delete_horizon = header.base_timestamp
    if delete_horizon is not None:
        attributes, base_time = attributes | 64, delete_horizon
    times = [record.timestamp for record in records if record.timestamp is not None]
    newest = header.max_timestamp if header.log_append_time or not times else max(times)
    body = b"".join(_record(record, header.base_offset, base_time) for record in records)
    producer = (header.producer_id, header.producer_epoch, header.base_sequence)
    covered = pack(">hiqqqhii", attributes, header.last_offset_delta, base_time, newest, *producer, len(records))
    covered += compress(NAMES[attributes & 7], body, level=level) if records else b""
    head = pack(">qiib", header.base_offset, len(covered) + 9, header.partition_leader_epoch, 2)
    return head + pack(">I", v2.crc32c(covered)) + covered


def _batch(
    records: Sequence[Record],
    attributes: int,
    base_offset: int,
    log_append_time: int | None,
    partition_leader_epoch: int,
    producer: tuple[int, int, int],
) -> bytes:
    times = [record.timestamp if record.timestamp is not None else -1 for record in records]
    base_time = times[0] if times else -1
    max_time = log_append_time if log_append_time is not None else max(times, default=-1)
    last = max((record.offset for record in records), default=base_offset) - base_offset
    body = b"".join(_record(record, base_offset, base_time) for record in records)
    covered = pack(">hiqqqhii", attributes, last, base_time, max_time, *producer, len(records))
    covered += compress(NAMES[attributes & 7], body)
    head = pack(">qiib", base_offset, len(covered) + 9, partition_leader_epoch, 2)
    return head + pack(">I", v2.crc32c(covered)) + covered


def _record(record: Record, base_offset: int, base_time: int) -> bytes:
    time = record.timestamp if record.timestamp is not None else -1
    parts = [b"\0", write_varint(time - base_time), write_varint(record.offset - base_offset)]
    parts += [*_sized(record.key), *_sized(record.value), write_varint(len(record.headers))]
    for key, value in record.headers:
        parts += [*_sized(key.encode("utf-8", "surrogateescape")), *_sized(value)]
    body = b"".join(parts)
    return write_varint(len(body)) + body


def _sized(data: bytes | None) -> tuple[bytes, bytes]:
    return (write_varint(-1), b"") if data is None else (write_varint(len(data)), data)


def _message_set(records: Sequence[Record], magic: int, compression: str, log_append_time: int | None) -> bytes:
    """Messages one behind the other, or one message that wraps them compressed."""
    stamp = 8 if magic == 1 and log_append_time is not None else 0

    def time_of(record: Record) -> int:
        if log_append_time is not None:
            return log_append_time
        return record.timestamp if record.timestamp is not None else -1

    if compression == "none":
        return b"".join(_message(r.offset, magic, stamp, time_of(r), r.key, r.value) for r in records)
    if not records:
        return b""
    first = records[0].offset if magic == 1 else 0
    inner = b"".join(
        _message(r.offset - first, magic, 0 if magic == 0 else stamp, time_of(r), r.key, r.value) for r in records
    )
    latest = max(time_of(record) for record in records)
    packed = compress(compression, inner, magic)
    return _message(records[-1].offset, magic, NAMES.index(compression) | stamp, latest, None, packed)


def _message(offset: int, magic: int, attributes: int, time: int, key: bytes | None, value: bytes | None) -> bytes:
    covered = pack(">bb", magic, attributes) + (pack(">q", time) if magic == 1 else b"")
    for part in (key, value):
        covered += pack(">i", -1) if part is None else pack(">i", len(part)) + part
    return pack(">qiI", offset, len(covered) + 4, v2.crc32(covered)) + covered
