"""Fetches of a batch as flat columns: an element for each partition that was asked for, and one for each that was
answered. Made once for all detectors; what the columnar codec leaves alone is read one by one into the same columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kwire.codec.columnar import Column, Lists, Numbers, Slices, Structs
from kwire.wire import uuids

if TYPE_CHECKING:
    from kwire.session.decoded import Decoded
    from kwire.wire.columns import Ints

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


@dataclass(slots=True)
class _Build:
    """names: topics as numbers; the columns, as parts that are joined in the end."""

    names: dict[str, int] = field(default_factory=dict)
    rows: list[Ints] = field(default_factory=list)
    topics: list[Ints] = field(default_factory=list)
    sizes: list[Ints] = field(default_factory=list)
    values: list[dict[str, Ints]] = field(default_factory=list)

    def flat(self, wanted: Iterable[str]) -> Flat:
        values = {name: _joined([part[name] for part in self.values]) for name in wanted}
        return Flat(list(self.names), _joined(self.rows), _joined(self.topics), values, _joined(self.sizes))


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@lru_cache(2)
def fetched(decoded: Decoded, number: int) -> Fetched:
    """The fetches of a kind, by its number in the batch."""
    bodies = decoded.of(number)
    asked, answered = _Build(), _Build()
    _columns(decoded, bodies.rows, bodies.asked.fields.get("Topics"), ASKED, asked)
    _columns(decoded, bodies.rows, bodies.answered.fields.get("Responses"), ANSWERED, answered)
    top = {name: [_numbers(bodies.asked, name)] for name in TOP}
    racks = [_racks(bodies.asked)]
    rows = bodies.left.tolist()
    whole = []
    left: dict[str, list[int]] = {name: [] for name in TOP}
    left_racks = []
    for row in rows:
        exchange = decoded.batch[row]
        body = exchange.request.body() if exchange.request else None
        if body is None:
            continue
        whole.append(row)
        for name in TOP:
            left[name].append(int(body.get(name, -1)))
        left_racks.append(int(bool(body["RackId"])) if "RackId" in body else -1)
        named = exchange.connection.topics.name
        _body(row, body.get("Topics") or (), ASKED, asked, named)
        answer = exchange.response.body() if exchange.response else None
        _body(row, (answer or {}).get("Responses") or (), ANSWERED, answered, named)
    for name in TOP:
        top[name].append(np.array(left[name], np.int64))
    racks.append(np.array(left_racks, np.int64))
    places = np.concatenate([bodies.rows, np.array(whole, np.int64)])
    joined = {name: _joined(parts) for name, parts in top.items()}
    return Fetched(places, joined, _joined(racks), asked.flat(ASKED), answered.flat(ANSWERED))


def _numbers(structs: Structs, name: str) -> Ints:
    column = structs.fields.get(name)
    return column.values.astype(np.int64) if isinstance(column, Numbers) else np.full(len(structs), -1, np.int64)


def _racks(structs: Structs) -> Ints:
    column = structs.fields.get("RackId")
    return (column.lengths > 0).astype(np.int64) if isinstance(column, Slices) else np.full(len(structs), -1, np.int64)


def _columns(decoded: Decoded, rows: Ints, column: Column | None, wanted: Iterable[str], to: _Build) -> None:
    if not isinstance(column, Lists) or not isinstance(column.flat, Structs):
        return
    topics = column.flat
    inner = topics.fields.get("Partitions")
    if not isinstance(inner, Lists) or not isinstance(inner.flat, Structs) or not len(inner.flat):
        return
    row_of_topic = np.repeat(rows, np.diff(column.offsets))
    topic = numbered(decoded, topics, row_of_topic, to.names)
    counts = np.diff(inner.offsets)
    to.rows.append(np.repeat(row_of_topic, counts))
    to.topics.append(np.repeat(topic, counts))
    to.values.append({name: _numbers(inner.flat, name) for name in wanted})
    records = inner.flat.fields.get("Records")
    none = np.zeros(len(inner.flat), np.int64)
    to.sizes.append(np.maximum(records.lengths, 0) if isinstance(records, Slices) else none)


def numbered(decoded: Decoded, topics: Structs, rows: Ints, names: dict[str, int]) -> Ints:
    """The topics' numbers in names, which grows; named as Topic, Name or TopicId. rows: of the batch. Ids are told
    apart by connection, as each cluster has names of its own."""
    batch, buffer = decoded.batch, decoded.batch.buffer
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


def _body(row: int, topics: Any, wanted: Iterable[str], to: _Build, named: Any) -> None:
    """One body's partitions, read one by one."""
    for topic in topics:
        name = topic["Topic"] if "Topic" in topic else named(topic["TopicId"])
        number = to.names.setdefault(str(name), len(to.names))
        parts = topic["Partitions"]
        to.rows.append(np.full(len(parts), row, np.int64))
        to.topics.append(np.full(len(parts), number, np.int64))
        to.values.append({field: np.array([int(part.get(field, -1)) for part in parts], np.int64) for field in wanted})
        to.sizes.append(np.array([len(part.get("Records") or b"") for part in parts], np.int64))
