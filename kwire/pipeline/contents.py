"""Captures that are no files here: in a binary column, in another file system, packets that come as Kafka messages.

A value is a capture with its header, pcap or pcapng, packed or not. In a binary column each stands for itself. Messages
follow each other: the key names the capture point, the value holds its next packets, partition and offset say in which
order (what spark-sql-kafka gives as key, value, partition, offset). They are landed as files, which the stream of files
then reads; a message that comes a second time lands in the same file. What lies in a file system of Hadoop's (hdfs:,
s3a:, gs: and others) comes by Spark's binaryFile, each file as a whole by one executor, and is landed too; then it is
cut into splits as any file. That source takes no file above 2 GiB.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from kwire.errors import KwireError
from kwire.pipeline.columns import ddl
from kwire.session.reader import Settings
from kwire.tables.build import tables_of
from kwire.tables.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNFIT = re.compile(r"[^\w.-]+")  # for a file's name
AT_ONCE = 1 << 26  # bytes that go to Python in a batch, unless a file has more


class Unreachable(KwireError):
    """Another file system does not give its files."""


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


def bring(spark: SparkSession, paths: Sequence[str], folder: str) -> list[str]:
    """Copies files, and the files of folders, from any file system of Hadoop's into a folder that all workers see.
    Where they are now. Raises Unreachable."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = zip(batch.column(0).to_pylist(), batch.column(1), strict=True)
            landed = [_copy(folder, path, content.as_buffer()) for path, content in found]
            yield pa.RecordBatch.from_arrays([pa.array(landed, pa.string())], ["landed"])

    most = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(most, None)
    spark.conf.set(most, AT_ONCE)
    try:
        files = spark.read.format("binaryFile").load(list(paths)).select("path", "content")
        return sorted(row.landed for row in files.mapInArrow(run, "landed string").collect())
    except (PySparkException, Py4JError) as error:
        raise Unreachable(f"{', '.join(paths)}: {_reason(error)}") from error
    finally:
        if before is None:
            spark.conf.unset(most)
        else:
            spark.conf.set(most, before)


def _reason(error: Exception) -> str:
    """The line of a Java exception that says it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    causes = [line for line in lines if "Exception: " in line]
    return (causes or lines or ["unknown"])[-1].rpartition("Exception: ")[2][:200]


def _copy(folder: str, path: str, content: pa.Buffer) -> str:
    """Under its own name, which the tables show, in a folder for the path."""
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


def _land(folder: str, key: bytes | None, value: bytes, partition: int, offset: int) -> None:
    point = UNFIT.sub("_", (key or b"packets").decode("utf-8", "replace"))[:80]
    path = Path(folder, f"{point}-{partition:05}-{offset:019}.pcap")
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(value)
    os.replace(part, path)
