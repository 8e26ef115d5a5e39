"""The steps of a job on Spark: survey the splits, stitch on the driver, write what each split made.

Survey and rows are made in one go. Rows stay on the side of Python, in files (spill.py); only surveys come to the
driver. Once they are stitched, the rows get their names and numbers in place and are written, by the executors.
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
from pyspark import TaskContext

from kwire.pipeline.hive import Hive, WrittenFile
from kwire.pipeline.plan import Task, TaskPlan, read_task, survey_with_rows, wanted
from kwire.pipeline.provisional import fixed
from kwire.pipeline.spill import Spill, rows_of
from kwire.pipeline.splits import Split
from kwire.pipeline.survey import Survey
from kwire.pipeline.workers import few_collections
from kwire.session.reader import Settings
from kwire.tables.build import BodyTexts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = pa.schema([("data", pa.binary())])
SPLITS = 4  # that a writing task takes, so that files are few
TASK, OPENED = 32 << 20, 1 << 20  # bytes that fill a task with small files; what opening one counts for


@dataclass(frozen=True, slots=True)
class Job:
    """Which tables, and how captures are read."""

    names: tuple[str, ...]
    settings: Settings = field(default_factory=Settings)
    bodies: BodyTexts | None = None


@dataclass(slots=True)
class Surveyed:
    """What the splits of a run came to: surveys, with the files of rows that go with them, by table."""

    spark: SparkSession
    splits: Sequence[Split]
    surveys: list[Survey]
    files: list[dict[str, str]]
    seams: int  # bytes that travelled


def survey_splits(
    spark: SparkSession, splits: Sequence[Split], job: Job, staged: str, finals: bool = False
) -> Surveyed:  # fmt: skip
    """Reads all splits, small files several in a task. Their rows go below the folder, which all workers see. finals:
    as survey has it."""
    tasks = packed(splits)
    frame = spark.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(
        _surveying(tasks, job, os.path.join(staged, "rows"), finals), "data binary"
    )
    rows = [bytes(row.data) for row in frame.collect()]
    made: list[tuple[Survey, dict[str, str]]] = [pickle.loads(zlib.decompress(data)) for data in rows]
    surveys, files = [survey for survey, _ in made], [files for _, files in made]
    return Surveyed(spark, splits, surveys, files, sum(map(len, rows)))


def write_rows(surveyed: Surveyed, plan: TaskPlan, job: Job, staged: str, tag: str) -> list[WrittenFile]:
    """Writes the rows of all splits, and those of the stitch, into files below a folder."""
    spark = surveyed.spark
    files = {
        (survey.split.path, survey.split.number): files
        for survey, files in zip(surveyed.surveys, surveyed.files, strict=True)
    }
    made = [(files[task.split.path, task.split.number], task.ordinals) for task in plan.tasks if task.made]
    again = [task for task in plan.tasks if not task.made]
    out: list[WrittenFile] = []
    if made:
        known = spark.sparkContext.broadcast((made, plan.names))
        parts = min(len(made), max(2 * spark.sparkContext.defaultParallelism, len(made) // SPLITS))
        frame = spark.range(0, len(made), 1, parts)
        out += _collected(frame.mapInArrow(_writing(known, staged, tag), "data binary"))
    if again:
        frame = spark.range(0, len(again), 1, len(again))
        out += _collected(frame.mapInArrow(_reading(again, plan.names, job, staged, tag), "data binary"))
    hive = Hive(staged, f"{tag}-stitched")
    for table, batch in plan.rows:
        hive.write(table, batch)
    return out + hive.close()


def packed(splits: Iterable[Split]) -> list[list[Split]]:
    """Splits by the task that reads them, in their order: each in its own, but for small files."""
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


def _surveying(tasks: list[list[Split]], job: Job, folder: str, finals: bool) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for split in (split for number in _numbers(batches) for split in tasks[number]):
            tag = _task()
            spill = Spill(folder, tag)
            with few_collections():
                made = survey_with_rows(
                    split, job.names, spill.write, job.settings, wanted(job.names), bodies=job.bodies,
                    finals=finals,
                )  # fmt: skip
            made.final.keep(folder, tag)
            yield _data(zlib.compress(pickle.dumps((made, spill.close()))))

    return run


def _writing(known: Any, staged: str, tag: str) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made, names = known.value
        hive = Hive(staged, f"{tag}-{_task()}")
        for number in _numbers(batches):
            files, fixes = made[number]
            for table, path in files.items():
                for batch in rows_of(path):
                    hive.write(table, fixed(table, batch, fixes, names))
        yield _data(pickle.dumps(hive.close()))

    return run


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _data(data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], schema=DATA)


def _reading(tasks: list[Task], names: dict[UUID, str], job: Job, staged: str, tag: str) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        hive = Hive(staged, f"{tag}-{_task()}-again")
        for number in _numbers(batches):
            with few_collections():
                read_task(tasks[number], job.names, hive.write, job.settings, names, bodies=job.bodies)
        yield _data(pickle.dumps(hive.close()))

    return run


def _collected(frame: DataFrame) -> list[WrittenFile]:
    return [written for row in frame.collect() for written in pickle.loads(row.data)]


def _task() -> str:
    """A name that no other attempt at the same task has."""
    context = TaskContext.get()
    return f"{context.partitionId() if context else 0:05}-{uuid4().hex[:8]}"
