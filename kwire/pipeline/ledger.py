"""The list of the captures in a lake: a table DIR/files, to which each run adds a file at its end.

A run's files begin with its id, and while it writes it holds a lock on a marker in DIR/files. So a later run knows what
is complete, and removes what a killed run left.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from kwire.errors import OutputError
from kwire.pipeline.paths import is_elsewhere
from kwire.pipeline.stores import Stores, each, opened, size_of
from kwire.staging import take_lock
from kwire.tables.columns import JUDGEMENTS

FILES = "files"
ENDS = 1 << 16  # bytes at both ends of a file that identify it
OURS = re.compile(r"(run-[0-9a-f]{12})\b.*\.parquet$")
MARKER = ".begun"
SCHEMA = pa.schema([
    ("run", pa.string()), ("tables", pa.list_(pa.string())), ("path", pa.string()), ("size", pa.int64()),
    ("modified_ns", pa.int64()), ("digest", pa.string()), ("head", pa.string()), ("read_ns", pa.int64()),
    ("day", pa.string()),
])  # fmt: skip
ANEW = "read them all once without --incremental"
UNKNOWN = f"which captures are in it is not known: {ANEW}"


@dataclass(slots=True)
class ToRead:
    """Captures by state. new: to be read; known: read before, under this or another name; grown: longer than when they
    were read; their rest is not read."""

    new: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)


class Ledger:
    """What is known of the captures that were read. rows: of SCHEMA. days: of their first packets, by path."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        there = list(rows)
        self.days: dict[str, str | None] = {row["path"]: row["day"] for row in there}
        self._digests = {row["digest"] for row in there}
        self._heads = {row["path"]: (row["size"], row["head"]) for row in there}

    def choose(self, paths: Sequence[str], stores: Stores) -> ToRead:
        """Sorts captures by state. A copy under another name is known; of two new copies the first is new. Raises
        OSError."""
        out, seen = ToRead(), set(self._digests)
        for path, digest in zip(paths, each(lambda path: digest_of(path, stores), paths), strict=True):
            if digest in seen:
                out.known.append(path)
            elif self._grew(path, stores):
                out.grown.append(path)
            else:
                out.new.append(path)
            seen.add(digest)
        return out

    def _grew(self, path: str, stores: Stores) -> bool:
        size, head = self._heads.get(full(path), (0, ""))
        if not size:
            return False
        with opened(path, stores.of(path)) as file:
            return bool(size_of(file) > size and _head(file, size) == head)


def of_folder(folder: str, tables: Sequence[str]) -> Ledger:
    """The list of a folder, for a run that adds to these tables. Raises OutputError if their contents are not known."""
    _sweep(folder)
    files = sorted(Path(folder, FILES).glob("run-*.parquet"))
    rows = [row for path in files for row in pq.read_table(path, schema=SCHEMA).to_pylist()]
    known = runs(folder)
    for table in tables:
        refuse_others(rows, table, os.path.join(folder, table))
        for path in Path(folder, table).rglob("*.parquet"):
            if run_of(path.name) not in known:
                raise OutputError(os.path.join(folder, table), UNKNOWN)
            if table in JUDGEMENTS and not path.parent.name.startswith("capture_point="):
                raise OutputError(os.path.join(folder, table), f"it is not by capture point yet: {ANEW}")
    return Ledger(rows)


def refuse_others(rows: Iterable[Mapping[str, Any]], table: str, where: str) -> None:
    """Raises OutputError if a capture was read into other tables only."""
    for row in rows:
        if table not in row["tables"]:
            raise OutputError(where, f"{row['path']} is not in it, only in others: {ANEW}")


@contextmanager
def running(folder: str) -> Iterator[str]:
    """Gives the id of a new run, the prefix of its files, and holds its marker. Raises OSError."""
    place, run = Path(folder, FILES), f"run-{uuid4().hex[:12]}"
    place.mkdir(parents=True, exist_ok=True)
    marker = place / f".{run}{MARKER}"
    with open(marker, "wb") as lock:
        take_lock(lock)
        yield run
    marker.unlink()


@contextmanager
def alone(folder: str) -> Iterator[None]:
    """Removes what killed runs left, and holds a marker as a run does. Raises OutputError while a run writes there."""
    if not Path(folder, FILES).is_dir():
        yield
        return
    with running(folder) as run:
        _sweep(folder)
        if any(run not in marker.name for marker in Path(folder, FILES).glob(f".run-*{MARKER}")):
            raise OutputError(folder, "a run writes there now")
        yield


def runs(folder: str) -> set[str]:
    """The ids of the runs that are recorded."""
    return {path.stem for path in Path(folder, FILES).glob("run-*.parquet")}


def run_of(name: str) -> str | None:
    """The id of the run that wrote the file of this name."""
    found = OURS.match(name)
    return found[1] if found else None


def enter(
    folder: str, run: str, tables: Sequence[str], days: Mapping[str, str | None], anew: bool, stores: Stores
) -> None:  # fmt: skip
    """Records that a run read captures into these tables. days: of their first packets, by path; anew: the tables hold
    nothing else."""
    place = Path(folder, FILES)
    part = place / f".{run}.part"
    pq.write_table(entries(run, tables, days, stores), part)
    os.replace(part, place / f"{run}.parquet")
    for old in place.glob("run-*.parquet") if anew else ():
        if old.stem != run:
            old.unlink()


def entries(run: str, tables: Sequence[str], days: Mapping[str, str | None], stores: Stores) -> pa.Table:
    """The rows of SCHEMA that say that a run read captures into these tables. days: as of enter."""
    found = each(lambda path: [row | {"day": days[path]} for row in _rows(path, stores)], days)
    return pa.Table.from_pylist([row | {"run": run, "tables": list(tables)} for rows in found for row in rows], SCHEMA)


def digest_of(path: str, stores: Stores) -> str:
    """A digest of a capture's size and its first and last ENDS bytes. Raises OSError."""
    with opened(path, stores.of(path)) as file:
        return _digests(file, size_of(file))[0]


def _digests(file: BinaryIO, size: int) -> tuple[str, str]:
    """The file's digest and that of its head. A short file is asked for once, which a store counts."""
    head = last = file.read(ENDS)
    if size > ENDS:
        file.seek(size - ENDS)
        last = file.read(ENDS)
    return _hashed(f"{size}\n".encode(), head, last), _hashed(head[:size])


def _head(file: BinaryIO, size: int) -> str:
    """A digest of the first bytes of a file that had this size."""
    return _hashed(file.read(min(size, ENDS)))


def _hashed(*pieces: bytes) -> str:
    return blake2b(b"".join(pieces), digest_size=16).hexdigest()


def _rows(path: str, stores: Stores) -> Iterator[dict[str, str | int]]:
    with suppress(OSError), opened(path, stores.of(path)) as file:  # it may have been removed since
        size, modified = size_of(file), 0 if is_elsewhere(path) else os.stat(path).st_mtime_ns
        digest, head = _digests(file, size)
        yield {
            "path": full(path), "size": size, "modified_ns": modified, "digest": digest, "head": head,
            "read_ns": time.time_ns(),
        }  # fmt: skip


def full(path: str) -> str:
    """The path from the root."""
    return path if is_elsewhere(path) else os.path.abspath(path)


def _sweep(folder: str) -> None:
    """Removes files of killed runs."""
    for marker in Path(folder, FILES).glob(f".run-*{MARKER}"):
        with suppress(OSError), open(marker, "rb+") as lock:
            if not take_lock(lock):
                continue
            run = marker.name.removeprefix(".").removesuffix(MARKER)
            if not Path(folder, FILES, f"{run}.parquet").exists():
                for path in Path(folder).glob(f"*/**/{run}-*.parquet"):
                    path.unlink()
            marker.unlink()
