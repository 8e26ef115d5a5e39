"""kwire pipeline run --stream: captures as they arrive in a folder, by Spark's own file source, or as Kafka messages.

Spark says what is new and keeps count of it in its checkpoint; what kwire keeps between two batches lies beside it, one
file for each batch. A batch's files begin with its number: a batch that runs a second time, after a crash, begins from
the state before it and writes the same files anew. What still waits when the stream ends is written too, as if the
captures ended there, into files that the next batch removes. What is not on this machine is landed beside the state
until no batch needs it.
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
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.plan import TaskPlan, survey_all, wanted
from kwire.pipeline.rollups import write_rollups
from kwire.pipeline.run import RunOutcome
from kwire.pipeline.splits import SIZE, plan
from kwire.staging import staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPEN = "open"  # what the files of what is not final begin with
SNAPSHOTS = ("clients",)  # tables of which each batch knows all rows
KEPT = ".kwire-stream"  # in the folder of the tables


@dataclass(slots=True)
class BatchStream:
    """Takes batches. folder: of the tables; the state lies in it, hidden. in_order: what comes are messages."""

    spark: SparkSession
    folder: str
    job: Job
    split_size: int = SIZE
    lateness: int = LATENESS
    in_order: bool = False
    outcome: RunOutcome = field(default_factory=RunOutcome)

    @property
    def checkpoint(self) -> str:
        """Spark's own."""
        return os.path.join(self.folder, KEPT, "checkpoint")

    def batch(self, number: int, paths: Sequence[str]) -> None:
        """The files of a batch; running it again changes nothing."""
        self._take(number, self._state(number - 1), sorted(paths))

    def messages(self, number: int, frame: DataFrame) -> None:
        """The same for messages, as Spark's connector gives them."""
        state = self._state(number - 1)
        landed = land(frame, self._landed(number))
        self._take(number, state, [found.path for found in landed if state.hear(found.point, found.digest, found.sent)])

    def copies(self, number: int, frame: DataFrame) -> None:
        """The same for files of another file system, as binaryFile gives them."""
        self.batch(number, copied(frame, self._landed(number)))

    def _take(self, number: int, state: StreamState, paths: Sequence[str]) -> None:
        splits = plan(paths, self.split_size)
        with staging(self.folder) as staged, survey_splits(self.spark, splits, self.job) as surveyed:
            files = survey_all(splits, lambda _: surveyed.surveys, self.job.settings, wanted(self.job.names))
            made = self._advance().by(state, files)
            self._write(surveyed, made, f"batch-{number:08}", staged)
        self._save(number, state)

    def finish(self) -> None:
        """Writes what still waits, as if nothing more came; the state stays as it is."""
        number = self._last()
        made = self._advance().by(self._state(number), [], final=True)
        with staging(self.folder) as staged:
            self._write(Surveyed(self.spark, [], []), replace_made(made), OPEN, staged)

    def _advance(self) -> Advance:
        return Advance(
            self.job.names, self.job.settings, self.job.bodies, self.lateness, in_order=self.in_order
        )  # fmt: skip

    def _write(self, surveyed: Surveyed, made: TaskPlan, tag: str, staged: str) -> None:
        there = {(split.path, split.number) for split in surveyed.splits}
        for task in made.tasks:  # of files that waited, the rows are made now
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
        """Where the files of a batch lie that were not on this machine."""
        return os.path.join(self.folder, KEPT, "landed", f"{number:08}")

    def _path(self, number: int) -> Path:
        return Path(self.folder, KEPT, f"state-{number:08}")

    def _last(self) -> int:
        found = sorted(Path(self.folder, KEPT).glob("state-????????"))
        return int(found[-1].name.removeprefix("state-")) if found else -1

    def _state(self, number: int) -> StreamState:
        path = self._path(number)
        return load(path.read_bytes()) if path.exists() else StreamState()

    def _save(self, number: int, state: StreamState) -> None:
        """The state behind a batch; the one before it stays, in case the batch runs again, and what waits in either."""
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
    """The plan with all splits to be read anew."""
    plan.tasks = [replace(task, made=False) for task in plan.tasks]
    return plan


def run_stream(
    spark: SparkSession, source: str, folder: str, job: Job, *, split_size: int = SIZE, lateness: int = LATENESS,
    most: int | None = None, once: bool = True, rollups: bool = True, stop: Callable[[Any], None] | None = None,
) -> RunOutcome:  # fmt: skip
    """Reads the files of a folder, or a topic's messages, as they come. most: of a batch; once: those that are there,
    and then ends; otherwise until somebody stops it: stop gets the query, and returns when it is over.
    Raises NoTopic, SparkFailed."""
    source, folder = local(source), local(folder)
    stream = BatchStream(spark, folder, job, split_size, lateness, is_topic(source))
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
    """What is done with a batch, by what comes."""
    if stream.in_order:
        return lambda frame, number: stream.messages(number, frame)
    if is_elsewhere(source):
        return lambda frame, number: stream.copies(number, frame)
    return lambda frame, number: stream.batch(number, [local(row.path) for row in frame.collect()])
