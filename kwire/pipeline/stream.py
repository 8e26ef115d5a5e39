"""kwire pipeline run --stream: captures as they arrive in a folder (Spark's file source) or as Kafka messages.

Spark tracks what is new in its checkpoint; kwire's state is beside it, one file per batch. A batch's files begin with
its number: a batch that is repeated after a crash starts from the state before it and replaces its files. At the end of
the stream, what still waits is written as if the captures ended there, into files that the next batch removes. Captures
are read in place, also those that wait; messages, and files that only Spark can open, are copied beside the state until
no batch needs them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.errors import FilesUnreachable
from kwire.pipeline import hive
from kwire.pipeline.binary_files import copied, small_batches
from kwire.pipeline.failures import in_a_line
from kwire.pipeline.increments import LATENESS, Advance, StreamState, load
from kwire.pipeline.job import Job, Surveyed, rows_by_split, survey_splits, write_rows
from kwire.pipeline.lake_files import Store, files_of, make_folder, put, read, remove, staged
from kwire.pipeline.messages import arriving, is_topic, land
from kwire.pipeline.partitions import KEPT, OPEN, batches
from kwire.pipeline.paths import is_elsewhere, local
from kwire.pipeline.plan import TaskPlan, survey_all, wanted
from kwire.pipeline.rollups import write_rollups
from kwire.pipeline.run import RunOutcome
from kwire.pipeline.splits import SIZE, plan
from kwire.pipeline.stores import Stores, of_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SNAPSHOTS = ("clients",)  # tables that each batch writes completely


@dataclass(slots=True)
class BatchStream:
    """Processes batches. folder: of the tables, with the state in a hidden subfolder. in_order: the captures are
    messages. stores: file systems of what is far."""

    spark: SparkSession
    folder: str
    job: Job
    split_size: int = SIZE
    lateness: int = LATENESS
    in_order: bool = False
    stores: Stores = field(default_factory=Stores)
    outcome: RunOutcome = field(default_factory=RunOutcome)
    _written: set[str] = field(default_factory=set)  # prefixes of the files that this driver wrote

    @property
    def store(self) -> Store:
        """The folder's file system."""
        return self.stores.of(self.folder)

    @property
    def checkpoint(self) -> str:
        """Spark's checkpoint folder."""
        return os.path.join(self.folder, KEPT, "checkpoint")

    def check(self) -> None:
        """Raises OutputError if the last batch's state is of a version of kwire that this one cannot go on from."""
        self._state(self._last())

    def batch(self, number: int, paths: Sequence[str]) -> None:
        """Processes the files of a batch; repeating it changes nothing."""
        self._take(number, self._state(number - 1), sorted(paths))

    def files(self, number: int, frame: DataFrame) -> None:
        """Processes a batch of files, of which only paths and lengths are read."""
        sizes = {local(row.path): row.length for row in frame.collect()}
        self.stores.sizes = {path: size for path, size in sizes.items() if is_elsewhere(path)}
        self.batch(number, list(sizes))

    def messages(self, number: int, frame: DataFrame) -> None:
        """Processes a batch of messages from Spark's connector."""
        state = self._state(number - 1)
        landed = land(frame, self._landed(number))
        self._take(number, state, [found.path for found in landed if state.hear(found.point, found.digest, found.sent)])

    def copies(self, number: int, frame: DataFrame) -> None:
        """Processes a batch of files from another file system, read by binaryFile."""
        self.batch(number, copied(frame, self._landed(number)))

    def _take(self, number: int, state: StreamState, paths: Sequence[str]) -> None:
        splits = plan(paths, self.split_size, stores=self.stores)
        with staged(self.folder, self.store) as place, survey_splits(self.spark, splits, self.job) as surveyed:
            files = survey_all(splits, lambda _: surveyed.surveys, self.job.settings, wanted(self.job.names))
            made = self._advance().by(state, files)
            self._write(surveyed, made, f"batch-{number:08}", place)
        self._save(number, state)

    def finish(self) -> None:
        """Writes what still waits, as if nothing more came; the state is not changed."""
        made = self._advance().by(self._state(self._last()), [], final=True)
        with staged(self.folder, self.store) as place:
            self._write(Surveyed(self.spark, [], []), replace_made(made), OPEN, place)

    def _advance(self) -> Advance:
        return Advance(
            self.job.names, self.job.settings, self.job.bodies, self.lateness, in_order=self.in_order
        )  # fmt: skip

    def _write(self, surveyed: Surveyed, made: TaskPlan, tag: str, place: str) -> None:
        there = {(split.path, split.number) for split in surveyed.splits}
        for task in made.tasks:  # rows of files that waited are made now
            task.made &= (task.split.path, task.split.number) in there
        with small_batches(self.spark):
            rows = rows_by_split(surveyed, made, self.job)
            written = write_rows(rows, self.job.names, made.names, place, tag, self.store)
        if not self._written or self._written & {OPEN, tag}:  # else nothing of them is there, and much to be listed
            hive.remove(self.folder, self.job.names, (f"{OPEN}-", f"{tag}-"), self.store)
        replaced = [table for table in SNAPSHOTS if any(found.table == table for found in written)]
        hive.place(self.folder, place, written, replaced, self.store)
        for name in () if self._written else self.job.names:
            make_folder(os.path.join(self.folder, name), self.store)
        self._written.add(tag)
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

    def _path(self, number: int) -> str:
        return os.path.join(self.folder, KEPT, f"state-{number:08}")

    def _numbers(self) -> list[int]:
        """Of the batches whose states are there."""
        kept = files_of(os.path.join(self.folder, KEPT), self.store, recursive=False)
        return batches(map(os.path.basename, kept))

    def _last(self) -> int:
        return max(self._numbers(), default=-1)

    def _state(self, number: int) -> StreamState:
        path = self._path(number)
        data = read(path, self.store)
        return StreamState() if data is None else load(data, path, self.stores)

    def _save(self, number: int, state: StreamState) -> None:
        """Saves the state after a batch; the state before it and all waiting files are kept, in case the batch is
        repeated."""
        put(self._path(number), state.saved(), self.store)
        remove([self._path(old) for old in self._numbers() if old < number - 1], self.store)
        landed = list(Path(self.folder, KEPT, "landed").glob("*")) if self.store is None else []
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
    far = [path for path in (source, folder) if is_elsewhere(path) and not is_topic(path)]
    stores = of_session(spark) if far else Stores()
    stream = BatchStream(spark, folder, job, split_size, lateness, is_topic(source), stores)
    if is_elsewhere(folder):
        for path in far:
            if stores.of(path) is None:
                raise FilesUnreachable(f"{path}: workers of a cluster cannot open this file system by themselves")
    stream.check()
    with in_a_line():
        if stream.in_order:
            frame, take = arriving(spark, source, most), stream.messages
        elif is_elsewhere(source) and stores.of(source) is None:
            frame, take = _files(spark, source, most), stream.copies
        else:  # Spark reads no content
            frame, take = _files(spark, source, most).select("path", "length"), stream.files
        writer = frame.writeStream.foreachBatch(lambda batch, number: take(number, batch))
        writer = writer.option("checkpointLocation", stream.checkpoint)
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
    return reader.load(source)
