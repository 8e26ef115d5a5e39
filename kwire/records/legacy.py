"""Messages of magic 0 and 1, which message sets consist of (Kafka's LegacyRecord and AbstractLegacyRecordBatch).

     0 Offset int64    12 Crc uint32, over 16 to the end    17 Attributes int8      18 (magic 1) Timestamp int64
     8 Size int32      16 Magic int8                        then Key and Value, each an int32 length and its bytes

A compressed message wraps a message set in its value. Offsets inside are absolute in magic 0; in magic 1 they are
relative, and the wrapper has the offset of the last one (KIP-31). With log append time the wrapper's timestamp counts.
"""

from __future__ import annotations

from struct import unpack_from
from typing import NamedTuple

from kwire.errors import DecodeError

CRC_AT, ATTRIBUTES_AT = 12, 17
MIN_SIZE = (26, 34)  # whole messages with null key and value, by magic


class LegacyMessage(NamedTuple):
    """A message at a place in a buffer: start and end are its bytes, the offset's included."""

    start: int
    end: int
    offset: int
    size: int
    crc: int
    magic: int
    attributes: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None


def read_message(data: bytes, pos: int, where: str) -> LegacyMessage:
    """The message at pos; the caller has seen that it is whole. Raises DecodeError."""
    offset, size, crc, magic, attributes = unpack_from(">qiIbb", data, pos)
    end = pos + 12 + size
    timestamp = None
    at = pos + 18
    if end - pos < MIN_SIZE[magic]:
        raise DecodeError("records", where, pos, f"a message of {end - pos} bytes, the least is {MIN_SIZE[magic]}")
    if magic == 1:
        (timestamp,) = unpack_from(">q", data, at)
        at += 8
    key, at = _bytes(data, at, end, f"{where}.Key")
    value, at = _bytes(data, at, end, f"{where}.Value")
    return LegacyMessage(pos, end, offset, size, crc, magic, attributes, timestamp, key, value)


def _bytes(data: bytes, pos: int, end: int, where: str) -> tuple[bytes | None, int]:
    if pos + 4 > end:
        raise DecodeError("records", where, pos, f"needs 4 bytes at offset {pos}, has {max(0, end - pos)}")
    (size,) = unpack_from(">i", data, pos)
    pos += 4
    if size < 0:
        return None, pos
    if pos + size > end:
        raise DecodeError("records", where, pos, f"needs {size:,} bytes at offset {pos}, has {end - pos:,}")
    return data[pos : pos + size], pos + size
