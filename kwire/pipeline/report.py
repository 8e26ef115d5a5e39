"""The rollups of a run as rows, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kwire.errors import NoReport
from kwire.pipeline.rollups import ROLLUPS

ROWS = 15


class RollupReport(NamedTuple):
    """A rollup: name, title, columns, first rows, total number of rows."""

    name: str
    about: str
    columns: list[str]
    rows: list[list[Any]]
    total: int


def reports(folder: Path, chosen: tuple[str, ...] = (), most: int = ROWS) -> Iterator[RollupReport]:
    """The chosen rollups of a folder (default: all), sorted, with at most most rows. Raises NoReport, OSError."""
    there = [name for name in ROLLUPS if (folder / "rollups" / name).is_dir()]
    if not there:
        raise NoReport(f"{folder}: no rollups there; kwire pipeline run -o {folder} makes them")
    for name in chosen:
        if name not in there:
            raise NoReport(f"no report {name}; there are {', '.join(there)}")
    for name in chosen or there:
        files = sorted((folder / "rollups" / name).glob("*.parquet"))
        table = pa.concat_tables([pq.read_table(path) for path in files]) if files else None
        if table is None:
            continue
        order = ROLLUPS[name].order
        direction = "descending" if order.startswith("-") else "ascending"
        keys = [(order.lstrip("-"), direction)]
        keys += [(column, "ascending") for column in table.column_names if not pa.types.is_list(table[column].type)]
        table = table.sort_by(_once(keys))
        first = table.slice(0, most)
        rows = [list(row.values()) for row in first.to_pylist()]
        yield RollupReport(name, ROLLUPS[name].about, table.column_names, rows, table.num_rows)


def _once(keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    out: dict[str, str] = {}
    for name, direction in keys:
        out.setdefault(name, direction)
    return list(out.items())
