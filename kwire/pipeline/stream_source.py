"""spark.readStream.format("kwire"): files of a folder as they arrive.

An offset is the number of files taken so far; a log of their names and order is kept beside the states at the offsets.
Both are written before Spark learns of an offset, and a state depends only on the one before and the files between, so
planning a batch again gives the same result. They cannot lie in Spark's checkpoint by themselves: Spark tells a Python
source neither where that is nor the number of the batch. Rows that only the end of the captures would make final stay
in the state; kwire pipeline run --stream writes them too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from kwire.errors import OptionError
from kwire.pipeline.capture_folders import placed
from kwire.pipeline.increments import Advance, StreamState, load
from kwire.pipeline.options import PipelineOptions, in_short
from kwire.pipeline.plan import TaskPlan, survey_all, wanted
from kwire.pipeline.splits import plan
from kwire.pipeline.workers import surveyor
from kwire.tables.build import BodyTexts

STATE = re.compile(r"state-\d{10}")

Planned = Callable[[TaskPlan], Sequence[InputPartition]]
Read = Callable[[InputPartition], Iterator[pa.RecordBatch]]


class KwireStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one table as a stream. planned: makes partitions of a plan; read: reads their rows; both as in the batch
    reader."""

    def __init__(self, options: PipelineOptions, planned: Planned, read: Read, bodies: BodyTexts | None = None) -> None:
        self._options, self._planned, self._read, self._bodies = options, planned, read, bodies
        self._until: int | None = None  # number of files, when later ones are ignored

    def initialOffset(self) -> dict[str, int]:
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_files
        return ReadMaxFiles(most) if most else ReadAllAvailable()

    @in_short
    def prepareForTriggerAvailableNow(self) -> None:
        self._until = len(self._log())

    @in_short
    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        there = len(self._log()) if self._until is None else self._until
        if isinstance(limit, ReadMaxFiles):
            there = min(there, start["files"] + limit.max_files)
        return {"files": max(there, start["files"])}

    @in_short
    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, last = start["files"], end["files"]
        options, settings = self._options, self._options.settings()
        paths, want = self._known()[first:last], wanted([self._options.table])
        state = self._state(first)
        splits = plan(paths, options.split_size, stores=options.stores())
        files = survey_all(splits, surveyor(settings, want), settings, want)
        made = Advance([options.table], settings, self._bodies, options.lateness).by(state, files)
        self._write(f"state-{last:010}", state.saved())
        return self._planned(made)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)

    def commit(self, end: dict[str, int]) -> None:
        store, folder = self._folder()
        for info in store.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            if STATE.fullmatch(info.base_name) and int(info.base_name.removeprefix("state-")) < end["files"]:
                store.delete_file(info.path)

    def _folder(self) -> tuple[fs.FileSystem, str]:
        """The file system and the folder of this table's state."""
        place = self._options.state
        if not place:  # said here, since Spark hides what __init__ raises behind an error of its own
            raise OptionError('readStream needs option("stateLocation", DIR): what is kept between batches lies there')
        store, inner, _ = placed(place, self._options.stores())
        return store, f"{inner}/{self._options.table}"

    def _known(self) -> list[str]:
        data = self._kept("files.json")
        return [] if data is None else list(json.loads(data))

    def _log(self) -> list[str]:
        """All files so far; new ones are appended, the oldest first."""
        known, stores = self._known(), self._options.stores()
        there = set(known)
        new = [path for path in self._options.arrived(stores) if path not in there]
        if new:
            known += sorted(new, key=lambda path: (stores.times[path], path))
            self._write("files.json", json.dumps(known).encode())
        return known

    def _state(self, files: int) -> StreamState:
        name = f"state-{files:010}"
        data = self._kept(name) if files else None
        if files and data is None:
            raise OptionError(f"{self._options.state}: {name} is not there, at which the checkpoint goes on")
        where = f"{self._options.state}/{self._options.table}/{name}"
        return StreamState() if data is None else load(data, where, self._options.stores())

    def _kept(self, name: str) -> bytes | None:
        store, folder = self._folder()
        if store.get_file_info(f"{folder}/{name}").type != fs.FileType.File:
            return None
        with store.open_input_stream(f"{folder}/{name}") as file:
            data: bytes = file.read()
        return data

    def _write(self, name: str, data: bytes) -> None:
        store, folder = self._folder()
        store.create_dir(folder)
        part = f"{folder}/.{name}.{uuid4().hex[:8]}"
        with store.open_output_stream(part) as file:
            file.write(data)
        store.move(part, f"{folder}/{name}")
