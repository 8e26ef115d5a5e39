"""Tables as Parquet files in hive partitions: TABLE/date=2026-11-21/api=Fetch/…parquet.

Tasks write into a staging folder of the run, from which the driver moves the files: a task that dies, or runs twice,
leaves nothing behind. Rows of a partition are collected, so that there are few files. store: the folder's file system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from kwire.errors import OutputError
from kwire.pipeline import lake_files
from kwire.pipeline.lake_files import Store
from kwire.tables.columns import COLUMNS, JUDGEMENTS
from kwire.tables.schemas import SCHEMAS
from kwire.tables.writer import OPENERS

DAY = 86_400_000_000_000  # ns
OURS = re.compile(r"date=|_|\.|part-|(meta)?data$")  # names in a table's folder, also those of Delta and Iceberg
NONE = "__HIVE_DEFAULT_PARTITION__"  # where a partition's column is null
ROWS = 1 << 17  # most rows of a partition that wait
IN_ALL = 1 << 20  # rows that wait in all partitions together
TIMES = dict.fromkeys(("connections", "clients"), "first_time_ns")  # the columns that give the date; elsewhere time_ns


class WrittenFile(NamedTuple):
    """A file: table name, partition path, file name, number of rows, size in bytes."""

    table: str
    partition: str
    file: str
    rows: int
    size: int = 0

    @property
    def date(self) -> str | None:
        """The day of its rows; None for those without a time."""
        day = self.partition.partition("/")[0].removeprefix("date=")
        return None if day == NONE else day


class Hive:
    """write(table, batch) adds rows; close() returns the files written. tag: prefix of file names."""

    def __init__(self, folder: str, tag: str, store: Store = None) -> None:
        self._folder, self._tag, self._store = folder, tag, store
        self._waiting: dict[tuple[str, str], list[pa.RecordBatch]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._writers: dict[tuple[str, str], tuple[Any, BinaryIO]] = {}
        self._rows: dict[tuple[str, str], int] = {}
        self._all = 0

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Adds rows."""
        for partition, rows in _partitions(table, batch):
            place = table, partition
            self._waiting.setdefault(place, []).append(rows)
            self._counts[place] = self._counts.get(place, 0) + rows.num_rows
            self._rows[place] = self._rows.get(place, 0) + rows.num_rows
            self._all += rows.num_rows
            if self._counts[place] >= ROWS:
                self._flush(place)
        if self._all > IN_ALL:
            for place in list(self._waiting):
                self._flush(place)

    def close(self) -> list[WrittenFile]:
        """Writes the rest and returns all files."""
        out = []
        for place in list(self._rows):
            self._flush(place)
            writer, file = self._writers[place]
            writer.close()
            size = file.tell()
            file.close()
            out.append(WrittenFile(*place, self._file(place[0]), self._rows[place], size))
        return out

    def _file(self, table: str) -> str:
        return f"{self._tag}-{table}.parquet"

    def _flush(self, place: tuple[str, str]) -> None:
        batches, self._counts[place] = self._waiting.pop(place, []), 0
        if not batches:
            return
        self._all -= sum(batch.num_rows for batch in batches)
        if place not in self._writers:
            file = lake_files.create(os.path.join(self._folder, *place, self._file(place[0])), self._store)
            self._writers[place] = OPENERS["parquet"](file, file_schema(place[0])), file
        self._writers[place][0].write_table(pa.Table.from_batches(batches))


def file_schema(table: str) -> pa.Schema:
    """The columns in a table's files: without those in the partitions' names."""
    schema = SCHEMAS[table]
    return schema.remove(schema.get_field_index("api")) if has_api(table) else schema


def partitions_of(table: str) -> tuple[str, ...]:
    """The columns by which a table is partitioned."""
    return ("date", "capture_point") if table in JUDGEMENTS else ("date", "api") if has_api(table) else ("date",)


def has_api(table: str) -> bool:
    """Whether the table is partitioned by API."""
    return any(name == "api" for name, _, _ in COLUMNS[table])


def place(
    folder: str, staged: str, written: Iterable[WrittenFile], replaced: Iterable[str] = (),
    store: Store = None,
) -> None:  # fmt: skip
    """Moves files from the staging folder into the tables. replaced: TABLE or TABLE/PARTITION to empty first."""
    for table in replaced:
        lake_files.empty(os.path.join(folder, table), store)
    moves = [(os.path.join(staged, *found[:3]), os.path.join(folder, *found[:3])) for found in written]
    lake_files.move(moves, store)


def spare(folder: str, tables: Iterable[str], sources: Iterable[str]) -> None:
    """Raises OutputError if replacing a table's folder would delete a source or a file that neither kwire nor Spark
    wrote."""
    for table in tables:
        here = Path(folder, table).resolve()
        for source in sources:
            if Path(source).resolve().is_relative_to(here):
                raise OutputError(
                    str(Path(folder, table)), f"this is written anew, and {source}, which is read, is in it"
                )
        for name in os.listdir(here) if here.is_dir() else ():
            if not OURS.match(name):
                raise OutputError(str(Path(folder, table)), f"this is written anew, and {name} in it is not of a table")


def remove(folder: str, tables: Iterable[str], tags: tuple[str, ...], store: Store = None) -> None:
    """Removes the tables' files with these prefixes: those of an earlier attempt at the same rows."""
    there = (path for table in tables for path in lake_files.files_of(os.path.join(folder, table), store))
    lake_files.remove([path for path in there if os.path.basename(path).startswith(tags)], store)


def days_of(table: str, batch: pa.RecordBatch) -> pa.Array:
    """The date of each row as text, null without a time."""
    if table in JUDGEMENTS:
        return batch.column("date")
    days, texts = _days(table, batch)
    return pa.array([texts[day] for day in days.tolist()], pa.string())


def _days(table: str, batch: pa.RecordBatch) -> tuple[np.ndarray, dict[int, str | None]]:
    times = batch.column(TIMES.get(table, "time_ns")) if table != "bodies" else pa.nulls(batch.num_rows, pa.int64())
    days = times.fill_null(-DAY).to_numpy() // DAY
    return days, {day: None if day < 0 else str(np.datetime64(day, "D")) for day in np.unique(days).tolist()}


def _partitions(table: str, batch: pa.RecordBatch) -> Iterable[tuple[str, pa.RecordBatch]]:
    """(partition path, rows without the partition columns)."""
    if not batch.num_rows:
        return
    if table in JUDGEMENTS:  # of one capture point and day
        date, point = (batch.column(name)[0].as_py() for name in ("date", "capture_point"))
        yield f"date={date}/capture_point={_escaped(point)}", batch.select(SCHEMAS[table].names)
        return
    days, texts = _days(table, batch)
    schema = file_schema(table)
    if has_api(table):
        coded = batch.column("api").dictionary_encode()
        names = [*coded.dictionary.to_pylist(), None]
        codes = coded.indices.fill_null(len(names) - 1).to_numpy()
    else:
        names, codes = [""], np.zeros(batch.num_rows, np.int64)
    rest = batch.select(schema.names)
    order = np.lexsort((codes, days))
    cuts = np.flatnonzero((np.diff(days[order]) != 0) | (np.diff(codes[order]) != 0)) + 1
    ends = [0, *cuts.tolist(), batch.num_rows]
    sorted_rows = rest if len(ends) == 2 else rest.take(pa.array(order))
    for low, high in pairwise(ends):
        row = order[low]
        parts = [f"date={texts[int(days[row])] or NONE}"]
        if has_api(table):
            parts.append(f"api={_escaped(names[int(codes[row])])}")
        yield "/".join(parts), sorted_rows.slice(low, high - low)


def _escaped(name: str | None) -> str:
    return NONE if not name else quote(name, safe=" ")
