"""kwire table: which files it writes, what it says, and what it refuses."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kwire.cli.main import cli
from kwire.tables import writer
from kwire.tables.columns import COLUMNS, DEFAULT
from kwire.tables.schemas import SCHEMAS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
CAPTURE = str(CAPTURES / "pyclients.pcap")
Run = Callable[..., Any]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_it_writes_a_file_for_each_table(jobs: str, kwire: Run, tmp_path: Path) -> None:
    ran = kwire("table", CAPTURE, "-o", str(tmp_path / "out"), "--jobs", jobs)
    assert (ran.status, ran.out) == (0, b"")
    assert names(tmp_path / "out") == sorted(f"{name}.parquet" for name in DEFAULT)
    assert ran.err == (
        "kwire: 92 messages, 46 exchanges, 20 partitions, 8 batches, 10 group_events, 4 clients, 10 connections, "
        f"0 quality to {tmp_path / 'out'}\n"
    )


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_tables_and_form_are_chosen(form: str, kwire: Run, tmp_path: Path) -> None:
    ran = kwire("table", CAPTURE, "-o", str(tmp_path), "--tables", "exchanges, clients", "--format", form)
    assert ran.status == 0
    assert names(tmp_path) == [f"clients.{form}", f"exchanges.{form}"]


@pytest.mark.parametrize(
    "arguments", [["--bodies"], ["--tables", "messages,bodies"], ["--tables", "bodies", "--bodies"]]
)
def test_bodies_are_a_table_on_request(arguments: list[str], kwire: Run, tmp_path: Path) -> None:
    assert kwire("table", CAPTURE, "-o", str(tmp_path), *arguments).status == 0
    assert pq.read_table(tmp_path / "bodies.parquet").num_rows == 92


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_findings_are_tables_on_request(jobs: str, kwire: Run, tmp_path: Path) -> None:
    assert kwire("table", CAPTURE, "-o", str(tmp_path), "--findings", "--jobs", jobs).status == 0
    assert names(tmp_path) == sorted(f"{name}.parquet" for name in (*DEFAULT, "findings", "audit"))
    assert pq.read_table(tmp_path / "audit.parquet")["verdict"].to_pylist() != []


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_secrets_are_withheld_unless_asked_for(jobs: str, kwire: Run, tmp_path: Path) -> None:
    for more, open_ in (([], False), (["--show-secrets"], True)):
        arguments = ["--tables", "bodies", "--jobs", jobs, *more]
        assert kwire("table", str(CAPTURES / "sasl-v0.pcap"), "-o", str(tmp_path), *arguments).status == 0
        texts = pq.read_table(tmp_path / "bodies.parquet")["body"].to_pylist()
        bodies = [text for text in texts if "AuthBytes" in text]
        assert bodies
        assert any("withheld" in text for text in bodies) is not open_


def test_several_captures_and_standard_input(kwire: Run, tmp_path: Path) -> None:
    both = [CAPTURE, str(CAPTURES / "ipv6.pcap")]
    assert kwire("table", *both, "-o", str(tmp_path), "--tables", "messages").status == 0
    assert pq.read_table(tmp_path / "messages.parquet").num_rows == 92 + 63
    data = Path(CAPTURE).read_bytes()
    assert kwire("table", "-", "-o", str(tmp_path), "--tables", "messages", "--jobs", "2", stdin=data).status == 0
    assert pq.read_table(tmp_path / "messages.parquet").num_rows == 92


def test_only_a_port(kwire: Run, tmp_path: Path) -> None:
    ran = kwire("table", CAPTURE, "-o", str(tmp_path), "--port", "1", "--tables", "messages")
    assert ran.status == 3
    assert pq.read_table(tmp_path / "messages.parquet").num_rows == 0


def test_damage_is_said(kwire: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(Path(CAPTURE).read_bytes()[:-7])
    ran = kwire("table", str(tmp_path / "cut.pcap"), "-o", str(tmp_path / "out"), "--tables", "quality")
    assert ran.status == 1
    assert ran.err.splitlines()[0].startswith("kwire: cut.pcap: ")
    assert ran.err.splitlines()[-1] == f"kwire: 1 quality to {tmp_path / 'out'}"


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("name", ["mesages", "message", "messages,mesages"])
def test_an_unknown_table_is_refused_with_the_nearest(name: str, kwire: Run, tmp_path: Path) -> None:
    ran = kwire("table", CAPTURE, "-o", str(tmp_path), "--tables", name)
    assert (ran.status, names(tmp_path)) == (2, [])
    assert ran.err.startswith(f"kwire: no table {name.split(',')[-1]}; did you mean messages")


@pytest.mark.parametrize("arguments", [[], [CAPTURE], ["-o", "out"]])
def test_captures_and_a_folder_are_needed(arguments: list[str], kwire: Run) -> None:
    ran = kwire("table", *arguments)
    assert ran.status == 2
    assert ran.err.endswith("Error: needs captures, and -o DIR or --table NAME\n")


def test_without_pyarrow_it_says_what_to_install(kwire: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    gone = lambda name, *rest: None if name == "pyarrow" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", gone)
    ran = kwire("table", CAPTURE, "-o", str(tmp_path / "out"))
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err == "kwire: kwire table needs pyarrow: pip install 'kwire[table]'\n"
    assert names(tmp_path) == []


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_no_capture_leaves_no_files(jobs: str, kwire: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no capture at all")
    ran = kwire("table", CAPTURE, str(tmp_path / "text"), "-o", str(tmp_path / "out"), "--jobs", jobs)
    assert ran.status == 2
    assert "text: neither pcap nor pcapng" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (OSError("No space left on device"), 2)])
def test_what_ends_halfway_leaves_no_files(
    error: BaseException, status: int, kwire: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    class Failing(writer.Files):
        def write(self, name: str, batch: pa.RecordBatch) -> None:
            super().write(name, batch)
            written.append(names(tmp_path))
            if len(written) > 1:
                raise error

    monkeypatch.setattr(writer, "Files", partial(Failing, group=1))
    ran = kwire("table", CAPTURE, "-o", str(tmp_path), "--jobs", "1")
    assert written[-1]
    assert all(name.endswith(".part") for name in written[-1])
    assert names(tmp_path) == []
    assert ran.status == status
    assert "Traceback" not in ran.err


# ---------------------------------------------------------------- columns


def test_columns_lists_every_column_and_writes_nothing(kwire: Run, tmp_path: Path) -> None:
    ran = kwire("table", "--columns", "-o", str(tmp_path / "out"), columns=200)
    assert (ran.status, ran.err, names(tmp_path)) == (0, "", [])
    parts = dict(zip(COLUMNS, ran.text.split("\n\n"), strict=True))
    for name, columns in COLUMNS.items():
        lines = parts[name].splitlines()
        assert lines[0] == name
        assert lines[1].split() == ["column", "type", "what"]
        assert [line.split()[0] for line in lines[2:]] == [column for column, _, _ in columns]
        for line, (_, kind, what) in zip(lines[2:], columns, strict=True):
            assert kind in line
            assert line.endswith(what)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_table_as_a_stream(jobs: str) -> None:
    command = [sys.executable, "-m", "kwire", "table", "-", "--table", "exchanges", "--jobs", jobs]
    done = subprocess.run(command, input=Path(CAPTURE).read_bytes(), capture_output=True, check=True)
    read = pa.ipc.open_stream(done.stdout).read_all()
    assert (read.schema, read.num_rows) == (SCHEMAS["exchanges"], 46)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "messages", "-o", "x"], "needs captures, and -o DIR or --table NAME"),
        ([], "needs captures, and -o DIR or --table NAME"),
        (["-o", "-"], "-o is a folder; --table NAME writes one table to stdout, as Arrow"),
        (["--table", "messages", "--bodies"], "--table writes one table, as Arrow"),
    ],
)
def test_what_a_stream_cannot_be(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["table", CAPTURE, *arguments])
    assert (done.exit_code, said in done.stderr) == (2, True)
