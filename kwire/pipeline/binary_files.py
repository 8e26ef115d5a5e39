"""Captures that are not local files: in a binary column, or in another file system.

In a binary column each value is a capture. Files that only Hadoop can open, not Arrow (stores.py), are read by Spark's
binaryFile, each by one executor, copied to a folder that all workers see, and then cut into splits like any file. That
source takes no file above 2 GiB.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from kwire.errors import FilesUnreachable, KwireError
from kwire.pipeline.catalog_tables import configured
from kwire.pipeline.columns import as_spark, ddl
from kwire.pipeline.failures import reason
from kwire.session.reader import Settings
from kwire.tables.build import tables_of
from kwire.tables.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNFIT = re.compile(r"[^\w.-]+")  # for a file's name
AT_ONCE = 1 << 26  # bytes per batch for Python, unless one file has more


def from_column(
    frame: DataFrame, table: str = "messages", content: str = "content", name: str = "path",
    settings: Settings | None = None,
) -> DataFrame:  # fmt: skip
    """A table of the captures in a binary column, such as that of format("binaryFile"). name: the column of their
    names. A value that is no capture gets a row in the table quality only."""
    limits = settings or Settings()

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, data in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                yield from (as_spark(rows, table) for rows in _one(str(path), data or b"", table, limits))

    return frame.select(name, content).mapInArrow(run, ddl(table))


def bring(spark: SparkSession, paths: Sequence[str], folder: str) -> list[str]:
    """Copies files, and the files of folders, from any Hadoop file system into a folder that all workers see; returns
    their new paths. Raises FilesUnreachable."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return copied(spark.read.format("binaryFile").load(list(paths)), folder)
    except (PySparkException, Py4JError) as error:
        raise FilesUnreachable(f"{', '.join(paths)}: {reason(error)}") from error


def copied(files: DataFrame, folder: str) -> list[str]:
    """Copies the files of a binaryFile frame, batch or stream, into a folder; returns their new paths."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = zip(batch.column(0).to_pylist(), batch.column(1), strict=True)
            landed = [_copy(folder, path, content.as_buffer()) for path, content in found]
            yield pa.RecordBatch.from_arrays([pa.array(landed, pa.string())], ["landed"])

    with small_batches(files.sparkSession):
        return sorted(row.landed for row in files.select("path", "content").mapInArrow(run, "landed string").collect())


@contextmanager
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Limits batches for Python to AT_ONCE bytes in this context."""
    with configured(spark, {"spark.sql.execution.arrow.maxBytesPerBatch": str(AT_ONCE)}):
        yield


def _copy(folder: str, path: str, content: pa.Buffer) -> str:
    """Writes a file under its own name, which the tables show, in a folder made from its path."""
    place = Path(folder, sha256(path.encode()).hexdigest()[:16])
    place.mkdir(parents=True, exist_ok=True)
    target = place / (path.rstrip("/").rpartition("/")[2] or "capture")
    part = target.with_name(f".{target.name[:200]}.{uuid4().hex[:8]}")
    part.write_bytes(content)
    os.replace(part, target)
    return str(target)


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
