"""What doctor and audit say by capture point and day, made in tasks: the tables findings and audit of a run.

A point's files of a day are read together, as kwire reads captures that follow each other, by one task. A file belongs
to the day of its first packet. A point is known by the files' path without what tells one file of a ring from the next:
times, counters, kinds of files.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from kwire.pipeline.job import DISK, FINAL, SHAPE_FINAL, one_row
from kwire.pipeline.row_bytes import RowBytes
from kwire.pipeline.stores import Stores, brought, opened
from kwire.pipeline.workers import few_collections
from kwire.session.reader import Settings
from kwire.tables.build import build

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND = re.compile(r"\.(pcap|pcapng|cap|ntar|dmp)\d*(\.(gz|zst))?$", re.IGNORECASE)  # tcpdump -C counts behind it
TIME = re.compile(  # with dumpcap's number of the file before it; or seconds since 1970
    r"(?:_\d{5})?[._-]?(?<!\d)(?:20\d\d([-/]?)[01]\d\1[0-3]\d"
    r"(?:[T_-]?[0-2]\d(?:[:.h-]?[0-5]\d){0,2}Z?(?!\d|\.\d)|/[0-2]\d(?=/))?|1\d{9})(?!\d)"
)
FOLDER = re.compile(r"/\w+=[\d:TZ.-]*(?=/)|.*/\.kwire-[0-9a-f]{12}/\w+(?=/)")  # hour=07; where Spark brought it
LONGEST = 200  # characters of a point as the name of a folder


class PointDay(NamedTuple):
    """A capture point's files of a day, as 2026-11-21."""

    point: str
    date: str
    paths: tuple[str, ...]

    @property
    def partition(self) -> str:
        """Where its rows are in a table's folder."""
        return f"date={self.date}/capture_point={quote(self.point, safe=' ')}"


def point_of(path: str) -> str:
    """The capture point of a file, from its path."""
    timeless = TIME.sub("", FOLDER.sub("", KIND.sub("", path)))
    point = re.sub(r"(?<=[^:/])//+|(?<=/)[._-]+(?=[^/]+$)", lambda found: "/" * found[0].startswith("/"), timeless)
    point = point.rstrip("/._-")
    if len(quote(point, safe=" ")) > LONGEST:
        return blake2b(point.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return point or "/"


def date_of(time: int) -> str | None:
    """The day of a time in ns since the epoch, in UTC; None for 0."""
    return str(np.datetime64(time, "ns").astype("datetime64[D]")) if time else None


def by_point(days: Mapping[str, str | None], known: Mapping[str, str | None] | None = None) -> list[PointDay]:
    """Groups files by point and day. days: by path; files without packets have none. known: files of earlier runs,
    which are judged again where new ones join them."""
    new = {(point_of(path), day) for path, day in days.items() if day}
    out: dict[tuple[str, str], list[str]] = {}
    for path, day in {**(known or {}), **days}.items():
        if day and (key := (point_of(path), day)) in new:
            out.setdefault(key, []).append(path)
    return [PointDay(*key, tuple(sorted(paths))) for key, paths in sorted(out.items())]


@contextmanager
def judged(
    spark: SparkSession, found: Sequence[PointDay], names: Sequence[str], settings: Settings, stores: Stores
) -> Iterator[DataFrame]:  # fmt: skip
    """Gives a frame of schema FINAL with these tables' rows, each with date and capture_point; a task for each point
    and day."""
    tasks = [(one, [stores.of(path) for path in one.paths]) for one in found]
    rows = spark.range(0, len(tasks), 1, max(len(tasks), 1)).mapInArrow(_judging(tasks, names, settings), FINAL)
    rows = rows.persist(DISK)
    try:
        yield rows
    finally:
        rows.unpersist()


def _judging(tasks: Sequence[tuple[PointDay, list[Any]]], names: Sequence[str], settings: Settings) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found, places = tasks[number]
                for name, data in judgements_of(found, places, names, settings):
                    yield one_row(SHAPE_FINAL, name, data, None)

    return run


def judgements_of(
    found: PointDay, stores: Sequence[Any], names: Sequence[str], settings: Settings
) -> list[tuple[str, bytes]]:  # fmt: skip
    """The rows of a point and day, as (table, bytes). stores: of its files, None for local ones. What lies in object
    stores is copied to the worker's own disk meanwhile; files that are gone since an earlier run read them are left
    out."""
    rows = RowBytes()

    def emit(table: str, batch: pa.RecordBatch) -> None:
        for name, value in (("date", found.date), ("capture_point", found.point)):
            batch = batch.append_column(name, pa.array([value] * batch.num_rows, pa.string()))
        rows.write(table, batch)

    with tempfile.TemporaryDirectory() as near, few_collections():
        here = []
        for path, store in zip(found.paths, stores, strict=True):
            with suppress(FileNotFoundError), opened(path, store):
                here.append(path if store is None else brought(path, store, near))
        build(here, names, emit, settings)
    return rows.close()
