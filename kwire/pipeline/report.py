"""The rollups of a run as rows, without Spark: those of days made one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from kwire.errors import NoReport, QueryError
from kwire.pipeline.rollups import ROLLUPS
from kwire.tables.lake import folder_of, is_folder

ROWS = 15
DATE = ds.partitioning(pa.schema([("date", pa.string())]), flavor="hive")
MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda one, other: one + other,
    "min": min,
    "max": max,
    "union": lambda one, other: sorted({*one, *other}),
    "count": lambda one, other: sorted({*one, *other}),
}


class RollupReport(NamedTuple):
    """A rollup: name, title, columns, first rows, total number of rows."""

    name: str
    about: str
    columns: list[str]
    rows: list[list[Any]]
    total: int


def reports(folder: str | Path, chosen: tuple[str, ...] = (), most: int = ROWS) -> Iterator[RollupReport]:
    """The chosen rollups of a folder (default: all), sorted, with at most most rows. folder: a path, or an address as
    s3://bucket/lake. Raises NoReport, OSError."""
    try:
        system, root = folder_of(str(folder))
    except QueryError as error:
        raise NoReport(str(error)) from None
    there = [name for name in ROLLUPS if is_folder(system, f"{root}/rollups/{name}")]
    if not there:
        raise NoReport(f"{folder}: no rollups there; kwire pipeline run -o {folder} makes them")
    for name in chosen:
        if name not in there:
            raise NoReport(f"no report {name}; there are {', '.join(there)}")
    for name in chosen or there:
        files = ds.dataset(f"{root}/rollups/{name}", filesystem=system, format="parquet", partitioning=DATE)
        if not files.files:  # no day has rows
            yield RollupReport(name, ROLLUPS[name].about, [], [], 0)
            continue
        columns = [column for column in files.schema.names if column != "date"]
        table = _merged(files.to_table(columns), ROLLUPS[name].merges)
        order = ROLLUPS[name].order
        direction = "descending" if order.startswith("-") else "ascending"
        keys = [(order.lstrip("-"), direction)]
        keys += [(column, "ascending") for column in columns if not pa.types.is_list(table[column].type)]
        table = table.sort_by(_once(keys))
        first = table.slice(0, most)
        rows = [list(row.values()) for row in first.to_pylist()]
        yield RollupReport(name, ROLLUPS[name].about, table.column_names, rows, table.num_rows)


def _merged(table: pa.Table, merges: Mapping[str, str]) -> pa.Table:
    """The rows of all days as those of one."""
    if not merges:
        return table
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.to_pylist():
        known = found.setdefault(tuple(value for name, value in row.items() if name not in merges), row)
        for name, how in merges.items() if known is not row else ():
            if known[name] is None or row[name] is None:
                known[name] = row[name] if known[name] is None else known[name]
            else:
                known[name] = MERGES[how](known[name], row[name])
    counts = [name for name, how in merges.items() if how == "count"]
    rows = [row | {name: len(row[name] or ()) for name in counts} for row in found.values()]
    kinds = {name: pa.int64() for name in counts}
    return pa.Table.from_pylist(
        rows, pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in table.schema])
    )


def _once(keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    out: dict[str, str] = {}
    for name, direction in keys:
        out.setdefault(name, direction)
    return list(out.items())
