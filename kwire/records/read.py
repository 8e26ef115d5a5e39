"""Bytes of type records to Batch and Record objects: every magic, every compression.

Batches stand one behind the other; a Fetch response may cut the last one anywhere, which is normal: it is left out and
its bytes are counted. What cannot be a batch at all is a DecodeError; a wrong checksum, or content that does not
decompress or parse, is said in the batch's note, and its header and the records up to there stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import NamedTuple

from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.errors import DecodeError, KwireError
from kwire.records import batch as v2
from kwire.records import legacy
from kwire.records.compression import LIMIT, RECORD, TOTAL, Budget, name_of

MAX_MAGIC = 2


class Record(NamedTuple):
    """offset is absolute; timestamp in ms since the epoch, None in magic 0; headers are (key, value or None)."""

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class Batch(NamedTuple):
    """A batch, or in magic 0 and 1 a message (with what it wraps, when it is compressed).

    timestamp_type is "CreateTime", "LogAppendTime" or, in magic 0, "NoTimestampType". crc_ok tells whether the checksum
    fits; note why records could not all be read. size counts the batch's bytes from its base offset on.
    """

    base_offset: int
    last_offset: int
    magic: int
    compression: str
    timestamp_type: str
    max_timestamp: int | None
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    is_transactional: bool
    is_control: bool
    crc: int
    crc_ok: bool
    size: int
    records: list[Record]
    note: str | None = None


class Batches(list[Batch]):
    """The whole batches; truncated_bytes counts those of a cut last one."""

    truncated_bytes: int = 0


def read_records(
    data: bytes | bytearray | memoryview, limit: int = LIMIT, total: int = TOTAL, thresholds: Thresholds = DEFAULT
) -> Batches:
    """All batches in data. limit bounds what one of them may decompress to, bytes, total what all may, each record
    counted with RECORD bytes more; of what is beyond, the batch's note says that it was not opened. Raises DecodeError.
    """
    raw = bytes(data)
    budget = Budget(total)
    out = Batches()
    end = 0
    for start, end in walk(raw):
        if raw[start + v2.MAGIC_AT] == MAX_MAGIC:
            out.append(_read_v2(raw, start, end, limit, budget, thresholds.records))
        else:
            out.append(_read_legacy(raw, start, end, len(out), limit, budget))
    out.truncated_bytes = len(raw) - end
    return out


def walk(data: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of each whole batch or message. Raises DecodeError for what cannot be one."""
    pos = number = 0
    while len(data) - pos > v2.MAGIC_AT:
        (length,) = unpack_from(">i", data, pos + 8)
        magic = data[pos + v2.MAGIC_AT]
        if magic > MAX_MAGIC:
            raise DecodeError("records", f"[{number}].Magic", pos + v2.MAGIC_AT, f"magic {magic}, there are 0, 1 and 2")
        least = v2.SIZE if magic == MAX_MAGIC else legacy.MIN_SIZE[magic]
        end = pos + v2.LOG_OVERHEAD + length
        if end - pos < least:
            reason = f"a length of {length:,}, the least for magic {magic} is {least - v2.LOG_OVERHEAD}"
            raise DecodeError("records", f"[{number}].BatchLength", pos + 8, reason)
        if end > len(data):
            return
        yield pos, end
        pos, number = end, number + 1


# ---------------------------------------------------------------- magic 2


def _read_v2(data: bytes, start: int, end: int, limit: int, budget: Budget, few: int) -> Batch:
    header = v2.read_header(data, start)
    note = None
    records: list[Record] = []
    try:
        payload, pos = data, start + v2.SIZE
        if header.compression != "none":
            payload = budget.decompress(header.compression, data[pos:end], limit, records=header.record_count)
            pos = 0
            stop = len(payload)
        else:
            stop = end
        if header.record_count < few or not _by_columns(records, payload, pos, stop, header):
            records_into(records, payload, pos, stop, header)
    except KwireError as error:
        note = str(error)
    except (IndexError, ValueError):
        note = f"record {len(records)} of {header.record_count} cannot be read"
    timestamp_type = "LogAppendTime" if header.log_append_time else "CreateTime"
    return Batch(
        header.base_offset, header.base_offset + header.last_offset_delta, 2, header.compression, timestamp_type,
        header.max_timestamp, header.partition_leader_epoch, header.producer_id, header.producer_epoch,
        header.base_sequence, v2.sequence_after(header.base_sequence, header.last_offset_delta),
        header.is_transactional, header.is_control, header.crc,
        v2.crc32c(memoryview(data)[start + v2.CRC_START : end]) == header.crc, end - start, records, note,
    )  # fmt: skip


def _by_columns(out: list[Record], data: bytes, pos: int, end: int, header: v2.Header) -> bool:
    """The same as records_into for large batches, through columns; False when they cannot be read so, or numpy is not
    installed."""
    try:
        from kwire.records.columns import of_payload
    except ImportError:
        return False

    try:
        found = of_payload(data, pos, end, header)
        rows = zip(
            found.offsets.tolist(), found.timestamps.tolist(),
            found.key_starts.tolist(), (found.key_starts + found.key_lengths).tolist(),
            found.value_starts.tolist(), (found.value_starts + found.value_lengths).tolist(),
            found.header_counts.tolist(), found.header_starts.tolist(), found.header_ends.tolist(), strict=True,
        )  # fmt: skip
        append, make = out.append, tuple.__new__
        for offset, timestamp, key, key_end, value, value_end, count, headers_at, stop in rows:
            headers: list[tuple[str, bytes | None]] = []
            if count and _headers(data, headers_at, count << 1, stop, headers) != stop:
                raise ValueError
            append(
                make(
                    Record,
                    (
                        offset,
                        timestamp,
                        data[key:key_end] if key_end >= key else None,
                        data[value:value_end] if value_end >= value else None,
                        headers,
                    ),
                )
            )
    except (IndexError, ValueError):
        out.clear()
        return False
    return True


def records_into(out: list[Record], data: bytes, pos: int, end: int, header: v2.Header) -> None:
    """Appends the records of a batch. Raises IndexError, ValueError or DecodeError at the first that does not parse.

    Varints are inlined for their first byte: nearly all are one byte long.
    """
    if header.record_count < 0:
        raise DecodeError("records", "RecordCount", pos, f"a number of records of {header.record_count:,}")
    base_offset, base_time = header.base_offset, header.base_timestamp
    fixed_time = header.max_timestamp if header.log_append_time else None
    append, make = out.append, tuple.__new__
    for _ in range(header.record_count):
        size = data[pos]
        pos += 1
        if size > 127:
            size, pos = _varint(data, pos, size)
        stop = pos + (size >> 1)
        if size & 1 or stop > end:
            raise ValueError
        pos += 1  # the record's attributes: unused
        delta = data[pos]
        pos += 1
        if delta > 127:
            delta, pos = _varint(data, pos, delta)
        timestamp = base_time + ((delta >> 1) ^ -(delta & 1)) if fixed_time is None else fixed_time
        delta = data[pos]
        pos += 1
        if delta > 127:
            delta, pos = _varint(data, pos, delta)
        offset = base_offset + ((delta >> 1) ^ -(delta & 1))
        size = data[pos]
        pos += 1
        if size > 127:
            size, pos = _varint(data, pos, size)
        if size & 1:
            key = None
        else:
            key = data[pos : pos + (size >> 1)]
            pos += size >> 1
        size = data[pos]
        pos += 1
        if size > 127:
            size, pos = _varint(data, pos, size)
        if size & 1:
            value = None
        else:
            value = data[pos : pos + (size >> 1)]
            pos += size >> 1
        count = data[pos]
        pos += 1
        if count > 127:
            count, pos = _varint(data, pos, count)
        headers: list[tuple[str, bytes | None]] = []
        if count:
            pos = _headers(data, pos, count, stop, headers)
        if pos != stop:
            raise ValueError
        append(make(Record, (offset, timestamp, key, value, headers)))
    if pos != end:
        raise DecodeError("records", "", pos, f"left over behind the last record, in bytes: {end - pos:,}")


def _varint(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """The rest of a varint whose first byte was read, still zigzag; up to 64 bits."""
    value, shift = first & 0x7F, 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, pos
        shift += 7
        if shift > 63:
            raise ValueError


def _headers(data: bytes, pos: int, count: int, stop: int, out: list[tuple[str, bytes | None]]) -> int:
    """Appends the headers at pos, whose count is still zigzag; gives the position behind them."""
    if count & 1 or count >> 1 > stop - pos:
        raise ValueError
    for _ in range(count >> 1):
        size, pos = _varint(data, pos + 1, data[pos]) if data[pos] > 127 else (data[pos], pos + 1)
        if size & 1:
            raise ValueError
        key = data[pos : pos + (size >> 1)].decode("utf-8", "surrogateescape")
        pos += size >> 1
        size, pos = _varint(data, pos + 1, data[pos]) if data[pos] > 127 else (data[pos], pos + 1)
        value = None if size & 1 else data[pos : pos + (size >> 1)]
        pos += 0 if size & 1 else size >> 1
        out.append((key, value))
    return pos


# ---------------------------------------------------------------- magic 0 and 1


def _read_legacy(data: bytes, start: int, end: int, number: int, limit: int, budget: Budget) -> Batch:
    message = legacy.read_message(data, start, f"[{number}]")
    compression = name_of(message.attributes)
    append_time = message.magic == 1 and bool(message.attributes & 8)
    note = None
    records: list[Record] = []
    if compression == "none":
        records.append(Record(message.offset, message.timestamp, message.key, message.value, []))
    else:
        try:
            records += _unwrap(message, limit, budget, append_time, f"[{number}]")
        except KwireError as error:
            note = str(error)
    kind = "NoTimestampType" if message.magic == 0 else "LogAppendTime" if append_time else "CreateTime"
    return Batch(
        records[0].offset if records else message.offset, message.offset, message.magic, compression, kind,
        message.timestamp, -1, -1, -1, -1, -1, False, False, message.crc,
        v2.crc32(memoryview(data)[start + 16 : end]) == message.crc, end - start, records, note,
    )  # fmt: skip


def _unwrap(
    wrapper: legacy.LegacyMessage, limit: int, budget: Budget, append_time: bool, where: str
) -> Iterator[Record]:
    """The messages inside a compressed one, with absolute offsets."""
    if wrapper.value is None:
        raise DecodeError("records", where, wrapper.start, "a compressed message without a value")
    inner = budget.decompress(name_of(wrapper.attributes), wrapper.value, limit, wrapper.magic)
    budget.charge(RECORD * sum(1 for _ in walk(inner)))
    messages: list[legacy.LegacyMessage] = []
    for start, _ in walk(inner):
        if inner[start + v2.MAGIC_AT] != wrapper.magic:
            reason = f"magic {inner[start + v2.MAGIC_AT]} inside a compressed message of magic {wrapper.magic}"
            raise DecodeError("records", where, wrapper.start, reason)
        messages.append(legacy.read_message(inner, start, f"{where}.[{len(messages)}]"))
    if any(message.attributes & 7 for message in messages):
        raise DecodeError("records", where, wrapper.start, "a compressed message inside a compressed one")
    base = wrapper.offset - messages[-1].offset if wrapper.magic == 1 and messages else 0
    for message in messages:
        timestamp = wrapper.timestamp if append_time else message.timestamp
        yield Record(base + message.offset, timestamp, message.key, message.value, [])
    end = messages[-1].end if messages else 0
    if end < len(inner):
        reason = f"left over behind the last whole message in it, in bytes: {len(inner) - end:,}"
        raise DecodeError("records", where, wrapper.start, reason)
