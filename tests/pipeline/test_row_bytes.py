"""Rows are packed between the steps of a job, and come back as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kwire.pipeline.row_bytes import MOST, RowBytes, rows_of
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


@pytest.mark.parametrize("most", [MOST, 5000])
def test_rows_come_back_as_they_were(most: int) -> None:
    made = tables_of([CAPTURES / "txn.pcap.gz"], COLUMNS)
    packed = RowBytes(most)
    for table, rows in made.items():
        for batch in rows.to_batches(100):
            packed.write(table, batch)
    pieces = packed.close()
    assert {table for table, _ in pieces} == {table for table, rows in made.items() if rows.num_rows}
    assert (len(pieces) > len({table for table, _ in pieces})) is (most == 5000)
    for wanted, rows in made.items():
        batches = [batch for table, data in pieces if table == wanted for batch in rows_of(data)]
        assert pa.Table.from_batches(batches, rows.schema).equals(rows)


def test_what_has_no_rows_has_no_bytes() -> None:
    assert RowBytes().close() == []
