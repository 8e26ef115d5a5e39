"""Rows of the table connections, kept until every answer is read that may tell their brokers' node ids.

They are few bytes each; those beyond MEMORY bytes wait in a temporary file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

import pyarrow as pa

from kwire.session.broker_ids import BrokerIds
from kwire.tables.schemas import schema_of

MEMORY = 32 << 20
TABLE, BROKER = "connections", "broker_id"


class HeldConnections:
    """add(rows), then release(ids) gives all rows with the ids. columns: those that are wanted; None: all. memory:
    bytes beyond which they wait in a file."""

    def __init__(self, columns: Collection[str] | None = None, memory: int = MEMORY) -> None:
        self._columns, self._memory = columns, memory
        # the ids are found by the connections' names
        self.columns = columns if columns is None or BROKER not in columns else {*columns, "connection"}
        self._file: Any = None
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keeps rows with the columns in self.columns."""
        if self._writer is None:
            self._file = SpooledTemporaryFile(self._memory)  # noqa: SIM115 closed by release()
            self._writer = pa.ipc.new_stream(self._file, schema_of(TABLE, self.columns))
        self._writer.write_batch(batch)

    def release(self, ids: BrokerIds) -> Iterator[pa.RecordBatch]:
        """The rows, in the order in which they were added."""
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        names = schema_of(TABLE, self._columns).names
        for batch in pa.ipc.open_stream(self._file):
            yield with_broker_ids(batch, ids).select(names)
        self._file.close()
        self._writer = None


def with_broker_ids(batch: pa.RecordBatch, ids: BrokerIds) -> pa.RecordBatch:
    """Rows of the table connections with the node ids of their brokers."""
    if BROKER not in batch.schema.names:
        return batch
    ends = [name.rpartition("#")[0].rpartition(">")[2] for name in batch.column("connection").to_pylist()]
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns[BROKER] = pa.array(map(ids.of, ends), pa.int32())
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)
