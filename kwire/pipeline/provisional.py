"""Replaces provisional names and numbers in rows that were made before the stitch.

A split does not know its connections' names, how many frames and bytes came before, or all topic names. Its rows have
an ordinal as the connection, count from where the split began to read, and have marked ids as topics; fixed() replaces
these column by column, and drops rows of parts that the stitch rejected.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.pipeline.survey import Fix, LearnedNames
from kwire.tables.held_connections import with_broker_ids
from kwire.tables.schemas import SCHEMAS
from kwire.wire import uuids

MARK = "\0"  # no topic's name holds it
PACKETS = frozenset({"packet", "last_packet", "request_packet", "response_packet"})
PLACED = {"messages": ("index", "position"), "bodies": ("index",)}


class ProvisionalNames(dict[UUID, str]):
    """Gives marked ids as topic names."""

    def get(self, ident: UUID, default: Any = None) -> Any:  # noqa: ARG002
        return MARK + uuids.to_text(ident)


def provisional_name(ordinal: int) -> str:
    """The name of a connection until the stitch."""
    return str(ordinal)


def fixed(table: str, batch: pa.RecordBatch, fixes: dict[int, Fix], names: LearnedNames) -> pa.RecordBatch:
    """The rows of accepted parts with final values. fixes: by the connection's ordinal."""
    coded = batch.column("connection").dictionary_encode()
    ordinals = [int(text) for text in coded.dictionary.to_pylist()]
    found = [fixes.get(ordinal) for ordinal in ordinals]
    which = coded.indices.to_numpy()
    columns = {name: batch.column(name) for name in batch.schema.names}
    if table == "connections":  # the stitch makes the row of those that it read on
        found = [fix if fix is not None and fix.final else None for fix in found]
    nobody = Fix("", "", 0, (0, 0), (0, 0), ())
    known = [fix or nobody for fix in found]
    for name, texts in (("capture", [fix.capture for fix in known]), ("connection", [fix.connection for fix in known])):
        columns[name] = pa.array(texts, pa.string()).take(coded.indices)
    indexes = np.array([fix.indexes for fix in known], np.int64).reshape(-1, 2)
    if table in PLACED:
        side = pc.equal(columns["kind"], "response").to_numpy(zero_copy_only=False).astype(np.intp)
        columns["index"] = _plus(columns["index"], indexes[which, side])
        if table == "messages":
            bases = np.array([fix.bases for fix in known], np.int64).reshape(-1, 2)
            columns["position"] = _plus(columns["position"], bases[which, side])
    elif table == "exchanges":
        columns["request_index"] = _plus(columns["request_index"], indexes[which, 0])
        columns["response_index"] = _plus(columns["response_index"], indexes[which, 1])
    packets = np.array([fix.packets for fix in known], np.int64)
    for name in PACKETS.intersection(columns):
        columns[name] = _plus(columns[name], packets[which])
    if "topic" in columns:
        columns["topic"] = _named(columns["topic"], names.topics)
    out = pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=SCHEMAS[table])
    out = with_broker_ids(out, names.broker_ids)
    if all(found):
        return out
    good = np.array([fix is not None for fix in found], bool)
    return out.filter(pa.array(good[which]))


def _plus(column: pa.Array, more: np.ndarray) -> pa.Array:
    return pc.add(column, pa.array(more))


def _named(column: pa.Array, names: dict[UUID, str]) -> pa.Array:
    coded = column.dictionary_encode()
    texts = {uuids.to_text(ident): name for ident, name in names.items()} | {
        uuids.to_text(UUID(int=1)): names.get(UUID(int=1), "__cluster_metadata")
    }
    found = [texts.get(text[1:], text[1:]) if text.startswith(MARK) else text for text in coded.dictionary.to_pylist()]
    return pa.array(found, pa.string()).take(coded.indices)
