"""Batches of records that a batch's Produce requests bring, as flat columns: whose, to which partition, how many
records and bytes, with which codec."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.fetched import partitions_of
from kwire.codec.columnar import Numbers, Slices, Structs
from kwire.records.batch import COMPRESSION, MAGIC_AT, OFFSETS, SIZE, TRANSACTIONAL
from kwire.records.legacy import ATTRIBUTES_AT
from kwire.records.read import MAX_MAGIC
from kwire.wire.columns import Columns

if TYPE_CHECKING:
    from kwire.session.decoded import Bodies, Decoded
    from kwire.wire.columns import Ints


@dataclass(slots=True)
class Produced:
    """rows: the batch's; then, an element a partition: row; topic, a place in names; partition; start and size, of the
    records in buffer; records: how many the first batch says it has, -1 of message sets; codec and attributes of the
    first batch; magic, -1 of none."""

    names: list[str]
    rows: Ints
    row: Ints
    topic: Ints
    partition: Ints
    size: Ints
    records: Ints
    codec: Ints
    magic: Ints
    transactional: Ints
    start: Ints
    buffer: bytes

    def bytes_of(self, at: int) -> bytes:
        """The records of an element."""
        start = int(self.start[at])
        return self.buffer[start : start + int(self.size[at])]

    def __len__(self) -> int:
        return len(self.row)


@lru_cache(2)
def produced(decoded: Decoded, number: int) -> Produced:
    """The Produce requests of a kind, by its number in the batch."""
    bodies = decoded.requests(number)
    names: dict[str, int] = {}
    row, topic, partition, start, size, records, codec, magic, transactional = _columns(decoded, bodies, names)
    return Produced(
        list(names), bodies.rows, row, topic, partition, size, records, codec, magic, transactional, start,
        bodies.buffer,
    )  # fmt: skip


def _columns(decoded: Decoded, bodies: Bodies, names: dict[str, int]) -> tuple[Ints, ...]:
    row, topic, partitions = partitions_of(decoded, bodies, "TopicData", names, inside="PartitionData")
    if not isinstance(partitions, Structs):
        return (np.zeros(0, np.int64),) * 9
    index, records = partitions.fields["Index"], partitions.fields["Records"]
    assert isinstance(index, Numbers)
    assert isinstance(records, Slices)
    size = np.maximum(records.lengths, 0)
    read = _headers(Columns(bodies.buffer), records.starts, size)
    return row, topic, index.values.astype(np.int64), records.starts, size, *read


def _headers(data: Columns, start: Ints, size: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Number of records, codec, magic and whether it is transactional, of the first batch of each."""
    there = size > ATTRIBUTES_AT
    magic = np.where(there, data.u8(start + MAGIC_AT), -1)
    modern = (magic >= MAX_MAGIC) & (size >= SIZE)
    attributes = np.where(modern, data.u16(start + OFFSETS["attributes"]), data.u8(start + ATTRIBUTES_AT))
    records = np.where(modern, data.u32(start + OFFSETS["record_count"]), -1)
    codec = np.where(there, attributes & COMPRESSION, 0)
    return records, codec, magic, (modern & (attributes & TRANSACTIONAL > 0)).astype(np.int64)
