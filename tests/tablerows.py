"""Rows of tables as plain values, in which a time is ns since the epoch, as in the JSON of kwire read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def names_of(schema: pa.Schema) -> list[str]:
    """The columns, without those that say a time as ns again."""
    times = {f"{field.name}_ns" for field in schema if pa.types.is_timestamp(field.type)}
    return [name for name in schema.names if name not in times]


def rows_of(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows; asserts that both columns of a time say the same."""
    columns = {}
    for name in names_of(table.schema):
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
            if f"{name}_ns" in table.schema.names:
                assert column.equals(table.column(f"{name}_ns")), name
        columns[name] = column
    rows: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return rows


def untimed(table: pa.Table) -> pa.Table:
    """Without the timestamps, which files and Spark have in microseconds; the integers stay."""
    return table.select([field.name for field in table.schema if not pa.types.is_timestamp(field.type)])
