"""Removes days of a folder's tables that are older than wanted: the date=… folders of kwire's own Parquet tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from kwire.pipeline.partitions import day_of, days
from kwire.pipeline.rollups import ROLLUPS
from kwire.tables.columns import COLUMNS

INSTEAD = {"Delta": "DELETE FROM, then VACUUM", "Iceberg": "DELETE FROM, then CALL system.expire_snapshots"}


class OldDay(NamedTuple):
    """A table's rows of a day. size: of its files, bytes."""

    table: str
    day: date
    path: Path
    files: int
    size: int


def old_days(folder: Path, keep: int, today: date) -> Iterator[OldDay]:
    """What is older than so many days, by table and day. Raises OutputError, OSError."""
    for table, path in days(folder, INSTEAD, (*COLUMNS, *(f"rollups/{name}" for name in ROLLUPS))):
        day = day_of(path)
        if day is not None and day < today - timedelta(keep):
            sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
            yield OldDay(table, day, path, len(sizes), sum(sizes))


def remove(found: OldDay) -> None:
    """Removes the files. Raises OSError."""
    shutil.rmtree(found.path)
