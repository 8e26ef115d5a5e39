"""The tables' columns as Arrow schemas."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from kwire.tables.columns import COLUMNS

__all__ = ["COLUMNS", "SCHEMAS", "schema_of"]

KINDS = {
    "string": pa.string(), "int64": pa.int64(), "int32": pa.int32(), "int16": pa.int16(), "int8": pa.int8(),
    "bool": pa.bool_(), "list<string>": pa.list_(pa.string()),
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
