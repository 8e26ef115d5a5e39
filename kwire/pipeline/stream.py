"""kwire pipeline run --stream: captures as they arrive in a folder, by Spark's own file source.

Spark says which files are new and keeps count of them in its checkpoint; what kwire keeps between two batches lies
beside it, one file for each batch. A batch's files begin with its number: a batch that runs a second time, after a
crash, begins from the state before it and writes the same files anew. What still waits when the stream ends is written
too, as if the captures ended there, into files that the next batch removes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.pipeline import hive
from kwire.pipeline.addresses import local
from kwire.pipeline.increments import LATENESS, Advance, State, load
from kwire.pipeline.job import Job, Surveyed, staging, survey_splits, write_rows
from kwire.pipeline.plan import Plan, survey_all, wanted
from kwire.pipeline.rollups import write_rollups
from kwire.pipeline.run import Outcome
from kwire.pipeline.splits import SIZE, plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPEN = "open"  # what the files of what is not final begin with
SNAPSHOTS = ("clients",)  # tables of which each batch knows all rows
KEPT = ".kwire-stream"  # in the folder of the tables


@dataclass(slots=True)
class Stream:
    """Takes batches of files. folder: of the tables; the state lies in it, hidden."""

    spark: SparkSession
    folder: str
    job: Job
    split_size: int = SIZE
    lateness: int = LATENESS
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def checkpoint(self) -> str:
        """Spark's own."""
        return os.path.join(self.folder, KEPT, "checkpoint")

    def batch(self, number: int, paths: Sequence[str]) -> None:
        """The files of a batch; running it again changes nothing."""
        state = self._state(number - 1)
        splits = plan(sorted(paths), self.split_size)
        surveyed = survey_splits(self.spark, splits, self.job)
        try:
            want = wanted(self.job.names)
            files = survey_all(splits, lambda _: surveyed.surveys, self.job.settings, want)
            made = self._advance().by(state, files)
            self._write(surveyed, made, f"batch-{number:08}")
        finally:
            surveyed.release()
        self._save(number, state)

    def finish(self) -> None:
        """Writes what still waits, as if nothing more came; the state stays as it is."""
        number = self._last()
        made = self._advance().by(self._state(number), [], final=True)
        nothing = Surveyed(self.spark, self.spark.range(0), [], [], 0)
        self._write(nothing, replace_made(made), OPEN)

    def _advance(self) -> Advance:
        return Advance(self.job.names, self.job.settings, self.job.bodies, self.lateness)

    def _write(self, surveyed: Surveyed, made: Plan, tag: str) -> None:
        staged = staging(self.folder)
        os.makedirs(staged, exist_ok=True)
        there = {(split.path, split.number) for split in surveyed.splits}
        for task in made.tasks:  # of files that waited, the rows are made now
            task.made &= (task.split.path, task.split.number) in there
        written = write_rows(surveyed, made, self.job, staged, tag)
        for old in (OPEN, tag):
            hive.remove(self.folder, self.job.names, old + "-")
        replaced = [table for table in SNAPSHOTS if any(found.table == table for found in written)]
        hive.place(self.folder, staged, written, replaced)
        for name in self.job.names:
            Path(self.folder, name).mkdir(exist_ok=True)
        out = self.outcome
        for found in written:
            out.rows[found.table] = out.rows.get(found.table, 0) + found.rows
        out.packets += made.packets
        out.splits += len(surveyed.splits)
        out.size += sum(split.end - split.start for split in surveyed.splits)
        out.seams += surveyed.seams
        out.parts += made.parts
        out.failed |= made.failed

    def _path(self, number: int) -> Path:
        return Path(self.folder, KEPT, f"state-{number:08}")

    def _last(self) -> int:
        found = sorted(Path(self.folder, KEPT).glob("state-????????"))
        return int(found[-1].name.removeprefix("state-")) if found else -1

    def _state(self, number: int) -> State:
        path = self._path(number)
        return load(path.read_bytes()) if path.exists() else State()

    def _save(self, number: int, state: State) -> None:
        """The state behind a batch; the one before it stays, in case the batch runs again."""
        path = self._path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(state.saved())
        os.replace(part, path)
        for old in path.parent.glob("state-????????"):
            if int(old.name.removeprefix("state-")) < number - 1:
                old.unlink()


def replace_made(plan: Plan) -> Plan:
    """The plan with all splits to be read anew."""
    plan.tasks = [replace(task, made=False) for task in plan.tasks]
    return plan


def run_stream(
    spark: SparkSession, source: str, folder: str, job: Job, *, split_size: int = SIZE, lateness: int = LATENESS,
    most: int | None = None, once: bool = True, rollups: bool = True, stop: Callable[[Any], None] | None = None,
) -> Outcome:  # fmt: skip
    """Reads the files of a folder as they come. most: files of a batch; once: those that are there, and then ends;
    otherwise until somebody stops it: stop gets the query, and returns when it is over."""
    stream = Stream(spark, folder, job, split_size, lateness)
    reader = spark.readStream.format("binaryFile").schema(
        "path string, modificationTime timestamp, length bigint, content binary"
    )
    if most:
        reader = reader.option("maxFilesPerTrigger", most)
    files = reader.load(source).select("path")

    def take(frame: DataFrame, number: int) -> None:
        stream.batch(number, [local(row.path) for row in frame.collect()])

    writer = files.writeStream.foreachBatch(take).option("checkpointLocation", stream.checkpoint)
    query = (writer.trigger(availableNow=True) if once else writer).start()
    if stop is not None:
        stop(query)
    query.awaitTermination()
    stream.finish()
    if rollups:
        write_rollups(spark, folder, job.names)
    return stream.outcome
