"""Fetches of a batch as flat columns: an element for each partition that was asked for, and one for each that was
answered. Made once for all detectors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kwire.codec.columnar import Column, Lists, Numbers, Slices, Structs
from kwire.wire import uuids
from kwire.wire.columns import Ints, repeat

if TYPE_CHECKING:
    from kwire.session.decoded import Bodies, Decoded

ANSWERED = (
    "PartitionIndex",
    "ErrorCode",
    "HighWatermark",
    "LastStableOffset",
    "LogStartOffset",
    "PreferredReadReplica",
)
ASKED = ("Partition", "FetchOffset", "PartitionMaxBytes")
TOP = ("MaxWaitMs", "MinBytes", "MaxBytes", "IsolationLevel", "SessionId", "ReplicaId")


@dataclass(slots=True)
class Flat:
    """Partitions one after the other. row: of the batch; topic: a place in names; values: fields by name, -1 where the
    version has none; size: bytes of records."""

    names: list[str]
    row: Ints
    topic: Ints
    values: dict[str, Ints]
    size: Ints

    def __len__(self) -> int:
        return len(self.row)


@dataclass(slots=True)
class Fetched:
    """rows: the batch's that are fetches; top: fields of their requests; racks: whether a RackId was named, -1 where
    the version has none; asked and answered: partitions."""

    rows: Ints
    top: dict[str, Ints]
    racks: Ints
    asked: Flat
    answered: Flat


@lru_cache(2)
def fetched(decoded: Decoded, number: int) -> Fetched:
    """The fetches of a kind, by its number in the batch."""
    asked, answered = decoded.requests(number), decoded.responses(number)
    top = {name: number_column(asked.columns, name) for name in TOP}
    return Fetched(
        asked.rows, top, _racks(asked.columns), _flat(decoded, asked, "Topics", ASKED),
        _flat(decoded, answered, "Responses", ANSWERED),
    )  # fmt: skip


def number_column(structs: Structs, name: str) -> Ints:
    """A field of these, -1 where the version has none."""
    column = structs.fields.get(name)
    return column.values.astype(np.int64) if isinstance(column, Numbers) else np.full(len(structs), -1, np.int64)


def _racks(structs: Structs) -> Ints:
    column = structs.fields.get("RackId")
    return (column.lengths > 0).astype(np.int64) if isinstance(column, Slices) else np.full(len(structs), -1, np.int64)


def _flat(decoded: Decoded, bodies: Bodies, field: str, wanted: Iterable[str]) -> Flat:
    names: dict[str, int] = {}
    row, topic, inner = partitions_of(decoded, bodies, field, names)
    if not isinstance(inner, Structs):
        nothing = np.zeros(0, np.int64)
        return Flat([], nothing, nothing, dict.fromkeys(wanted, nothing), nothing)
    records = inner.fields.get("Records")
    sizes = np.maximum(records.lengths, 0) if isinstance(records, Slices) else np.zeros(len(inner), np.int64)
    return Flat(list(names), row, topic, {name: number_column(inner, name) for name in wanted}, sizes)


def partitions_of(
    decoded: Decoded, bodies: Bodies, field: str, names: dict[str, int], inside: str = "Partitions"
) -> tuple[Ints, Ints, Column | None]:
    """What a field of topics holds, an element a partition: the row of the batch, the topic (its number in names, which
    grows) and the partitions' own column; None where the version has none. inside: the name of a topic's partitions."""
    column, nothing = bodies.columns.fields.get(field), np.zeros(0, np.int64)
    topics = column.flat if isinstance(column, Lists) else None
    inner = topics.fields.get(inside) if isinstance(topics, Structs) else None
    if not isinstance(column, Lists) or not isinstance(topics, Structs) or not isinstance(inner, Lists):
        return nothing, nothing, None
    row_of_topic = repeat(bodies.rows, np.diff(column.offsets))
    topic = _numbered(decoded, topics, bodies.buffer, row_of_topic, names)
    counts = np.diff(inner.offsets)
    return repeat(row_of_topic, counts), repeat(topic, counts), inner.flat


def _numbered(decoded: Decoded, topics: Structs, buffer: bytes, rows: Ints, names: dict[str, int]) -> Ints:
    """The topics' numbers in names, which grows; named as Topic, Name or TopicId. buffer: of the columns; rows: of the
    batch. Ids are resolved by connection, since each cluster has its own names."""
    batch = decoded.batch
    texts = topics.fields.get("Topic") or topics.fields.get("Name")
    if isinstance(texts, Slices):
        spans = zip(texts.starts.tolist(), texts.lengths.tolist(), strict=True)
        raw = [buffer[at : at + size] for at, size in spans]
        known = {
            text: names.setdefault(text.decode("utf-8", "surrogateescape"), len(names)) for text in dict.fromkeys(raw)
        }
        return np.array([known[text] for text in raw], np.int64)
    ids = topics.fields.get("TopicId")
    if not isinstance(ids, Slices):
        return np.zeros(len(topics), np.int64)
    out: list[int] = []
    seen: dict[tuple[bytes, int], int] = {}
    for at, connection in zip(ids.starts.tolist(), batch.connection[rows].tolist(), strict=True):
        key = buffer[at : at + 16], connection
        if key not in seen:
            name = batch.connections[connection].topics.name(uuids.from_bytes(key[0]))
            seen[key] = names.setdefault(name, len(names))
        out.append(seen[key])
    return np.array(out, np.int64)
