"""Clients of a batch: counted by connection, client id and kind, with no object for an exchange."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kwire.analyze.client import Client
from kwire.codec.columnar import Lists, Slices, Structs
from kwire.records.batch import MAGIC_AT
from kwire.records.compression import name_of
from kwire.schema.keys import PRODUCE
from kwire.session.connection_info import ConnectionInfo
from kwire.session.decoded import Decoded
from kwire.wire.columns import Columns, Ints, tally

ENOUGH = MAGIC_AT + 6  # a batch's attributes, of which the second byte counts, lie behind its checksum


def clients_of(decoded: Decoded) -> Iterator[tuple[ConnectionInfo, Client]]:
    """The clients of each connection, as analyze.clients counts them. A bare token names no client: what it says is in
    the identity."""
    batch = decoded.batch
    names, name = batch.client_ids()
    whose, kinds = batch.connection * len(names) + name, len(batch.kinds)
    speaks = np.flatnonzero(batch.request.there & ~batch.token)
    groups, which = np.unique((whose * kinds + batch.kind)[speaks], return_inverse=True)
    counts, errors = tally(which), tally(which, batch.errors[speaks] > 0).astype(np.int64)
    sent = batch.request.time[speaks]
    times = sent[np.lexsort((sent, which))]
    behind = np.cumsum(counts)
    found: dict[int, tuple[ConnectionInfo, Client]] = {}
    columns = (groups, counts, errors, times[behind - counts], times[behind - 1])
    for group, count, wrong, first, last in zip(*(column.tolist() for column in columns), strict=True):
        who, kind = divmod(group, kinds)
        if who not in found:
            connection = batch.connections[who // len(names)]
            said = connection.identity
            client = Client(names[who % len(names)], said.software, said.software_version, first_time=first)
            found[who] = connection, client
        connection, client = found[who]
        client.meet(connection, batch.kinds[kind], count, wrong, first, last)
    for row, codec, count in _codecs(decoded, whose):
        found[row][1].compressions[codec] += count
    return iter(found.values())


def _codecs(decoded: Decoded, whose: Ints) -> Iterator[tuple[int, str, int]]:
    """Whose first batches of partitions are compressed how, and how often."""
    batch = decoded.batch
    for number, kind in enumerate(batch.kinds):
        if kind is None or kind.key != PRODUCE:
            continue
        bodies = decoded.requests(number)
        produced = _produced(bodies.columns)
        if produced is None:
            continue
        owner, records = produced
        there = records.lengths > ENOUGH
        start, data = records.starts[there], Columns(bodies.buffer)
        modern = data.u8(start + MAGIC_AT) >= 2
        codec = data.u8(start + np.where(modern, ENOUGH, MAGIC_AT + 1)) & 7
        codes, counts = np.unique(whose[bodies.rows[owner[there]]] * 8 + codec, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            yield code >> 3, name_of(code & 7), count


def _produced(body: Structs) -> tuple[Ints, Slices] | None:
    """The records of Produce requests, and whose they are; None where they are not where they should be."""
    topics = body.fields.get("TopicData")
    if not isinstance(topics, Lists) or not isinstance(topics.flat, Structs):
        return None
    partitions = topics.flat.fields.get("PartitionData")
    if not isinstance(partitions, Lists) or not isinstance(partitions.flat, Structs):
        return None
    records = partitions.flat.fields.get("Records")
    topic = np.arange(len(body)).repeat(np.diff(topics.offsets))
    return (topic.repeat(np.diff(partitions.offsets)), records) if isinstance(records, Slices) else None
