"""The steps of a job on Spark: survey the splits, stitch on the driver, write what each split made.

Survey and rows are made in one go, in one crossing into Python: a row of the intermediate frame is a survey or a batch
of a table in Arrow's own bytes. It stays where it was made; only surveys come to the driver. Once they are stitched,
the batches get their names and numbers in place and are written, by the executors.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pyarrow as pa
from pyspark import StorageLevel, TaskContext

from kwire.pipeline.hive import Hive, Written
from kwire.pipeline.plan import Plan, Task, read_task, survey_with_rows, wanted
from kwire.pipeline.provisional import fixed
from kwire.pipeline.splits import Split
from kwire.pipeline.survey import Survey
from kwire.session.reader import Settings
from kwire.session.record import BodyTexts
from kwire.tables.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SURVEY = "survey"
MADE = pa.schema([("split", pa.int64()), ("what", pa.string()), ("data", pa.binary())])
DONE = pa.schema([("data", pa.binary())])
BATCH = 1 << 22  # bytes of Arrow that make a row
SPLITS = 4  # that a writing task takes, so that files are few


@dataclass(frozen=True, slots=True)
class Job:
    """Which tables, and how captures are read."""

    names: tuple[str, ...]
    settings: Settings = field(default_factory=Settings)
    bodies: BodyTexts | None = None


@dataclass(slots=True)
class Surveyed:
    """What the splits of a run came to: surveys for the driver, rows that lie with the executors."""

    spark: SparkSession
    frame: DataFrame
    splits: Sequence[Split]
    surveys: list[Survey]
    seams: int  # bytes that travelled

    def release(self) -> None:
        """The rows are not needed any more."""
        self.frame.unpersist()


def survey_splits(spark: SparkSession, splits: Sequence[Split], job: Job) -> Surveyed:
    """Reads all splits, each in a task of its own."""
    frame = spark.range(0, len(splits), 1, max(len(splits), 1)).mapInArrow(
        _surveying(list(splits), job), "split long, what string, data binary"
    )
    frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    rows = frame.filter(frame.what == SURVEY).select("data").collect()
    surveys = [pickle.loads(zlib.decompress(row.data)) for row in rows]
    return Surveyed(spark, frame, splits, surveys, sum(len(row.data) for row in rows))


def write_rows(surveyed: Surveyed, plan: Plan, job: Job, staged: str, tag: str) -> list[Written]:
    """Writes the rows of all splits, and those of the stitch, into files below a folder."""
    spark = surveyed.spark
    places = {(split.path, split.number): number for number, split in enumerate(surveyed.splits)}
    made = {places[task.split.path, task.split.number]: task for task in plan.tasks if task.made}
    again = [task for task in plan.tasks if not task.made]
    out: list[Written] = []
    if made:
        known = spark.sparkContext.broadcast(({at: task.ordinals for at, task in made.items()}, plan.names))
        parts = max(2 * spark.sparkContext.defaultParallelism, len(surveyed.splits) // SPLITS)
        frame = surveyed.frame.filter(surveyed.frame.what != SURVEY).coalesce(parts)
        out += _collected(frame.mapInArrow(_writing(known, staged, tag), "data binary"))
    if again:
        frame = spark.range(0, len(again), 1, len(again))
        out += _collected(frame.mapInArrow(_reading(again, plan.names, job, staged, tag), "data binary"))
    hive = Hive(staged, f"{tag}-stitched")
    for table, batch in plan.rows:
        hive.write(table, batch)
    return out + hive.close()


def serialized(batches: Iterable[pa.RecordBatch], table: str) -> bytes:
    """Batches of a table as Arrow's own bytes."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, SCHEMAS[table], options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _surveying(splits: list[Split], job: Job) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _survey_one(number, splits[number], job)

    return run


def _survey_one(number: int, split: Split, job: Job) -> Iterator[pa.RecordBatch]:
    waiting: dict[str, list[pa.RecordBatch]] = {}
    made = survey_with_rows(
        split, job.names, lambda table, batch: waiting.setdefault(table, []).append(batch), job.settings,
        wanted(job.names), bodies=job.bodies,
    )  # fmt: skip
    data = zlib.compress(pickle.dumps(made), 1)
    yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([SURVEY]), pa.array([data])], schema=MADE)
    if made.error is not None:
        return
    for table, batches in waiting.items():
        group: list[pa.RecordBatch] = []
        for batch in [*batches, None]:
            if batch is not None:
                group.append(batch)
            if group and (batch is None or sum(kept.nbytes for kept in group) > BATCH):
                data = serialized(group, table)
                group = []
                yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([table]), pa.array([data])], schema=MADE)


def _writing(known: Any, staged: str, tag: str) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fixes, names = known.value
        hive = Hive(staged, f"{tag}-{_task()}")
        for table, number, batch in _unpacked(batches):
            if number in fixes:
                hive.write(table, fixed(table, batch, fixes[number], names))
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(hive.close())])], schema=DONE)

    return run


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    for batch in batches:
        for number, table, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            for rows in pa.ipc.open_stream(data):
                yield table, number, rows


def _reading(tasks: list[Task], names: dict[UUID, str], job: Job, staged: str, tag: str) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        hive = Hive(staged, f"{tag}-{_task()}-again")
        for batch in batches:
            for number in batch.column(0).to_pylist():
                read_task(tasks[number], job.names, hive.write, job.settings, names, bodies=job.bodies)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(hive.close())])], schema=DONE)

    return run


def _collected(frame: DataFrame) -> list[Written]:
    return [written for row in frame.collect() for written in pickle.loads(row.data)]


def _task() -> str:
    """A name that no other attempt at the same task has."""
    context = TaskContext.get()
    return f"{context.partitionId() if context else 0:05}-{uuid4().hex[:8]}"


def staging(folder: str) -> str:
    """A folder in which a run keeps what is not done."""
    return os.path.join(folder, f".kwire-{uuid4().hex[:12]}")
