"""spark.readStream.format("kwire"): files of a folder as they arrive.

An offset is the number of files taken so far; a log of their names and order is kept beside the states at the offsets.
Both are written before Spark learns of an offset, and a state depends only on the one before and the files between, so
planning a batch again gives the same result. Rows that only the end of the captures would make final stay in the state;
kwire pipeline run --stream writes them too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from kwire.errors import OptionError
from kwire.pipeline.increments import Advance, StreamState, load
from kwire.pipeline.options import PipelineOptions, in_short
from kwire.pipeline.plan import TaskPlan, survey_all, wanted
from kwire.pipeline.splits import plan
from kwire.pipeline.workers import surveyor
from kwire.tables.build import BodyTexts

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
        splits = plan(paths, options.split_size)
        files = survey_all(splits, surveyor(settings, want), settings, want)
        made = Advance([options.table], settings, self._bodies, options.lateness).by(state, files)
        self._write(f"state-{last:010}", state.saved())
        return self._planned(made)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)

    def commit(self, end: dict[str, int]) -> None:
        for path in self._folder.glob("state-??????????"):
            if int(path.name.removeprefix("state-")) < end["files"]:
                path.unlink()

    @property
    def _folder(self) -> Path:
        """The folder of this table's state."""
        if not self._options.state:  # said here, since Spark hides what __init__ raises behind an error of its own
            raise OptionError('readStream needs option("stateLocation", DIR): what is kept between batches lies there')
        return Path(self._options.state, self._options.table)

    def _known(self) -> list[str]:
        path = self._folder / "files.json"
        return list(json.loads(path.read_bytes())) if path.exists() else []

    def _log(self) -> list[str]:
        """All files so far; new ones are appended, the oldest first."""
        known = self._known()
        there = set(known)
        new = sorted((os.stat(path).st_mtime_ns, path) for path in self._options.files(some=False) if path not in there)
        if new:
            known += [path for _, path in new]
            self._write("files.json", json.dumps(known).encode())
        return known

    def _state(self, files: int) -> StreamState:
        path = self._folder / f"state-{files:010}"
        return load(path.read_bytes(), str(path)) if files else StreamState()

    def _write(self, name: str, data: bytes) -> None:
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{name}.{os.getpid()}"
        part.write_bytes(data)
        os.replace(part, folder / name)
