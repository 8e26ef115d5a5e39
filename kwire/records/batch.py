"""The header of a record batch of magic 2, and the checksums of all magics (KIP-98; Kafka's DefaultRecordBatch).

 0 BaseOffset int64          23 LastOffsetDelta int32     51 ProducerEpoch int16
 8 BatchLength int32         27 BaseTimestamp int64       53 BaseSequence int32
12 PartitionLeaderEpoch      35 MaxTimestamp int64        57 RecordCount int32
16 Magic int8                43 ProducerId int64          61 records
17 Crc uint32, over 21 to the end: the base offset and the leader epoch are not covered, brokers set them
21 Attributes int16: bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from struct import Struct, calcsize
from typing import NamedTuple

from kwire.records.compression import name_of

FORMATS = "qiibIhiqqqhii"  # of Header's fields in their order, big-endian; struct and numpy read the letters alike
HEADER = Struct(">" + FORMATS)
SIZE = HEADER.size  # 61
LOG_OVERHEAD = 12  # base offset and length, which BatchLength does not count
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 7, 8, 16, 32, 64  # masks of the attributes
BLOCK = 64 << 10  # bytes that are copied for google_crc32c at once, which takes no memoryview: they stay in the cache


class Header(NamedTuple):
    """The fields as they are in the bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def compression(self) -> str:
        """none, gzip, snappy, lz4 or zstd."""
        return name_of(self.attributes)

    @property
    def log_append_time(self) -> bool:
        """The broker's time counts for all records, not theirs."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Written inside a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Holds a marker, not data."""
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """base_timestamp is when tombstones and markers may go (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON)


OFFSETS = dict(zip(Header._fields, accumulate((calcsize(">" + letter) for letter in FORMATS), initial=0), strict=False))
MAGIC_AT = OFFSETS["magic"]  # the same place in every magic
CRC_START = OFFSETS["attributes"]


def read_header(data: bytes | memoryview, pos: int) -> Header:
    """The header at pos; the caller has seen that there are 61 bytes."""
    return Header(*HEADER.unpack_from(data, pos))


def crc32c(data: bytes | memoryview) -> int:
    """CRC-32C (Castagnoli), the checksum of magic 2; by a table where google_crc32c is not installed."""
    extend, crc = _fastest(), 0
    for start in range(0, len(data), BLOCK):
        crc = extend(crc, bytes(data[start : start + BLOCK]))
    return crc


@cache
def _fastest() -> Callable[[int, bytes], int]:
    try:
        import google_crc32c
    except ImportError:
        return plain_crc32c
    extend: Callable[[int, bytes], int] = google_crc32c.extend
    return extend


def plain_crc32c(crc: int, data: bytes) -> int:
    """The checksum of more bytes after those of crc, a byte at a time."""
    table, crc = _castagnoli(), crc ^ 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _castagnoli() -> list[int]:
    """What each byte makes of the checksum, by its reflected polynomial (RFC 3720, appendix B.4)."""
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


def crc32(data: bytes | memoryview) -> int:
    """CRC-32 (zlib's), the checksum of magic 0 and 1."""
    return zlib.crc32(data)


def sequence_after(base: int, delta: int) -> int:
    """Sequences wrap to 0 after 2147483647; -1 is none (DefaultRecordBatch.incrementSequence)."""
    if base < 0:
        return -1
    return base + delta if base + delta <= 0x7FFFFFFF else base + delta - 0x80000000


def attribute_words(attributes: int, magic: int) -> str:
    """The flags of a batch (or a legacy message) spelled out: "gzip, create time, transactional"."""
    words = [name_of(attributes) if attributes & COMPRESSION else "not compressed"]
    if magic > 0:
        words.append("log append time" if attributes & LOG_APPEND_TIME else "create time")
    if magic > 1:
        flags = ((16, "transactional"), (32, "control"), (64, "delete horizon"))
        words += [word for bit, word in flags if attributes & bit]
    unused = attributes & (~0x7F if magic > 1 else ~0x0F if magic == 1 else ~0x07) & 0xFFFF
    return ", ".join(words) + (f", unused bits {unused:#x}" if unused else "")
