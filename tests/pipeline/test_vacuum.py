"""Old days of a folder's tables are removed, and nothing else."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from calls import Call

from kwire.errors import OutputError
from kwire.pipeline.vacuum import old_days, remove

TODAY = date(2026, 11, 23)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in (
        "messages/date=2026-11-01/api=Fetch/a.parquet", "messages/date=2026-11-22/api=Fetch/b.parquet",
        "clients/date=2026-10-31/c.parquet", "messages/date=__HIVE_DEFAULT_PARTITION__/d.parquet",
        "messages/date=2026-13-41/e.parquet", "rollups/latency/date=2026-11-22/f.parquet", "files/run-1.parquet",
        "other/date=2020-01-01/g.parquet",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    return tmp_path


def files(lake: Path) -> set[str]:
    return {path.name for path in lake.rglob("*.parquet")}


@pytest.mark.parametrize(("days", "gone"), [(0, "abcf"), (1, "ac"), (22, "c"), (23, ""), (400, "")])
def test_days_before_those_that_are_kept(lake: Path, days: int, gone: str) -> None:
    before = files(lake)
    for found in list(old_days(lake, days, TODAY)):
        assert (found.files, found.size) == (1, 5)
        remove(found)
    assert before - files(lake) == {f"{name}.parquet" for name in gone}


def test_what_is_a_symbolic_link_stays(lake: Path) -> None:
    (lake / "clients/date=2020-01-01").symlink_to(lake / "other")
    assert {found.table for found in old_days(lake, 1, TODAY)} == {"messages", "clients"}
    assert date(2020, 1, 1) not in {found.day for found in old_days(lake, 1, TODAY)}


@pytest.mark.parametrize(("name", "form"), [("_delta_log", "Delta"), ("metadata", "Iceberg")])
def test_tables_of_other_formats_are_left_to_them(lake: Path, name: str, form: str) -> None:
    (lake / "messages" / name).mkdir()
    with pytest.raises(OutputError, match=form):
        list(old_days(lake, 1, TODAY))


def test_the_command_says_what_it_removes(lake: Path, kwire: Call) -> None:
    tried = kwire("pipeline", "vacuum", str(lake), "--older-than", "0", "--dry-run")
    assert len(files(lake)) == 8
    ran = kwire("pipeline", "vacuum", str(lake), "--older-than", "0")
    assert len(files(lake)) < 8
    assert tried.out.splitlines()[:1] == ran.out.splitlines()[:1]
    assert b"2026-10-31 clients" in ran.out
    assert ran.err.startswith("kwire: ")
