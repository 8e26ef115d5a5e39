"""Rows between the steps of a job: compressed Arrow IPC, some megabytes of a table at a time, kept by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

MOST = 1 << 25  # bytes: fits into Spark's memory


class RowBytes:
    """write(table, batch) adds rows; close() returns the pieces as (table, bytes). most: bytes of rows per piece."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._open: dict[str, tuple[pa.BufferOutputStream, Any]] = {}
        self._sizes: dict[str, int] = {}
        self._done: list[tuple[str, pa.Buffer]] = []

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows."""
        known = self._open.get(table)
        if known is None:
            sink = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            known = self._open[table] = sink, pa.ipc.new_stream(sink, batch.schema, options=options)
        known[1].write_batch(batch)
        self._sizes[table] = self._sizes.get(table, 0) + batch.nbytes
        if self._sizes[table] > self._most:
            self._end(table)

    def close(self) -> list[tuple[str, bytes]]:
        """All rows as (table, bytes)."""
        for table in list(self._open):
            self._end(table)
        return [(table, data.to_pybytes()) for table, data in self._done]

    def _end(self, table: str) -> None:
        sink, writer = self._open.pop(table)
        writer.close()
        self._done.append((table, sink.getvalue()))
        del self._sizes[table]


def rows_of(data: bytes | pa.Buffer) -> Iterator[pa.RecordBatch]:
    """The rows of a piece."""
    yield from pa.ipc.open_stream(data)
