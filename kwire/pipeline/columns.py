"""The tables' columns as Spark knows them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kwire.errors import UnknownName
from kwire.tables.columns import COLUMNS
from kwire.tables.schemas import SCHEMAS

TYPES = {
    "string": "string", "int64": "bigint", "int32": "int", "int16": "smallint", "int8": "tinyint", "bool": "boolean",
    "list<string>": "array<string>",
    "list<struct<api: string, versions: list<int16>>>": "array<struct<api: string, versions: array<smallint>>>",
}  # fmt: skip


def ddl(table: str) -> str:
    """A table's columns, as Spark writes schemas."""
    return ", ".join(f"`{name}` {TYPES[kind]}" for name, kind, _ in COLUMNS[table])


def narrowed(table: str, columns: Sequence[str]) -> pa.Schema:
    """The schema of these columns of a table. Raises UnknownName for one that it does not have."""
    schema = SCHEMAS[table]
    for name in columns:
        if name not in schema.names:
            raise UnknownName("column", name, tuple(schema.names))
    return pa.schema([schema.field(name) for name in columns])
