"""The tables findings and audit say what kwire doctor and kwire audit say, with one process and with several."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.session.reader import Settings
from kwire.tables.build import tables_of
from kwire.tables.jobs import build_with_jobs
from kwire.tables.schemas import SCHEMAS
from kwire.tables.stream import CaptureTables

FIXTURES = Path(__file__).parents[2] / "fixtures"
DENIED, UPGRADE = FIXTURES / "doctor" / "acl-denied.pcap", FIXTURES / "doctor" / "upgrade.pcap.gz"


def test_findings_are_those_of_the_doctor(kwire: Callable[..., Any]) -> None:
    said = [json.loads(line) for line in kwire("doctor", str(DENIED), "--format", "json").text.splitlines()]
    rows = tables_of([DENIED], ["findings"])["findings"].to_pylist()
    assert len(rows) == len(said) > 0
    for row, one in zip(rows, said, strict=True):
        about = {name.removeprefix("about_"): value for name, value in row.items() if name.startswith("about_")}
        assert {name: value for name, value in about.items() if value is not None} == one["about"]
        assert (row["first_time_ns"], row["last_time_ns"]) == (one["first_time"], one["last_time"])
        for name in ("detector", "severity", "count", "packets", "text", "advice", "otherwise", "caused_by"):
            assert row[name] == one[name], name


def test_audit_is_that_of_the_command(kwire: Callable[..., Any]) -> None:
    judged = tables_of([UPGRADE], ["audit"])["audit"].to_pylist()
    assert sorted({row["release"] for row in judged}) == ["4.0", "4.1", "4.2", "4.3", "4.4"]
    to = json.loads(kwire("audit", "--to", "4.3", str(UPGRADE), "--format", "json").text.splitlines()[0])
    assert next(row for row in judged if row["release"] == "4.3")["client_id"] == to["client_id"]
    said = [json.loads(line) for line in kwire("audit", str(UPGRADE), "--format", "json").text.splitlines()]
    rows = [row for row in judged if row["release"] == "4.0"]
    assert [(row["client_id"], row["verdict"], row["cure"], row["first_time_ns"]) for row in rows] == [
        (one["client_id"], one["verdict"], one["cure"], one["first_time"]) for one in said
    ]
    assert rows[0]["blocked_by"] == [{"api": "Produce", "versions": [2]}, {"api": "Fetch", "versions": [3]}]
    assert rows[0]["blocked_magic"] == [1]


@pytest.mark.parametrize("names", [["findings"], ["exchanges", "findings", "audit", "clients"]])
def test_several_processes_say_the_same_as_one(names: list[str]) -> None:
    parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
    reading, exchanges = build_with_jobs([DENIED], names, lambda name, batch: parts[name].append(batch), Settings(), 2)
    alone = tables_of([DENIED], names)
    for name in ("findings", *names[2:]):
        assert pa.Table.from_batches(parts[name], SCHEMAS[name]).to_pylist() == alone[name].to_pylist()
    assert (exchanges, reading.notes) == (23, [])


def test_some_columns_and_a_stream() -> None:
    found = pa.table(CaptureTables([DENIED]).table("findings"))
    assert found.schema == SCHEMAS["findings"]
    assert set(found["detector"].to_pylist()) == {"acl-denied"}
