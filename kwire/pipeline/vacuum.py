"""Removes days of a folder's tables that are older than wanted: the date=… folders of kwire's own Parquet tables."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from kwire.errors import OutputError
from kwire.tables.columns import COLUMNS

DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)")
FOREIGN = {"_delta_log": "Delta", "metadata": "Iceberg"}  # whose own commands must remove rows


class OldDay(NamedTuple):
    """A table's rows of a day. size: of its files, bytes."""

    table: str
    day: date
    path: Path
    files: int
    size: int


def old_days(folder: Path, days: int, today: date) -> Iterator[OldDay]:
    """What is older than so many days, by table and day. Raises OutputError, OSError."""
    for table in COLUMNS:
        place = folder / table
        for name, form in FOREIGN.items():
            if (place / name).exists():
                raise OutputError(str(place), f"this is a table of {form}, whose own commands remove rows")
        for path in sorted(place.glob("date=*")):
            found = DATE.fullmatch(path.name)
            day = _day(found[1]) if found else None
            if day is not None and day < today - timedelta(days) and not path.is_symlink():
                sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
                yield OldDay(table, day, path, len(sizes), sum(sizes))


def remove(found: OldDay) -> None:
    """Removes the files. Raises OSError."""
    shutil.rmtree(found.path)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
