"""Filters pushed down by Spark, as tests of Arrow batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)  # fmt: skip

COMPARED: dict[type[Filter], str] = {
    EqualTo: "equal", GreaterThan: "greater", GreaterThanOrEqual: "greater_equal", LessThan: "less",
    LessThanOrEqual: "less_equal", StringStartsWith: "starts_with", StringEndsWith: "ends_with",
    StringContains: "match_substring",
}  # fmt: skip


class Test(NamedTuple):
    """A test of a column: the name of an Arrow function and its argument; negated: the result is inverted."""

    column: str
    function: str
    value: Any
    negated: bool = False

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """True where rows stay; false for null, unless nulls are tested."""
        column = batch.column(self.column)
        if self.function == "is_null":
            found = pc.is_null(column)
        elif self.function == "is_in":
            found = pc.is_in(column, value_set=pa.array(self.value, column.type))
        elif self.function in ("starts_with", "ends_with", "match_substring"):
            found = getattr(pc, self.function)(column, pattern=self.value)
        else:
            found = getattr(pc, self.function)(column, pa.scalar(self.value, column.type))
        if self.function != "is_null":
            found = pc.and_kleene(found, pc.is_valid(column))
        if self.negated:
            found = pc.invert(found)
            if self.function != "is_null":
                found = pc.and_kleene(found, pc.is_valid(column))
        return found


def test_of(filter: Filter, schema: pa.Schema) -> Test | None:
    """The test equal to a filter; None when there is none."""
    if isinstance(filter, Not):
        inner = test_of(filter.child, schema)
        return None if inner is None else inner._replace(negated=not inner.negated)
    attribute: tuple[str, ...] = getattr(filter, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in schema.names or pa.types.is_nested(schema.field(attribute[0]).type):
        return None
    column = attribute[0]
    if isinstance(filter, IsNull | IsNotNull):
        return Test(column, "is_null", None, isinstance(filter, IsNotNull))
    if isinstance(filter, In):
        return None if any(value is None for value in filter.value) else Test(column, "is_in", list(filter.value))
    function = COMPARED.get(type(filter))
    value = getattr(filter, "value", None)
    return None if function is None or value is None else Test(column, function, value)
