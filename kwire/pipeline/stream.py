"""kwire pipeline run --stream: captures as they arrive in a folder (Spark's file source) or as Kafka messages.

Spark tracks what is new in its checkpoint; kwire's state is beside it, one file per batch. A batch's files begin with
its number: a batch that is repeated after a crash starts from the state before it and replaces its files. At the end of
the stream, what still waits is written as if the captures ended there, into files that the next batch removes. Remote
captures are copied beside the state until no batch needs them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.pipeline import hive
from kwire.pipeline.binary_files import copied, small_batches
from kwire.pipeline.failures import in_a_line
from kwire.pipeline.increments import LATENESS, Advance, StreamState, load
from kwire.pipeline.job import Job, Surveyed, rows_by_split, survey_splits, write_rows
from kwire.pipeline.messages import arriving, is_topic, land
from kwire.pipeline.partitions import KEPT, OPEN, last_batch
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.plan import TaskPlan, survey_all, wanted
from kwire.pipeline.rollups import write_rollups
from kwire.pipeline.run import RunOutcome
from kwire.pipeline.splits import SIZE, plan
from kwire.staging import staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SNAPSHOTS = ("clients",)  # tables that each batch writes completely


@dataclass(slots=True)
class BatchStream:
    """Processes batches. folder: of the tables, with the state in a hidden subfolder. in_order: the captures are
    messages."""

    spark: SparkSession
    folder: str
    job: Job
    split_size: int = SIZE
    lateness: int = LATENESS
    in_order: bool = False
    outcome: RunOutcome = field(default_factory=RunOutcome)

    @property
    def checkpoint(self) -> str:
        """Spark's checkpoint folder."""
        return os.path.join(self.folder, KEPT, "checkpoint")

    def check(self) -> None:
        """Raises OutputError if the last batch's state is of a version of kwire that this one cannot go on from."""
        self._state(last_batch(self.folder))

    def batch(self, number: int, paths: Sequence[str]) -> None:
        """Processes the files of a batch; repeating it changes nothing."""
        self._take(number, self._state(number - 1), sorted(paths))

    def messages(self, number: int, frame: DataFrame) -> None:
        """Processes a batch of messages from Spark's connector."""
        state = self._state(number - 1)
        landed = land(frame, self._landed(number))
        self._take(number, state, [found.path for found in landed if state.hear(found.point, found.digest, found.sent)])

    def copies(self, number: int, frame: DataFrame) -> None:
        """Processes a batch of files from another file system, read by binaryFile."""
        self.batch(number, copied(frame, self._landed(number)))

    def _take(self, number: int, state: StreamState, paths: Sequence[str]) -> None:
        splits = plan(paths, self.split_size)
        with staging(self.folder) as staged, survey_splits(self.spark, splits, self.job) as surveyed:
            files = survey_all(splits, lambda _: surveyed.surveys, self.job.settings, wanted(self.job.names))
            made = self._advance().by(state, files)
            self._write(surveyed, made, f"batch-{number:08}", staged)
        self._save(number, state)

    def finish(self) -> None:
        """Writes what still waits, as if nothing more came; the state is not changed."""
        number = last_batch(self.folder)
        made = self._advance().by(self._state(number), [], final=True)
        with staging(self.folder) as staged:
            self._write(Surveyed(self.spark, [], []), replace_made(made), OPEN, staged)

    def _advance(self) -> Advance:
        return Advance(
            self.job.names, self.job.settings, self.job.bodies, self.lateness, in_order=self.in_order
        )  # fmt: skip

    def _write(self, surveyed: Surveyed, made: TaskPlan, tag: str, staged: str) -> None:
        there = {(split.path, split.number) for split in surveyed.splits}
        for task in made.tasks:  # rows of files that waited are made now
            task.made &= (task.split.path, task.split.number) in there
        with small_batches(self.spark):
            rows = rows_by_split(surveyed, made, self.job)
            written = write_rows(rows, self.job.names, made.names, staged, tag)
        for old in (OPEN, tag):
            hive.remove(self.folder, self.job.names, old + "-")
        replaced = [table for table in SNAPSHOTS if any(found.table == table for found in written)]
        hive.place(self.folder, staged, written, replaced)
        for name in self.job.names:
            Path(self.folder, name).mkdir(exist_ok=True)
        out = self.outcome
        out.rows |= dict.fromkeys(replaced, 0)
        for found in written:
            out.rows[found.table] = out.rows.get(found.table, 0) + found.rows
        out.packets += made.packets
        out.splits += len(surveyed.splits)
        out.size += sum(split.end - split.start for split in surveyed.splits)
        out.seams += surveyed.seams
        out.parts += made.parts
        out.failed |= made.failed

    def _landed(self, number: int) -> str:
        """The folder for copies of a batch's remote files."""
        return os.path.join(self.folder, KEPT, "landed", f"{number:08}")

    def _path(self, number: int) -> Path:
        return Path(self.folder, KEPT, f"state-{number:08}")

    def _state(self, number: int) -> StreamState:
        path = self._path(number)
        return load(path.read_bytes(), str(path)) if path.exists() else StreamState()

    def _save(self, number: int, state: StreamState) -> None:
        """Saves the state after a batch; the state before it and all waiting files are kept, in case the batch is
        repeated."""
        path = self._path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(state.saved())
        os.replace(part, path)
        for old in path.parent.glob("state-????????"):
            if int(old.name.removeprefix("state-")) < number - 1:
                old.unlink()
        landed = list(path.parent.glob("landed/*"))
        before = self._state(number - 1) if landed else state
        waiting = {Path(made.split.path) for kept in (before, state) for made, *_ in kept.waiting}
        for folder in landed:
            if not any(path.is_relative_to(folder) for path in waiting):
                shutil.rmtree(folder)


def replace_made(plan: TaskPlan) -> TaskPlan:
    """The plan with all splits to be read again."""
    plan.tasks = [replace(task, made=False) for task in plan.tasks]
    return plan


def run_stream(
    spark: SparkSession, source: str, folder: str, job: Job, *, split_size: int = SIZE, lateness: int = LATENESS,
    most: int | None = None, once: bool = True, rollups: bool = True, stop: Callable[[Any], None] | None = None,
) -> RunOutcome:  # fmt: skip
    """Reads the files of a folder, or a topic's messages, as they come. split_size: bytes; lateness: ns; most: files or
    messages per batch; once: process what is there, then end; otherwise stop(query) is called and returns when the
    query has ended. Raises NoTopic, OutputError, SparkFailed."""
    source, folder = local(source), local(folder)
    stream = BatchStream(spark, folder, job, split_size, lateness, is_topic(source))
    stream.check()
    with in_a_line():
        frame = arriving(spark, source, most) if stream.in_order else _files(spark, source, most)
        writer = frame.writeStream.foreachBatch(_taker(stream, source)).option("checkpointLocation", stream.checkpoint)
        query = (writer.trigger(availableNow=True) if once else writer).start()
        if stop is not None:
            stop(query)
        query.awaitTermination()
        stream.finish()
        if rollups:
            write_rollups(spark, folder, job.names)
    return stream.outcome


def _files(spark: SparkSession, source: str, most: int | None) -> DataFrame:
    reader = spark.readStream.format("binaryFile").schema(
        "path string, modificationTime timestamp, length bigint, content binary"
    )
    if most:
        reader = reader.option("maxFilesPerTrigger", most)
    files = reader.load(source)
    return files if is_elsewhere(source) else files.select("path")


def _taker(stream: BatchStream, source: str) -> Callable[[DataFrame, int], None]:
    """The foreachBatch function for this kind of source."""
    if stream.in_order:
        return lambda frame, number: stream.messages(number, frame)
    if is_elsewhere(source):
        return lambda frame, number: stream.copies(number, frame)
    return lambda frame, number: stream.batch(number, [local(row.path) for row in frame.collect()])
