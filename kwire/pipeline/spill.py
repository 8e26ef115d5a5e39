"""Rows between the steps of a job: for each table of a split a file of Arrow's own, in a folder that all workers see.

A task that dies or runs twice leaves files that nobody names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kwire.tables.schemas import SCHEMAS


class Spill:
    """write(table, batch) as rows come; close() gives the files by table. tag: what their names begin with."""

    def __init__(self, folder: str, tag: str) -> None:
        self._folder, self._tag = folder, tag
        self._writers: dict[str, Any] = {}

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows. Raises OSError."""
        known = self._writers.get(table)
        if known is None:
            os.makedirs(self._folder, exist_ok=True)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            known = self._writers[table] = pa.ipc.new_stream(self._path(table), SCHEMAS[table], options=options)
        known.write_batch(batch)

    def close(self) -> dict[str, str]:
        """All is on disk."""
        for writer in self._writers.values():
            writer.close()
        return {table: self._path(table) for table in self._writers}

    def _path(self, table: str) -> str:
        return os.path.join(self._folder, f"{self._tag}-{table}.arrows")


def rows_of(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file. Raises OSError."""
    with pa.memory_map(path) as file:
        yield from pa.ipc.open_stream(file)
