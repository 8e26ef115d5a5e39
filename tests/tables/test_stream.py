"""Tables as Arrow streams: the same rows, taken by those who speak Arrow, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import kwire
from kwire.errors import UnknownName
from kwire.tables.build import tables_of
from kwire.tables.columns import DEFAULT

CAPTURE = Path(__file__).parents[2] / "fixtures" / "captures" / "classic.pcap.gz"


@pytest.mark.parametrize("name", DEFAULT)
def test_every_table(name: str) -> None:
    stream = kwire.open(CAPTURE).table(name)
    made = pa.RecordBatchReader.from_stream(stream).read_all()
    assert made.equals(tables_of([CAPTURE], [name])[name])
    assert kwire.to_arrow(CAPTURE, name).equals(made)


def test_duckdb_takes_it_by_its_name() -> None:
    capture = kwire.open(CAPTURE)
    found = duckdb.sql("select count(*), count(distinct connection) from capture")
    assert found is not None
    assert found.fetchall() == [(kwire.to_arrow(CAPTURE).num_rows, 10)]
    assert capture.names[0] == "messages"


def test_rows_come_while_it_is_read() -> None:
    reader = kwire.to_arrow(CAPTURE, "exchanges", stream=True)
    assert reader.read_next_batch().num_rows > 0


def test_bodies_and_names() -> None:
    capture = kwire.open(CAPTURE)
    assert next(capture.table("bodies").batches()).num_rows > 0
    with pytest.raises(UnknownName, match="no table body"):
        capture.table("body")
