"""Rows of the tables partitions and batches, one kind (API and version) at a time.

partition_columns.py finds the partitions of both sides, partition_join.py joins them, batch_headers.py reads the
headers of the record batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.codec.columnar import Lists, Numbers, Slices
from kwire.schema.keys import FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE
from kwire.session.decoded import Bodies, Decoded
from kwire.tables.arrow import chosen, error_names, numbers, slices, take
from kwire.tables.batch_headers import COMPRESSIONS, Headers, columns, headers
from kwire.tables.columns import EXCHANGE
from kwire.tables.partition_columns import NamedPartitions, PartitionNames
from kwire.tables.partition_join import JoinedPartitions, join
from kwire.tables.schemas import Makes, record_batch
from kwire.wire.columns import Columns, Ints, tally

Table = tuple[str, pa.RecordBatch]
OFFSETS = {  # source of the column offset: request (0) or response (1), and field
    PRODUCE: (1, "BaseOffset"), FETCH: (0, "FetchOffset"), LIST_OFFSETS: (1, "Offset"),
    OFFSET_COMMIT: (0, "CommittedOffset"), OFFSET_FETCH: (1, "CommittedOffset"),
}  # fmt: skip
OLD_OFFSETS = "OldStyleOffsets"  # of ListOffsets v0: an array, of which the first counts
PARTITIONED = tuple(OFFSETS)
UNKNOWN = -1  # Kafka's value for an unknown offset or node


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The bodies of a kind, read. turn: the side with records: requests (0) or responses (1)."""

    key: int
    asked: Bodies
    names: PartitionNames
    joined: JoinedPartitions
    turn: int
    records: Slices | None
    batches: Headers | None


def rows_of(
    decoded: Decoded, number: int, head: pa.RecordBatch, tables: Collection[str], wanted: Collection[str] | None
) -> Iterator[Table]:
    """(table name, rows) for these tables. number: index into batch.kinds; head: the first columns, for all exchanges
    of the batch; wanted: make only these columns, None: all."""
    read = _read(decoded, number)
    if "partitions" in tables and len(read.joined):
        makes = _begin(read, head, np.arange(len(read.joined))) | _partition(read)
        yield "partitions", record_batch("partitions", makes, wanted)
    if "batches" in tables and read.batches is not None and len(read.batches):
        makes = _begin(read, head, read.joined.rows[read.turn][read.batches.chain])
        makes |= columns(read.batches, read.joined.sides[read.turn].buffer)
        yield "batches", record_batch("batches", makes, wanted)


def _read(decoded: Decoded, number: int) -> _Found:
    batch, asked = decoded.batch, decoded.requests(number)
    kind = batch.kinds[number]
    assert kind is not None
    key, names = kind.key, PartitionNames(batch.connections[0].topics)
    joined, turn = join((names.of(asked), names.of(decoded.responses(number)))), int(key != PRODUCE)
    side = joined.sides[turn]
    records = _records(side) if key <= FETCH else None
    batches = None
    if records is not None:
        batches = headers(side.buffer, Columns(side.buffer), records.starts, records.lengths, kind.thresholds.chains)
    return _Found(key, asked, names, joined, turn, records, batches)


def _records(side: NamedPartitions) -> Slices | None:
    column = side.fields.get("Records")
    if not isinstance(column, Slices):
        return None
    valid = None if column.valid is None else column.valid[side.places]
    return Slices(column.kind, column.starts[side.places], column.lengths[side.places], valid)


def _begin(read: _Found, head: pa.RecordBatch, rows: Ints) -> Makes:
    """Makers of the first columns of both tables, for these joined rows."""
    joined, names = read.joined, read.names

    def of_head(name: str) -> Callable[[], pa.Array]:
        return lambda: take(head.column(name), joined.owner[rows])

    return {name: of_head(name) for name, _, _ in EXCHANGE} | {
        "topic": lambda: _texts(names.topics.array, joined.topic[rows]),
        "partition": lambda: numbers(joined.number[rows], pa.int32()),
    }


def _partition(read: _Found) -> Makes:
    """Makers of the other columns of the table partitions."""
    joined = read.joined
    turn, offset = OFFSETS[read.key]
    return {
        "group": lambda: _group(read),
        "topic_id": lambda: _texts(read.names.idents.array, joined.ident),
        "offset": lambda: (
            _old_offset(joined) if OLD_OFFSETS in joined.sides[1].fields else joined.numbers(turn, offset, pa.int64())
        ),
        "timestamp": lambda: joined.numbers(0, "Timestamp", pa.int64()),
        "high_watermark": lambda: joined.numbers(1, "HighWatermark", pa.int64()),
        "last_stable_offset": lambda: joined.numbers(1, "LastStableOffset", pa.int64(), UNKNOWN),
        "log_start_offset": lambda: joined.numbers(1, "LogStartOffset", pa.int64(), UNKNOWN),
        "preferred_read_replica": lambda: joined.numbers(1, "PreferredReadReplica", pa.int32(), UNKNOWN),
        "error_code": lambda: joined.numbers(1, "ErrorCode", pa.int16(), 0),
        "error": lambda: error_names(*joined.field(1, "ErrorCode", 0)),
    } | _sums(read)


def _group(read: _Found) -> pa.Array:
    """The group of each row: its own where a request may hold several, else the request's."""
    joined, asked = read.joined, read.asked
    if len(read.names.groups.known):
        groups = read.names.groups
        return _texts(groups.array, np.where(joined.group == groups.known.get(""), -1, joined.group))
    said = asked.columns.fields.get("GroupId")
    if not isinstance(said, Slices):
        return pa.nulls(len(joined), pa.string())
    texts = slices(asked.buffer, said.starts, said.lengths, said.valid, pa.string())
    return _texts(texts, asked.places(joined.owner))


def _old_offset(joined: JoinedPartitions) -> pa.Array:
    """The first offset of each partition in ListOffsets v0."""
    side = joined.sides[1]
    column = side.fields[OLD_OFFSETS]
    if not isinstance(column, Lists) or not isinstance(column.flat, Numbers):
        return pa.nulls(len(joined), pa.int64())
    begin, there = column.offsets[:-1][side.places], np.diff(column.offsets)[side.places] > 0
    return joined.taken(1, np.append(column.flat.values, 0)[begin], pa.int64(), there)


def _texts(texts: pa.Array, which: Ints) -> pa.Array:
    """texts[which]; null for -1."""
    return take(texts, which, which >= 0)


def _sums(read: _Found) -> Makes:
    """Makers of bytes, batches, records and first compression of each partition's records."""
    records, batches, joined, turn = read.records, read.batches, read.joined, read.turn
    if records is None or batches is None:
        nulls = {"bytes": pa.int64(), "batches": pa.int32(), "records": pa.int64(), "compression": pa.string()}
        return {name: partial(pa.nulls, len(joined), kind) for name, kind in nulls.items()}
    count = len(records)

    def counted(weights: NDArray[Any] | None = None) -> Ints:
        return tally(batches.chain, weights, count).astype(np.int64)

    def said() -> NDArray[np.bool_]:
        plain: NDArray[np.bool_] = counted(batches.wraps) == 0
        return plain if records.valid is None else plain & records.valid

    def first() -> pa.Array:
        codes = np.full(count, -1)
        codes[batches.chain[::-1]] = batches.compression[::-1]
        found, there = joined.spread(turn, codes, codes >= 0)
        return chosen(COMPRESSIONS, found, pa.string(), there)

    return {
        "bytes": lambda: joined.taken(turn, records.lengths, pa.int64(), records.valid),
        "batches": lambda: joined.taken(turn, counted(), pa.int32(), records.valid),
        "records": lambda: joined.taken(turn, counted(batches.records), pa.int64(), said()),
        "compression": first,
    }
