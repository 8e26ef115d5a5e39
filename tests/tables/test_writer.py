"""Tables as files: read back by pyarrow, pandas, DuckDB and polars they are what was written, and a file has its name
only when it is whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tablerows import untimed

from kwire.render.bodies import BodyRenderer
from kwire.tables.build import build, tables_of
from kwire.tables.columns import COLUMNS
from kwire.tables.schemas import SCHEMAS
from kwire.tables.writer import OPENERS, Files

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
CAPTURE = CAPTURES / "txn.pcap.gz"
forms = pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
each = pytest.mark.parametrize("name", COLUMNS)


@cache
def tables() -> dict[str, pa.Table]:
    return tables_of([CAPTURE], COLUMNS, bodies=BodyRenderer())


@pytest.fixture(scope="module", params=sorted(OPENERS))
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of all tables, in each form."""
    files = Files(tmp_path_factory.mktemp("tables") / "deep" / "er", COLUMNS, request.param)
    build([CAPTURE], COLUMNS, files.write, bodies=BodyRenderer())
    files.close()
    assert files.rows == {name: table.num_rows for name, table in tables().items()}
    return files.paths


def flat(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with lists as JSON, as CSV has them."""
    return [
        {name: json.dumps(value) if isinstance(value, list) else value for name, value in row.items()}
        for row in table.to_pylist()
    ]


# ---------------------------------------------------------------- read back


@each
def test_pyarrow_reads_what_was_written(name: str, written: dict[str, Path]) -> None:
    path, table = written[name], tables()[name]
    assert path.name == f"{name}{path.suffix}"
    if path.suffix == ".csv":
        nullable = pa.csv.ConvertOptions(
            column_types={
                field.name: pa.string() if pa.types.is_nested(field.type) else field.type for field in table.schema
            },
            strings_can_be_null=True, quoted_strings_can_be_null=False,
        )  # fmt: skip
        assert pa.csv.read_csv(path, convert_options=nullable).to_pylist() == flat(table)
        return
    read = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    assert read.cast(SCHEMAS[name]).equals(table)


@each
def test_pandas_reads_what_was_written(name: str, written: dict[str, Path]) -> None:
    path, table = written[name], tables()[name]
    if path.suffix == ".parquet":
        assert pa.Table.from_pandas(pd.read_parquet(path), SCHEMAS[name], preserve_index=False).equals(table)
    elif path.suffix == ".arrow":
        assert pd.read_feather(path).equals(table.to_pandas())
    else:
        read = pd.read_csv(path)
        assert (list(read.columns), len(read)) == (table.schema.names, table.num_rows)


@each
def test_duckdb_reads_what_was_written(name: str, written: dict[str, Path]) -> None:
    path, table = written[name], tables()[name]
    with duckdb.connect() as connection:
        if path.suffix == ".arrow":
            found = connection.from_arrow(pa.ipc.open_file(path).read_all())
        elif path.suffix == ".parquet":
            found = connection.sql(f"select * from '{path}'")
        else:
            found = connection.sql(f"select * from read_csv('{path}', header = true, all_varchar = true)")
        assert found.columns == table.schema.names
        if path.suffix == ".csv":
            assert len(found.fetchall()) == table.num_rows
        else:
            assert untimed(found.to_arrow_table()).to_pylist() == untimed(table).to_pylist()


@each
def test_polars_reads_what_was_written(name: str, written: dict[str, Path]) -> None:
    path, table = written[name], tables()[name]
    if path.suffix == ".csv":
        read = pl.read_csv(path, infer_schema=False)
        assert (read.columns, read.height) == (table.schema.names, table.num_rows)
        return
    read = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ipc(path)
    assert read.to_dicts() == table.to_pylist()


# ---------------------------------------------------------------- whole or not at all


@forms
def test_a_file_has_its_name_only_when_it_is_whole(form: str, tmp_path: Path) -> None:
    files = Files(tmp_path, ["messages", "quality"], form)
    for batch in tables()["messages"].to_batches():
        files.write("messages", batch)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    files.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"messages.{form}", f"quality.{form}"]


@forms
@pytest.mark.parametrize("group", [1, 50, 1 << 17])
def test_what_is_abandoned_leaves_nothing(form: str, group: int, tmp_path: Path) -> None:
    (tmp_path / f"messages.{form}").write_text("from before")
    files = Files(tmp_path, ["messages", "exchanges"], form, group=group)
    for batch in tables()["messages"].to_batches(max_chunksize=40):
        files.write("messages", batch)
    files.abandon()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(f"messages.{form}", "from before")]


@forms
def test_what_is_closed_in_vain_leaves_nothing(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(tmp_path, ["messages"], form)
    files.write("messages", tables()["messages"].to_batches()[0])

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        files.close()
    files.abandon()
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_cannot_be_closed_leaves_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, file: BinaryIO, _: pa.Schema) -> None:
            file.write(b"half")

        def write_table(self, _: pa.Table) -> None:
            raise OSError("No space left on device")

        def close(self) -> None:
            raise OSError("No space left on device")

    monkeypatch.setitem(OPENERS, "parquet", Full)
    files = Files(tmp_path, ["messages"])
    files.write("messages", tables()["messages"].to_batches()[0])
    with pytest.raises(OSError, match="No space left"):
        files.close()
    assert len(list(tmp_path.iterdir())) == 1
    files.abandon()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from kwire.tables import writer
from kwire.tables.build import build
files = writer.Files(Path(sys.argv[2]), ["messages", "exchanges"], group=1)
build([sys.argv[1]], ["messages", "exchanges"], files.write)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_leaves_no_final_name_and_the_next_run_is_whole(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", KILLED, str(CAPTURE), str(tmp_path)], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert list(tmp_path.glob("[!.]*")) == []
    assert len(list(tmp_path.glob(".*.part"))) == 2
    files = Files(tmp_path, ["messages", "exchanges"])
    build([CAPTURE], ["messages", "exchanges"], files.write)
    files.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exchanges.parquet", "messages.parquet"]
    assert pq.read_table(tmp_path / "messages.parquet").num_rows == tables()["messages"].num_rows


# ---------------------------------------------------------------- groups


def test_rows_go_out_in_groups(tmp_path: Path) -> None:
    files = Files(tmp_path, ["messages"], group=50)
    for batch in tables()["messages"].to_batches(max_chunksize=20):
        files.write("messages", batch)
    files.close()
    read = pq.ParquetFile(files.paths["messages"])
    rows = [read.metadata.row_group(number).num_rows for number in range(read.num_row_groups)]
    assert (rows, sum(rows)) == ([60, 60, 56], 176)
    assert read.read().to_pylist() == tables()["messages"].to_pylist()


@forms
def test_a_table_without_rows_is_a_file_with_columns(form: str, tmp_path: Path) -> None:
    files = Files(tmp_path, ["clients"], form)
    files.close()
    path = files.paths["clients"]
    if form == "csv":
        assert path.read_text().strip() == ",".join(f'"{name}"' for name in SCHEMAS["clients"].names)
    else:
        read = pq.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
        assert (read.cast(SCHEMAS["clients"]).schema, read.num_rows) == (SCHEMAS["clients"], 0)


# ---------------------------------------------------------------- texts that mean harm


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("csv", ["'=cmd|' /C calc'!A0", "a\\x1b[31m", "plain", None]),
        ("raw csv", ["=cmd|' /C calc'!A0", "a\x1b[31m", "plain", None]),
    ],
)
def test_csv_holds_no_formulas_unless_it_is_raw(form: str, shown: list[str | None], tmp_path: Path) -> None:
    texts = ["=cmd|' /C calc'!A0", "a\x1b[31m", "plain", None]
    rows = [dict.fromkeys(SCHEMAS["messages"].names) | {"client_id": text, "correlation_id": -1} for text in texts]
    files = Files(tmp_path, ["messages"], form)
    files.write("messages", pa.RecordBatch.from_pylist(rows, SCHEMAS["messages"]))
    files.close()
    options = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    read = pa.csv.read_csv(tmp_path / "messages.csv", convert_options=options)
    assert read["client_id"].to_pylist() == shown
    assert read["correlation_id"].to_pylist() == [-1] * 4
