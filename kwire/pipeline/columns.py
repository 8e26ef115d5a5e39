"""The tables' columns as Spark types, and the columns that a user's schema asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kwire.errors import UnknownName, WrongType
from kwire.tables.columns import COLUMNS, JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TYPES = {
    "int64": "bigint", "int32": "int", "int16": "smallint", "int8": "tinyint", "bool": "boolean", "list": "array",
}  # fmt: skip


class AskedColumns(NamedTuple):
    """Columns of a table, in the user's order. schema: their names and types in the user's schema."""

    names: list[str]
    schema: pa.Schema


def spark_type(kind: str) -> str:
    """A column's type as Spark writes it."""
    return re.sub(r"\w+(?![\w:])", lambda word: TYPES.get(word[0], word[0]), kind)


def ddl(table: str) -> str:
    """A table's schema as Spark DDL."""
    return ", ".join(f"`{name}` {spark_type(kind)}" for name, kind, _ in COLUMNS[table])


def lake_ddl(table: str) -> str:
    """The schema of a table of a run: with date, and of judgements with capture_point."""
    return ddl(table) + ", `date` string" + (", `capture_point` string" if table in JUDGEMENTS else "")


def as_spark(rows: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """Rows with Spark's types: times in µs."""
    kinds = [pa.timestamp("us", "UTC") if pa.types.is_timestamp(field.type) else field.type for field in SCHEMAS[table]]
    fields = [pa.field(name, kind) for name, kind in zip(SCHEMAS[table].names, kinds, strict=True)]
    return rows.cast(pa.schema(fields), safe=False)


def asked(table: str, schema: StructType, keys: Sequence[str] = ()) -> AskedColumns:
    """The columns that a schema asks for: names in any case, integers at least as wide as ours. keys: more columns, of
    strings. Raises UnknownName, WrongType."""
    from pyspark.sql.pandas.types import to_arrow_schema

    kinds = {name: kind for name, kind, _ in COLUMNS[table]} | dict.fromkeys(keys, "string")
    known = {name.lower(): name for name in kinds}
    names = [known.get(field.name.lower(), field.name.lower()) for field in schema.fields]
    wanted = to_arrow_schema(schema, timezone="UTC")
    for name, field, kind in zip(names, schema.fields, wanted.types, strict=True):
        if name not in kinds:
            raise UnknownName("column", field.name, nearest(name, tuple(kinds)))
        if not _holds(kind, pa.string() if name in keys else SCHEMAS[table].field(name).type):
            raise WrongType(f"{table}: {name} is {spark_type(kinds[name])}, not {field.dataType.simpleString()}")
    return AskedColumns(names, wanted)


def nearest(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The known names nearest to this one; all, when none is near."""
    import difflib

    return tuple(difflib.get_close_matches(name, known, 3)) or known


def _holds(kind: pa.DataType, ours: pa.DataType) -> bool:
    integers = pa.types.is_signed_integer(kind) and pa.types.is_signed_integer(ours)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(ours):  # Spark's have µs
        return True
    return bool(kind.equals(ours) or (integers and kind.bit_width >= ours.bit_width))
