"""SQL as text: how deep a query goes."""

import pytest

from kwire.tables.sqltext import depth


@pytest.mark.parametrize(
    ("text", "deep"),
    [("select 1", 0), ("select (1)", 1), ("select ((1), [2, {'a': (3)}])", 4), ("select '((((' || \"((\"", 0),
     ("select 1 -- (((\n, (2)", 1), ("/* (( */ (", 1), ("))))(", 1), ("(" * 9000, 9000)],
)  # fmt: skip
def test_depth_counts_what_lies_in_each_other(text: str, deep: int) -> None:
    assert depth(text) == deep
