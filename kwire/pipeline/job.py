"""The steps of a job on Spark: survey the splits, stitch on the driver, write what each split made.

Survey and rows are made in one pass. Rows stay with Spark, as compressed bytes on its executors' disks, recomputed if
one is lost; only surveys come to the driver. The final names and numbers from the stitch are joined to the rows of each
split and applied as they are written. No intermediate files of kwire's are needed, and no SparkContext.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import functions as F

from kwire.capture.tcp import Key
from kwire.pipeline.binary_files import small_batches
from kwire.pipeline.columns import as_spark, lake_ddl
from kwire.pipeline.connection_parts import ConnectionPart
from kwire.pipeline.final_connections import parts_between
from kwire.pipeline.hive import Hive, WrittenFile, days_of
from kwire.pipeline.lake_files import Store
from kwire.pipeline.plan import TaskPlan, read_task, survey_with_rows, wanted
from kwire.pipeline.provisional import fixed
from kwire.pipeline.row_bytes import RowBytes, rows_of
from kwire.pipeline.small_files import joined
from kwire.pipeline.splits import Split
from kwire.pipeline.survey import LearnedNames, Survey
from kwire.pipeline.workers import few_collections, task_done
from kwire.session.reader import Settings
from kwire.tables.build import BodyTexts
from kwire.tables.columns import JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MADE = "split int, name string, data binary"  # name: the table whose rows are in data, or one of these:
SURVEY, PARTS = "(survey)", "(parts)"
FINAL = "name string, data binary, fixes binary"  # fixes: final names and numbers; null when rows have them
SHAPE = pa.schema([("split", pa.int32()), ("name", pa.string()), ("data", pa.binary())])
SHAPE_FINAL = pa.schema([("name", pa.string()), ("data", pa.binary()), ("fixes", pa.binary())])
FIXES = pa.schema([("split", pa.int32()), ("fixes", pa.binary())])
DATA = pa.schema([("data", pa.binary())])
SPLITS, FEWEST = 4, 8  # splits per writing task, so that there are few files; least number of tasks
TASK, OPENED = 32 << 20, 1 << 20  # bytes of small files per task; the cost of opening one, in bytes
DISK = StorageLevel(True, False, False, False)


@dataclass(frozen=True, slots=True)
class Job:
    """The tables to make and the settings to read captures with."""

    names: tuple[str, ...]
    settings: Settings = field(default_factory=Settings)
    bodies: BodyTexts | None = None


@dataclass(slots=True)
class Surveyed:
    """The surveys of a run's splits, and a persisted frame with their rows."""

    spark: SparkSession
    splits: Sequence[Split]
    surveys: list[Survey]
    made: DataFrame | None = None
    seams: int = 0  # bytes sent to the driver

    def parts(self, apart: set[Key]) -> dict[Split, list[ConnectionPart]]:
        """The parts of final connections between these endpoints, by split."""
        if self.made is None:
            return {}
        rows = self.made.where(F.col("name") == PARTS).mapInArrow(_choosing(apart), MADE).collect()
        self.seams += sum(len(row.data) for row in rows)
        return {self.splits[row.split]: pickle.loads(row.data) for row in rows}


@contextmanager
def survey_splits(
    spark: SparkSession, splits: Sequence[Split], job: Job, finals: bool = False
) -> Iterator[Surveyed]:  # fmt: skip
    """Reads all splits, several small files per task; Spark keeps their rows in this context. finals: as in survey."""
    tasks, numbers = packed(splits), {split: number for number, split in enumerate(splits)}
    work = [[(numbers[split], split) for split in task] for task in tasks]
    made = spark.range(0, len(work), 1, max(len(work), 1)).mapInArrow(_surveying(work, job, finals), MADE).persist(DISK)
    try:
        with small_batches(spark):
            rows = sorted((row.split, bytes(row.data)) for row in made.where(F.col("name") == SURVEY).collect())
            surveys = [pickle.loads(zlib.decompress(data)) for _, data in rows]
            yield Surveyed(spark, splits, surveys, made, sum(len(data) for _, data in rows))
    finally:
        made.unpersist()


def rows_by_split(surveyed: Surveyed, plan: TaskPlan, job: Job) -> DataFrame:
    """A frame of schema FINAL with the rows of all splits, and of the stitch."""
    spark, numbers = surveyed.spark, {(split.path, split.number): at for at, split in enumerate(surveyed.splits)}
    known = [
        {"split": numbers[task.split.path, task.split.number], "fixes": pickle.dumps(task.ordinals)}
        for task in plan.tasks
        if task.made
    ]
    again = [task for task in plan.tasks if not task.made]
    stitched = RowBytes()
    for table, batch in plan.rows:
        stitched.write(table, batch)
    there = [{"name": name, "data": data} for name, data in stitched.close()]
    frames = [spark.createDataFrame(pa.Table.from_pylist(there, SHAPE_FINAL), FINAL)]
    if known and surveyed.made is not None:
        fixes = F.broadcast(spark.createDataFrame(pa.Table.from_pylist(known, FIXES)))
        frames.append(surveyed.made.join(fixes, "split").select(*SHAPE_FINAL.names))
    if again:
        frames.append(spark.range(0, len(again), 1, len(again)).mapInArrow(_reading(again, plan.names, job), FINAL))
    parts = max(len(known) // SPLITS, min(len(plan.tasks), FEWEST), 1)
    return reduce(lambda one, other: one.unionAll(other), frames).coalesce(parts)


def table_frame(rows: DataFrame, table: str, names: LearnedNames) -> DataFrame:
    """A table of the rows in Spark's types, with the columns of its partitions."""
    return rows.where(F.col("name") == table).mapInArrow(_naming(table, names), lake_ddl(table))


def write_rows(
    rows: DataFrame, tables: Sequence[str], names: LearnedNames, staged: str, tag: str, store: Store = None
) -> list[WrittenFile]:
    """Writes tables into Parquet files below staged, a folder that all workers see. store: its file system."""
    chosen = rows.where(F.col("name").isin(*tables)).mapInArrow(_writing(names, staged, tag, store), "data binary")
    files = [written for row in chosen.collect() for written in pickle.loads(row.data)]
    return joined(rows.sparkSession, staged, files, tag, store)


def packed(splits: Iterable[Split]) -> list[list[Split]]:
    """Groups splits into tasks, in order: one split each, except small files."""
    out: list[list[Split]] = []
    left = 0
    for split in splits:
        size = split.end - split.start + OPENED if split.whole else TASK
        if size > left:
            out.append([])
            left = TASK
        out[-1].append(split)
        left -= size
    return out


def _surveying(tasks: list[list[tuple[int, Split]]], job: Job, finals: bool) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, split in (split for task in _numbers(batches) for split in tasks[task]):
            out = RowBytes()
            with few_collections():
                made = survey_with_rows(
                    split, job.names, out.write, job.settings, wanted(job.names), bodies=job.bodies, finals=finals
                )
            parts = made.final.take_parts()
            more = [(PARTS, pickle.dumps(parts))] if parts else []
            for name, data in (*out.close(), *more, (SURVEY, zlib.compress(pickle.dumps(made)))):
                yield one_row(SHAPE, number, name, data)
            del out, made, parts, more, name, data
        task_done()

    return run


def _choosing(apart: set[Key]) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, data in zip(batch.column(0).to_pylist(), batch.column(2), strict=True):
                found = parts_between(pickle.loads(data.as_buffer()), apart)
                if found:
                    yield one_row(SHAPE, number, PARTS, pickle.dumps(found))

    return run


def _reading(tasks: list[Any], names: LearnedNames, job: Job) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in _numbers(batches):
            out = RowBytes()
            with few_collections():
                read_task(tasks[number], job.names, out.write, job.settings, names, bodies=job.bodies)
            for name, data in out.close():
                yield one_row(SHAPE_FINAL, name, data, None)

    return run


def _naming(table: str, names: LearnedNames) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, batch in _final_rows(batches, names):
            out = as_spark(batch.select(SCHEMAS[table].names), table).append_column("date", days_of(table, batch))
            if table in JUDGEMENTS:
                out = out.append_column("capture_point", batch.column("capture_point"))
            yield out

    return run


def _writing(names: LearnedNames, staged: str, tag: str, store: Store) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        hive = Hive(staged, f"{tag}-{_task()}", store)
        for table, batch in _final_rows(batches, names):
            hive.write(table, batch)
        yield one_row(DATA, pickle.dumps(hive.close()))
        del hive
        task_done()

    return run


def _final_rows(batches: Iterable[pa.RecordBatch], names: LearnedNames) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(table, rows with final names) of batches of schema FINAL."""
    said: tuple[bytes, Any] = b"", None
    for batch in batches:
        tables, pieces, known = (batch.column(name) for name in SHAPE_FINAL.names)
        for table, data, fixes in zip(tables.to_pylist(), pieces, known.to_pylist(), strict=True):
            if fixes is not None and fixes != said[0]:
                said = fixes, pickle.loads(fixes)
            for rows in rows_of(data.as_buffer()):
                yield table, rows if fixes is None else fixed(table, rows, said[1], names)


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def one_row(schema: pa.Schema, *values: object) -> pa.RecordBatch:
    """A batch of a single row."""
    return pa.RecordBatch.from_arrays(
        [pa.array([value], kind) for value, kind in zip(values, schema.types, strict=True)], schema=schema
    )


def _task() -> str:
    """A name unique to this attempt at the task."""
    context = TaskContext.get()
    return f"{context.partitionId() if context else 0:05}-{uuid4().hex[:8]}"
