"""Captures that are no files: a binary column of them, and packets that come as Kafka messages.

A value is a capture with its header, pcap or pcapng, packed or not. In a binary column each stands for itself. Messages
follow each other: the key names the capture point, the value holds its next packets, partition and offset say in which
order (what spark-sql-kafka gives as key, value, partition, offset). They are landed as files, which the stream of files
then reads; a message that comes a second time lands in the same file.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kwire.errors import KwireError
from kwire.pipeline.columns import ddl
from kwire.session.reader import Settings
from kwire.tables.build import tables_of
from kwire.tables.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNFIT = re.compile(r"[^\w.-]+")  # for a file's name


def from_column(
    frame: DataFrame, table: str = "messages", content: str = "content", name: str = "path",
    settings: Settings | None = None,
) -> DataFrame:  # fmt: skip
    """A table of the captures in a column, as of format("binaryFile"). name: the column that says how each is called.
    What is no capture gets a row in the table quality, and none elsewhere."""
    limits = settings or Settings()

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, data in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                yield from _one(str(path), data or b"", table, limits)

    return frame.select(name, content).mapInArrow(run, ddl(table))


def land(frame: DataFrame, folder: str) -> int:
    """Writes messages of packets as files into a folder that all workers see; how many."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for key, value, partition, offset in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if value:
                    _land(folder, key, value, partition, offset)
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows], pa.int64())], ["landed"])

    chosen = frame.selectExpr("cast(key as binary) as key", "cast(value as binary) as value", "partition", "offset")
    return sum(row.landed for row in chosen.mapInArrow(run, "landed long").collect())


def _one(path: str, data: bytes, table: str, limits: Settings) -> Iterator[pa.RecordBatch]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, UNFIT.sub("_", os.path.basename(path.rstrip("/"))) or "capture")
        file.write_bytes(data)
        try:
            yield from tables_of([file], [table], limits)[table].to_batches()
        except KwireError as error:
            if table == "quality":
                row = {"capture": file.name, "what": "damaged", "note": str(getattr(error, "problem", None) or error)}
                yield pa.RecordBatch.from_pylist([row], SCHEMAS[table])


def _land(folder: str, key: bytes | None, value: bytes, partition: int, offset: int) -> None:
    point = UNFIT.sub("_", (key or b"packets").decode("utf-8", "replace"))[:80]
    path = Path(folder, f"{point}-{partition:05}-{offset:019}.pcap")
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(value)
    os.replace(part, path)
