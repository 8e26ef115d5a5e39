"""Merges small Parquet files of a folder's tables into few large ones, partition by partition, without Spark.

New files, and links to those that stay, are made in a staging folder, which then changes places with the partition in
one step: a crash leaves the partition either as it was or as it will be. Names keep saying what --incremental and
streams must know: which run's rows a file holds, and which files a stream may write again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from kwire.errors import OutputError
from kwire.pipeline import ledger
from kwire.pipeline.lake_files import Store, read
from kwire.pipeline.partitions import days, last_batch, may_be_rewritten
from kwire.staging import staging
from kwire.tables.writer import GROUP, OPENERS

TARGET = 128 << 20  # bytes of a merged file
SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
HERE = -100  # AT_FDCWD: paths are relative to the working directory
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
INSTEAD = {"Delta": "OPTIMIZE", "Iceberg": "CALL system.rewrite_data_files"}


class Rewrite(NamedTuple):
    """A partition with small files. place: its folder; merges: (name of the new file, those that it replaces); size:
    of these, bytes."""

    table: str
    day: str
    place: Path
    merges: list[tuple[str, list[Path]]]
    files: int
    size: int


def rewrites(folder: Path, target: int = TARGET) -> Iterator[Rewrite]:
    """The partitions in which files can be merged into fewer of at most target bytes. Raises OutputError, OSError."""
    runs, last = ledger.runs(str(folder)), last_batch(folder)
    for table, day in days(folder, INSTEAD):
        for place in (day, *sorted(day.glob("*=*"))):
            merges = _merges(table, place, runs, last, target)
            merged = [path for _, paths in merges for path in paths]
            if merged:
                size = sum(path.stat().st_size for path in merged)
                yield Rewrite(table, day.name.removeprefix("date="), place, merges, len(merged), size)


def rewrite(found: Rewrite, folder: Path) -> int:
    """Merges the files; returns the size of the new ones, bytes. Raises OutputError, OSError."""
    gone = {path.name for _, paths in found.merges for path in paths}
    gone |= {f".{name}.crc" for name in gone}
    with staging(str(folder)) as staged:
        ours = Path(staged, "partition")
        ours.mkdir()
        size = 0
        for name, paths in found.merges:
            merge(paths, ours / name)
            shutil.copymode(paths[0], ours / name)
            _sync(ours / name)
            size += (ours / name).stat().st_size
        kept = {path.name for path in found.place.iterdir()} - gone
        for name in kept:
            os.link(found.place / name, ours / name)
        shutil.copymode(found.place, ours)
        _sync(ours)
        _exchange(ours, found.place)
        left = set(os.listdir(ours))  # what the partition held
        for name in left - kept - gone:  # came meanwhile
            os.replace(ours / name, found.place / name)
        for name in kept - left:  # was removed meanwhile
            (found.place / name).unlink()
    return size


def _merges(table: str, place: Path, runs: set[str], last: int, target: int) -> list[tuple[str, list[Path]]]:
    """First fit, largest files first: no two of the resulting files fit into one. Only files with the same columns, and
    either all of recorded runs or none."""
    there = list(place.iterdir()) if place.is_dir() and not place.is_symlink() else []
    if any(path.is_symlink() or not path.is_file() for path in there):
        return []
    sizes = {
        path: path.stat().st_size
        for path in sorted(there)
        if path.suffix == ".parquet" and path.name[0] not in "._" and not may_be_rewritten(path.name, last)
    }
    bins: dict[tuple[bytes, bool], list[list[Path]]] = {}
    for path in sorted(sizes, key=lambda path: -sizes[path]) if len(sizes) > 1 else ():
        if sizes[path] >= target:
            continue
        schema = _schema(path)
        if b'"variant"' in (schema.metadata or {}).get(SPARK_SCHEMA, b""):
            continue  # Arrow would write it as two columns of bytes
        known = ledger.run_of(path.name) in runs
        alike = bins.setdefault((schema.serialize().to_pybytes(), known), [])
        fit = next((some for some in alike if sum(map(sizes.__getitem__, some)) + sizes[path] <= target), None)
        if fit is None:
            alike.append([path])
        else:
            fit.append(path)
    return [
        (_name(table, paths, known), sorted(paths))
        for (_, known), alike in bins.items()
        for paths in alike
        if len(paths) > 1
    ]


def _name(table: str, paths: Sequence[Path], known: bool) -> str:
    run = ledger.run_of(min(paths).name) if known else None
    return f"{run or 'merged'}-{uuid4().hex[:12]}-{table}.parquet"


def _schema(path: Path | str, store: Store = None) -> pa.Schema:
    try:
        return pq.read_schema(_source(path, store))
    except pa.ArrowInvalid as error:
        raise OutputError(str(path), f"this is no whole Parquet file: {' '.join(str(error).split())}") from None


def _source(path: Path | str, store: Store) -> Any:
    """What Parquet is read from: of a far file all of it, as that is one request."""
    return path if store is None else pa.BufferReader(read(str(path), store) or b"")


def merge(paths: Sequence[Path | str], target: Any, store: Store = None) -> None:
    """Writes the rows of files with the same columns into a new file, at most a row group in memory. target: its path,
    or an open file; store: file system of the others. Raises OutputError, OSError."""
    schema = _schema(paths[0], store)
    writer = OPENERS["parquet"](target, schema)
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    try:
        for path in paths:
            with pq.ParquetFile(_source(path, store)) as file:
                for batch in file.iter_batches(GROUP):
                    waiting.append(batch)
                    rows, size = rows + batch.num_rows, size + batch.nbytes
                    if rows >= GROUP or size >= TARGET:
                        writer.write_table(pa.Table.from_batches(waiting, schema))
                        waiting, rows, size = [], 0, 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, schema))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(str(path), f"this cannot be merged: {' '.join(str(error).split())}") from None
    finally:
        writer.close()


def _sync(path: Path) -> None:
    """Waits until it is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> None:
    """Lets two folders change places in one step. Raises OutputError where the system cannot, OSError."""
    system = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    if hasattr(system, "renameat2"):
        failed = system.renameat2(HERE, paths[0], HERE, paths[1], SWAP)
    elif hasattr(system, "renamex_np"):
        failed = system.renamex_np(*paths, SWAP)
    else:
        failed = -1
        ctypes.set_errno(errno.ENOSYS)
    if failed:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OutputError(str(other), "folders cannot change places in one step on this file system")
        raise OSError(number, os.strerror(number), str(other))
