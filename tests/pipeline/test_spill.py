"""Rows wait in files between the steps of a job, and come back as they were."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from kwire.pipeline.spill import Spill, rows_of
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    made = tables_of([CAPTURES / "txn.pcap.gz"], COLUMNS)
    spill = Spill(str(tmp_path / "rows"), "7-a")
    for table, rows in made.items():
        for batch in rows.to_batches(100):
            spill.write(table, batch)
    files = spill.close()
    assert sorted(files) == sorted(table for table, rows in made.items() if rows.num_rows)
    for table, path in files.items():
        assert pa.Table.from_batches(rows_of(path)).equals(made[table])


def test_two_attempts_do_not_meet(tmp_path: Path) -> None:
    (batch,) = tables_of([CAPTURES / "ipv6.pcap"], ["connections"])["connections"].to_batches()
    attempts = [Spill(str(tmp_path), tag) for tag in ("3-a", "3-b")]
    for spill in attempts:
        spill.write("connections", batch)
    first, second = (spill.close()["connections"] for spill in attempts)
    assert first != second
    assert [len(list(rows_of(path))) for path in (first, second)] == [1, 1]


def test_what_has_no_rows_has_no_files(tmp_path: Path) -> None:
    assert Spill(str(tmp_path / "rows"), "0-a").close() == {}
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"gone\.arrows"):
        list(rows_of(str(tmp_path / "gone.arrows")))
