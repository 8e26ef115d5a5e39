"""The tables' columns as Arrow schemas, and record batches of these schemas."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa

from kwire.tables.arrow import coded, mended, plain
from kwire.tables.columns import COLUMNS

__all__ = ["COLUMNS", "SCHEMAS", "schema_of"]

Makes = dict[str, Callable[[], pa.Array]]  # a maker for each column, by name

TIMESTAMP = pa.timestamp("ns", "UTC")
NS = "_ns"
KINDS = {
    "string": pa.string(), "int64": pa.int64(), "int32": pa.int32(), "int16": pa.int16(), "int8": pa.int8(),
    "bool": pa.bool_(), "timestamp": TIMESTAMP, "list<string>": pa.list_(pa.string()),
    "list<int16>": pa.list_(pa.int16()),
    "list<struct<api: string, versions: list<int16>>>": pa.list_(
        pa.struct([("api", pa.string()), ("versions", pa.list_(pa.int16()))])
    ),
    "list<struct<name: string, values: list<string>>>": pa.list_(
        pa.struct([("name", pa.string()), ("values", pa.list_(pa.string()))])
    ),
}  # fmt: skip
SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([pa.field(column, KINDS[kind]) for column, kind, _ in columns]) for name, columns in COLUMNS.items()
}


def schema_of(table: str, columns: Collection[str] | None = None) -> pa.Schema:
    """A table's schema with only these columns, in the table's order; None: all."""
    schema = SCHEMAS[table]
    return schema if columns is None else pa.schema([field for field in schema if field.name in columns])


def record_batch(table: str, makes: Makes, columns: Collection[str] | None = None) -> pa.RecordBatch:
    """Rows of a table from the makers of its columns, which may be coded; columns: only these, None: all. A time is
    made once, as ns since the epoch, for both its columns."""
    arrays, schema = [], schema_of(table, columns)
    for field in schema:
        make = makes.get(field.name) or makes[field.name.removesuffix(NS)]
        array = make()
        arrays.append(array.view(field.type) if field.type == TIMESTAMP and array.type != TIMESTAMP else array)
    return pa.RecordBatch.from_arrays(arrays, schema.names)


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with no column coded."""
    return pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], batch.schema.names)


def coded_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with all texts coded: see arrow.coded."""
    return pa.RecordBatch.from_arrays([coded(column) for column in batch.columns], batch.schema.names)


def batch_of_rows(table: str, rows: list[dict[str, Any]], columns: Collection[str] | None = None) -> pa.RecordBatch:
    """Rows of a table from dicts, in which times are ns since the epoch."""
    schema = schema_of(table, columns)
    times = [field.name for field in SCHEMAS[table] if field.type == TIMESTAMP]
    rows = [row | {name + NS: row.get(name) for name in times} for row in rows] if times else rows
    try:
        return pa.RecordBatch.from_pylist(rows, schema)
    except UnicodeEncodeError:  # invalid UTF-8 is kept as surrogate escapes
        return pa.RecordBatch.from_pylist([_mended(row) for row in rows], schema)


def _mended(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _mended(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_mended(inner) for inner in value]
    return mended(value) if isinstance(value, str) else value
