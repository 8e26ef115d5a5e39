"""The tables' columns as Arrow schemas, and batches of rows that have them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa

from kwire.tables.arrow import mended
from kwire.tables.columns import COLUMNS

__all__ = ["COLUMNS", "SCHEMAS", "schema_of"]

Makes = dict[str, Callable[[], pa.Array]]  # what makes a column, by its name

TIMESTAMP = pa.timestamp("ns", "UTC")
NS = "_ns"
KINDS = {
    "string": pa.string(), "int64": pa.int64(), "int32": pa.int32(), "int16": pa.int16(), "int8": pa.int8(),
    "bool": pa.bool_(), "timestamp": TIMESTAMP, "list<string>": pa.list_(pa.string()),
    "list<int16>": pa.list_(pa.int16()),
    "list<struct<api: string, versions: list<int16>>>": pa.list_(
        pa.struct([("api", pa.string()), ("versions", pa.list_(pa.int16()))])
    ),
}  # fmt: skip
SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([pa.field(column, KINDS[kind]) for column, kind, _ in columns]) for name, columns in COLUMNS.items()
}


def schema_of(table: str, columns: Collection[str] | None = None) -> pa.Schema:
    """A table's schema, of these columns alone, in the table's order; None: of all."""
    schema = SCHEMAS[table]
    return schema if columns is None else pa.schema([field for field in schema if field.name in columns])


def record_batch(table: str, makes: Makes, columns: Collection[str] | None = None) -> pa.RecordBatch:
    """Rows of a table from what makes its columns; columns: only these, None: all. A time is made as ns since the epoch
    and serves both its columns."""
    schema = schema_of(table, columns)
    arrays = []
    for field in schema:
        make = makes.get(field.name) or makes[field.name.removesuffix(NS)]
        array = make()
        arrays.append(array.view(field.type) if field.type == TIMESTAMP and array.type != TIMESTAMP else array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_of_rows(table: str, rows: list[dict[str, Any]], columns: Collection[str] | None = None) -> pa.RecordBatch:
    """The same from rows, in which a time is ns since the epoch."""
    schema = schema_of(table, columns)
    times = [field.name for field in SCHEMAS[table] if field.type == TIMESTAMP]
    rows = [row | {name + NS: row.get(name) for name in times} for row in rows] if times else rows
    try:
        return pa.RecordBatch.from_pylist(rows, schema)
    except UnicodeEncodeError:  # text that is no UTF-8 has escapes of its own
        return pa.RecordBatch.from_pylist([_mended(row) for row in rows], schema)


def _mended(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _mended(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mended(inner) for inner in value]
    return mended(value) if isinstance(value, str) else value
