"""The partitions of a folder's tables, for what changes them without Spark: only kwire's own Parquet, and no links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from kwire.errors import OutputError
from kwire.tables.columns import COLUMNS

DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)")
OPEN = "open"  # prefix of a stream's files with rows that are not final
KEPT = ".kwire-stream"  # subfolder for a stream's states and checkpoint
BATCH = re.compile(r"batch-(\d{8})-")
STATE = re.compile(r"state-(\d{8})")
LOGS = {"_delta_log": "Delta", "metadata": "Iceberg"}  # folders of formats in which not every Parquet file counts


def days(
    folder: Path, instead: Mapping[str, str], tables: Iterable[str] = COLUMNS
) -> Iterator[tuple[str, Path]]:  # fmt: skip
    """(table, its folder date=…), sorted. instead: what does the same to a table of Delta, Iceberg. Raises OutputError
    for those, OSError."""
    for table in tables:
        place = folder / table
        for name, form in LOGS.items():
            if (place / name).exists():
                raise OutputError(str(place), f"this is a table of {form}: {instead[form]} does that")
        for path in sorted(place.glob("date=*")):
            if path.is_dir() and not path.is_symlink():
                yield table, path


def day_of(path: Path) -> date | None:
    """The day of a folder date=…; None for rows without a time."""
    found = DATE.fullmatch(path.name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def last_batch(folder: str | Path) -> int:
    """The number of a stream's last batch; -1 without one."""
    kept = Path(folder, KEPT)
    return max(batches(path.name for path in kept.iterdir()), default=-1) if kept.is_dir() else -1


def batches(names: Iterable[str]) -> list[int]:
    """The numbers of the batches behind which files of these names are a stream's state."""
    return [int(found[1]) for found in map(STATE.fullmatch, names) if found]


def may_be_rewritten(name: str, last: int) -> bool:
    """Whether a stream with this last batch may replace the file: that batch may be repeated."""
    batch = BATCH.match(name)
    return name.startswith(f"{OPEN}-") or (batch is not None and int(batch[1]) >= last)
