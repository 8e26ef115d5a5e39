"""Batches of records that a batch's Produce requests bring, as flat columns: whose, to which partition, how many
records and bytes, with which codec. What the columnar codec leaves alone is read one by one into the same columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import topic_name
from kwire.analyze.fetched import numbered
from kwire.codec.columnar import Lists, Numbers, Slices, Structs
from kwire.wire.columns import Columns

if TYPE_CHECKING:
    from kwire.session.decoded import Decoded
    from kwire.wire.columns import Ints

MAGIC, ATTRIBUTES, COUNT, HEADER = 16, 21, 57, 61  # where a batch has them, and how long its header is (magic 2)
OLD_ATTRIBUTES = 17  # of a message set (magic 0 and 1)
CODECS, TRANSACTIONAL = 7, 16
OLDEST_MAGIC = 2


@dataclass(slots=True)
class Produced:
    """rows: the batch's; then, an element a partition: row; topic, a place in names; partition; start and size, of the
    records: in data, which is buffer's bytes or, for those read one by one, rest's; records: how many the first batch
    says it has, -1 of message sets; codec and attributes of the first batch; magic, -1 of none."""

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
    sample: list[bytes | None]  # None: at start in the batch's buffer
    start: Ints

    def bytes_of(self, at: int, buffer: bytes) -> bytes:
        """The records of an element."""
        kept = self.sample[at] if self.sample else None
        start = int(self.start[at])
        return buffer[start : start + int(self.size[at])] if kept is None else kept

    def __len__(self) -> int:
        return len(self.row)


@lru_cache(2)
def produced(decoded: Decoded, number: int) -> Produced:
    """The Produce requests of a kind, by its number in the batch."""
    bodies = decoded.of(number)
    names: dict[str, int] = {}
    parts = [_columns(decoded, bodies.rows, bodies.asked, names)]
    samples: list[bytes | None] = [None] * len(parts[0][0])
    own: list[tuple[int, int, int, bytes]] = []
    whole = []
    for row in bodies.left.tolist():
        exchange = decoded.batch[row]
        body = exchange.request.body() if exchange.request else None
        if body is None:
            continue
        whole.append(row)
        for topic in body["TopicData"]:
            at = names.setdefault(topic_name(exchange, topic), len(names))
            own += [(row, at, part["Index"], part.get("Records") or b"") for part in topic["PartitionData"]]
    if own:
        parts.append(_bodies(own))
        samples += [data for *_, data in own]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    row, topic, partition, start, size, records, codec, magic, transactional = columns
    rows = np.concatenate([bodies.rows, np.array(whole, np.int64)])
    return Produced(
        list(names), rows, row, topic, partition, size, records, codec, magic, transactional,
        samples if own else [], start,
    )  # fmt: skip


def _columns(decoded: Decoded, rows: Ints, asked: Structs, names: dict[str, int]) -> tuple[Ints, ...]:
    nothing = np.zeros(0, np.int64)
    topics = asked.fields.get("TopicData")
    if not isinstance(topics, Lists) or not isinstance(topics.flat, Structs):
        return (nothing,) * 9
    parts = topics.flat.fields.get("PartitionData")
    if not isinstance(parts, Lists) or not isinstance(parts.flat, Structs):
        return (nothing,) * 9
    row_of_topic = np.repeat(rows, np.diff(topics.offsets))
    topic = numbered(decoded, topics.flat, row_of_topic, names)
    counts = np.diff(parts.offsets)
    index, records = parts.flat.fields.get("Index"), parts.flat.fields.get("Records")
    if not isinstance(index, Numbers) or not isinstance(records, Slices):
        return (nothing,) * 9
    read = _headers(decoded.data, records.starts, np.maximum(records.lengths, 0))
    return (np.repeat(row_of_topic, counts), np.repeat(topic, counts), index.values.astype(np.int64), records.starts,
            np.maximum(records.lengths, 0), *read)  # fmt: skip


def _bodies(own: list[tuple[int, int, int, bytes]]) -> tuple[Ints, ...]:
    row, topic, index = (np.array([one[at] for one in own], np.int64) for at in range(3))
    sizes = np.array([len(data) for *_, data in own], np.int64)
    starts = np.cumsum(sizes) - sizes
    read = _headers(Columns(b"".join(data for *_, data in own)), starts, sizes)
    return row, topic, index, starts, sizes, *read


def _headers(data: Columns, start: Ints, size: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Number of records, codec, magic and whether it is transactional, of the first batch of each."""
    there = size > OLD_ATTRIBUTES
    magic = np.where(there, data.u8(start + MAGIC), -1)
    modern = (magic >= OLDEST_MAGIC) & (size >= HEADER)
    attributes = np.where(modern, data.u16(start + ATTRIBUTES), data.u8(start + OLD_ATTRIBUTES))
    records = np.where(modern, data.u32(start + COUNT), -1)
    codec = np.where(there, attributes & CODECS, 0)
    return records, codec, magic, (modern & (attributes & TRANSACTIONAL > 0)).astype(np.int64)
