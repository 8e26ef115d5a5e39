"""Rollups: what is added to some days changes only these, and they are as if all had been made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import Call

from kwire.pipeline.job import Job
from kwire.pipeline.report import reports
from kwire.pipeline.rollups import ROLLUPS, count_runs, counted_runs, write_rollups
from kwire.pipeline.run import run
from kwire.tables.columns import DEFAULT

DAY = 86_400_000_000_000  # ns


@pytest.fixture
def days(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> list[str]:
    """The same traffic on three days; the last file is of the first two."""
    packets, folder = packets_of(unpacked("classic.pcap.gz")), tmp_path / "caps"
    folder.mkdir()
    later = [[(time + number * DAY, *rest) for time, *rest in packets] for number in range(3)]
    return [str(save(folder / f"{at}.pcap", some)) for at, some in enumerate([*later, later[0][:60] + later[1][:90]])]


@pytest.fixture
def rows(spark: Any) -> Callable[[Path], dict[str, list[str]]]:
    """The rollups of a folder by name."""

    def read(folder: Path) -> dict[str, list[str]]:
        out = {}
        for name in ROLLUPS:
            found = spark.read.parquet(str(folder / "rollups" / name)).collect()
            out[name] = sorted(repr(sorted(row.asDict().items())) for row in found)
        return out

    return read


def test_days_that_got_rows_are_made_anew_and_no_others(
    spark: Any, tmp_path: Path, days: list[str], rows: Callable[[Path], dict[str, list[str]]]
) -> None:
    lake = tmp_path / "lake"

    def add(*paths: str, rollups: bool = True) -> None:
        run(spark, paths, str(lake), Job(DEFAULT), incremental=True, rollups=rollups)

    add(days[0])
    add(days[1], rollups=False)
    add(days[2])  # makes those of the day before, too
    there = {path: path.read_bytes() for path in lake.glob("*/date=2026-11-23/**/*.parquet")}
    assert there
    for path in there:
        path.write_bytes(b"read by nobody")
    made = set((lake / "rollups").rglob("date=2026-11-23/*.parquet"))
    add(*days)
    assert made
    assert all(path.exists() for path in made)
    for path, data in there.items():
        path.write_bytes(data)
    found = rows(lake)
    write_rollups(spark, str(lake), DEFAULT)
    assert found == rows(lake)
    assert not any(path.exists() for path in made)


def test_a_report_is_over_all_days(spark: Any, tmp_path: Path, days: list[str]) -> None:
    run(spark, days[:1], str(tmp_path / "one"), Job(DEFAULT))
    run(spark, days[:3], str(tmp_path / "three"), Job(DEFAULT))
    one, three = ({found.name: found for found in reports(tmp_path / name)} for name in ("one", "three"))
    assert list(one) == list(ROLLUPS)
    assert three["latency"].total == 3 * one["latency"].total
    for name in ("errors", "topics", "clients", "rebalances", "quality"):
        rollup, columns = ROLLUPS[name], one[name].columns
        assert three[name].columns == columns
        for mine, all_days in zip(one[name].rows, three[name].rows, strict=True) if name != "quality" else ():
            before, after = dict(zip(columns, mine, strict=True)), dict(zip(columns, all_days, strict=True))
            for column in columns:
                how = rollup.merges.get(column)
                if how == "sum" and name != "clients":
                    assert after[column] == 3 * before[column], column
                elif how not in ("sum", "max"):
                    assert after[column] == before[column], column


def test_the_runs_that_are_counted(tmp_path: Path) -> None:
    assert counted_runs(str(tmp_path)) == set()
    count_runs(str(tmp_path), {"run-b", "run-a"})
    assert counted_runs(str(tmp_path)) == {"run-a", "run-b"}
    (tmp_path / "rollups" / "_runs.json").write_text("[")
    assert counted_runs(str(tmp_path)) == set()
