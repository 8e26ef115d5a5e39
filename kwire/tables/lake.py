"""Lakes: folders of tables written by kwire pipeline run, as Arrow datasets, which read only what a query needs.

Files are Parquet in hive partitions (TABLE/date=…/api=…; judgements have capture_point=…), local or in any file system
of pyarrow. A filter on date skips whole partitions.
"""

from __future__ import annotations

import os
import re

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from kwire.errors import QueryError
from kwire.tables.columns import JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

PARTITIONS = pa.schema([("date", pa.string()), ("api", pa.string()), ("capture_point", pa.string())])
ADDRESS = re.compile(r"(?P<scheme>\w[\w+.-]+)://")
LOGS = {"_delta_log": "Delta", "metadata": "Iceberg"}  # formats whose Parquet files do not all count


def lake_tables(place: str) -> dict[str, ds.Dataset]:
    """The tables in a folder, by name; place may be a single table's folder, and an s3://, gs:// or hdfs:// address.
    Times are UTC without a zone, for DuckDB. Raises QueryError, OSError."""
    system, root = folder_of(place)
    if not is_folder(system, root):
        raise QueryError(f"{place}: no such folder")
    alone = os.path.basename(root)
    named = {name: f"{root}/{name}" for name in SCHEMAS}
    there = {name: path for name, path in named.items() if is_folder(system, path)}
    if not there and alone in SCHEMAS and is_folder(system, root):
        there = {alone: root}
    found = {name: _dataset(system, name, path) for name, path in there.items()}
    if not found:
        raise QueryError(f"{place}: no tables there; kwire pipeline run -o {place} makes them")
    return found


def folder_of(place: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or an address, and the path within it. Raises QueryError."""
    if not ADDRESS.match(place):
        return fs.LocalFileSystem(), os.path.abspath(place)
    try:
        system, root = fs.FileSystem.from_uri(re.sub("^s3[an]:", "s3:", place))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise QueryError(f"{place}: {' '.join(str(error).split())}") from None
    return system, root.rstrip("/")


def is_folder(system: fs.FileSystem, path: str) -> bool:
    """Whether there is such a folder."""
    return bool(system.get_file_info(path).type == fs.FileType.Directory)


def _dataset(system: fs.FileSystem, name: str, path: str) -> ds.Dataset:
    for log, engine in LOGS.items():
        if is_folder(system, f"{path}/{log}"):
            raise QueryError(f"{path} is a table of {engine}'s, which knows what of it counts: ask it there")
    more = ["date", "capture_point"] if name in JUDGEMENTS else ["date"]
    schema = pa.schema([_without_zone(field) for field in SCHEMAS[name]] + [PARTITIONS.field(one) for one in more])
    try:
        partitions = ds.partitioning(PARTITIONS, flavor="hive")
        return ds.dataset(path, schema, filesystem=system, format="parquet", partitioning=partitions)
    except pa.ArrowInvalid as error:
        raise QueryError(f"{path}: {' '.join(str(error).split())}") from None


def _without_zone(field: pa.Field) -> pa.Field:
    return field.with_type(pa.timestamp("ns")) if pa.types.is_timestamp(field.type) else field
