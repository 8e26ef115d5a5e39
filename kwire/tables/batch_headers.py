"""Reads the headers of record batches, for thousands of partitions at once.

The first batches of all partitions are read together, then the second ones, and so on; the few long chains that remain
are walked one by one. A message of magic 0 or 1 counts as a batch; its fields are copied into the layout of a batch
header.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.codec.thresholds import DEFAULT
from kwire.errors import DecodeError
from kwire.records import batch as v2
from kwire.records import legacy
from kwire.records.compression import name_of
from kwire.records.read import MAX_MAGIC, walk
from kwire.tables.arrow import chosen, numbers
from kwire.wire.columns import Columns, Ints

Mask = NDArray[np.bool_]
NO_PRODUCER = NOT_SAID = -1
LEAST = np.array([*legacy.MIN_SIZE, v2.SIZE])  # least bytes by magic
COMPRESSIONS = [name_of(code) for code in range(8)]
HEADER = np.dtype([(name, ">" + letter) for name, letter in zip(v2.Header._fields, v2.FORMATS, strict=True)])


@dataclass(slots=True, eq=False)
class Headers:
    """Batches, one row each. chain: index of the records field it is in; number: its index there; start, end: offsets
    in the buffer; fields: its header, of dtype HEADER."""

    chain: Ints
    number: Ints
    start: Ints
    end: Ints
    fields: NDArray[Any]

    def __len__(self) -> int:
        return len(self.chain)

    def only(self, chosen: Mask) -> Headers:
        """The rows where chosen is True."""
        return Headers(*(getattr(self, name)[chosen] for name in Headers.__slots__))

    @property
    def records(self) -> Ints:
        """The number of records; 0 for a message that wraps others."""
        return np.where(self.wraps, 0, self.fields["record_count"].astype(np.int64))

    @property
    def wraps(self) -> Mask:
        """Mask of the messages of magic 0 and 1 that wrap compressed others, whose number is not known."""
        return np.asarray(self.old & (self.fields["record_count"] == NOT_SAID), bool)

    @property
    def old(self) -> Mask:
        """Mask of the rows of magic 0 and 1."""
        return np.asarray(self.fields["magic"] < MAX_MAGIC, bool)

    @property
    def compression(self) -> Ints:
        """Indexes into COMPRESSIONS."""
        return self.fields["attributes"].astype(np.int64) & v2.COMPRESSION


def headers(buffer: bytes, data: Columns, starts: Ints, lengths: Ints, few: int = DEFAULT.chains) -> Headers:
    """The batches in records fields (chains) at starts, of lengths bytes, sorted by chain and number. few: up to so
    many chains are walked one by one."""
    at, stops = starts.copy(), starts + lengths
    chains, places, ends, numbers = [], [], [], []
    open_ = np.flatnonzero(lengths > v2.MAGIC_AT)
    number = 0
    while len(open_) > few:
        here = at[open_]
        magic = data.u8(here + v2.MAGIC_AT)
        size = data.numbers(">i4", here + 8).astype(np.int64) + v2.LOG_OVERHEAD
        whole = (magic <= MAX_MAGIC) & (size >= LEAST[np.minimum(magic, MAX_MAGIC)]) & (here + size <= stops[open_])
        open_, here, behind = open_[whole], here[whole], (here + size)[whole]
        chains.append(open_)
        places.append(here)
        ends.append(behind)
        numbers.append(np.full(len(open_), number))
        at[open_] = behind
        open_ = open_[stops[open_] - behind > v2.MAGIC_AT]
        number += 1
    for chain in open_.tolist():
        begin = int(at[chain])
        spans = _walked(buffer[begin : stops[chain]])
        chains.append(np.full(len(spans), chain))
        places.append(spans[:, 0] + begin)
        ends.append(spans[:, 1] + begin)
        numbers.append(np.arange(len(spans)) + number)
    none = [np.zeros(0, np.int64)]
    owner, start, end, of_chain = (np.concatenate(each or none) for each in (chains, places, ends, numbers))
    order = np.lexsort((of_chain, owner))
    start = start[order]
    return Headers(owner[order], of_chain[order], start, end[order], _fields(data, start))


def _walked(records: bytes) -> Ints:
    """Start and end of each batch, shape (n, 2)."""
    spans: list[tuple[int, int]] = []
    with suppress(DecodeError):
        spans.extend(walk(records))
    return np.array(spans, np.int64).reshape(-1, 2)


def _fields(data: Columns, start: Ints) -> NDArray[Any]:
    """The headers at these offsets, of dtype HEADER; fields that magic 0 and 1 lack are 0, or -1 where that means none
    in Kafka."""
    old = np.flatnonzero(data.u8(start + v2.MAGIC_AT) < MAX_MAGIC)
    if not len(old):
        return data.records(HEADER, start)
    fields = data.records(HEADER, start).copy()
    here = start[old]
    magic, attributes = data.u8(here + v2.MAGIC_AT), data.u8(here + legacy.ATTRIBUTES_AT)
    timestamp = np.where(magic == 1, data.numbers(">i8", here + legacy.ATTRIBUTES_AT + 1), 0)
    wrapped = attributes & v2.COMPRESSION > 0
    for name, values in (
        ("base_offset", data.numbers(">i8", here)), ("magic", magic), ("crc", data.u32(here + legacy.CRC_AT)),
        ("attributes", attributes & (v2.COMPRESSION | v2.LOG_APPEND_TIME)), ("last_offset_delta", 0),
        ("base_timestamp", timestamp),
        ("max_timestamp", timestamp), ("producer_id", NO_PRODUCER), ("record_count", np.where(wrapped, NOT_SAID, 1)),
    ):  # fmt: skip
        fields[name][old] = values
    return fields


def columns(found: Headers, buffer: bytes) -> dict[str, Callable[[], pa.Array]]:
    """Makers of the columns of the table batches that come from headers, by name."""
    fields = found.fields

    def number(name: str, kind: pa.DataType, valid: Mask | None = None) -> pa.Array:
        return numbers(fields[name], kind, valid)

    def flag(bit: int) -> Mask:
        return np.asarray(fields["attributes"] & bit, bool)

    def timed() -> Mask:
        return np.asarray(fields["magic"] > 0, bool)

    def said() -> Mask:
        return np.asarray(~found.old | (fields["record_count"] != NOT_SAID), bool)

    def produced() -> Mask:
        return np.asarray(fields["producer_id"] != NO_PRODUCER, bool)

    return {
        "number": lambda: numbers(found.number, pa.int32()),
        "base_offset": lambda: number("base_offset", pa.int64()),
        "last_offset": lambda: _last_offset(fields),
        "records": lambda: number("record_count", pa.int32(), said()),
        "bytes": lambda: numbers(found.end - found.start, pa.int32()),
        "magic": lambda: number("magic", pa.int8()),
        "compression": lambda: chosen(COMPRESSIONS, found.compression, pa.string()),
        "timestamp_type": lambda: chosen(("create", "append"), flag(v2.LOG_APPEND_TIME), pa.string(), timed()),
        "first_timestamp": lambda: number("base_timestamp", pa.int64(), timed()),
        "max_timestamp": lambda: number("max_timestamp", pa.int64(), timed()),
        "producer_id": lambda: number("producer_id", pa.int64(), produced()),
        "producer_epoch": lambda: number("producer_epoch", pa.int16(), produced()),
        "base_sequence": lambda: number("base_sequence", pa.int32(), produced()),
        "is_transactional": lambda: numbers(flag(v2.TRANSACTIONAL), pa.bool_()),
        "is_control": lambda: numbers(flag(v2.CONTROL), pa.bool_()),
        "crc_ok": lambda: pa.array(_crc_ok(found, buffer), pa.bool_()),
    }


def _last_offset(fields: NDArray[Any]) -> pa.Array:
    """Offsets of the last records; null where they overflow 64 bits."""
    base, delta = fields["base_offset"].astype(np.int64), fields["last_offset_delta"].astype(np.int64)
    last = base + delta
    return numbers(last, pa.int64(), (last < base) == (delta < 0))


def _crc_ok(found: Headers, buffer: bytes) -> list[bool]:
    from google_crc32c import value

    columns = (found.old, found.start, found.end, found.fields["crc"])
    places = zip(*(column.tolist() for column in columns), strict=True)
    return [
        (zlib.crc32(buffer[start + v2.MAGIC_AT : end]) if old else value(buffer[start + v2.CRC_START : end])) == crc
        for old, start, end, crc in places
    ]
