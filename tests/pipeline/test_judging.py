"""What doctor and audit say by capture point and day: the rows of kwire table for the same files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import Call

from kwire.pipeline.formats import table_of
from kwire.pipeline.job import Job
from kwire.pipeline.judging import PointDay, by_point, date_of, judged, point_of
from kwire.pipeline.run import run
from kwire.pipeline.stores import Stores
from kwire.session.reader import Settings
from kwire.tables.build import tables_of
from kwire.tables.columns import JUDGEMENTS

DAY = 86_400_000_000_000  # ns
NAMES = tuple(JUDGEMENTS)


@pytest.mark.parametrize(
    ("path", "point"),
    [
        ("/caps/kafka-0.pcap", "/caps/kafka-0"),
        ("/caps/kafka-1.pcapng.gz", "/caps/kafka-1"),
        ("/caps/kafka-0.pcap12", "/caps/kafka-0"),  # tcpdump -C
        ("/caps/kafka-0_00003_20261121100000.pcapng", "/caps/kafka-0"),  # dumpcap -b
        ("/caps/kafka-0-2026-11-21_10:05:00.pcap3.zst", "/caps/kafka-0"),  # tcpdump -G -C
        ("/caps/20261121T100500Z.kafka-0.cap", "/caps/kafka-0"),
        ("/caps/kafka-0.1795238592.pcap", "/caps/kafka-0"),
        ("s3a://bucket/caps/2026/11/21/10/kafka-0.pcap", "s3a://bucket/caps/kafka-0"),
        ("s3a://bucket/date=2026-11-21/hour=10/rack=b/kafka-0.pcap", "s3a://bucket/rack=b/kafka-0"),
        ("/caps/2026-11-21/10.0.0.1.pcap", "/caps/10.0.0.1"),
        ("/caps/2026-11-21.pcap", "/caps"),
        ("/out/.kwire-0123456789ab/0123456789abcdef/kafka-0.pcap", "/kafka-0"),
        ("/caps/broker2.pcap", "/caps/broker2"),
        ("/caps/" + "long" * 80 + ".pcap", "fb"),
    ],
)
def test_a_point_is_the_path_without_what_tells_files_of_a_ring_apart(path: str, point: str) -> None:
    found = point_of(path)
    assert found == point or (len(found) == 32 and "long" in path)


def test_files_go_by_point_and_day() -> None:
    known = {"/a.pcap1": "2026-11-21", "/a.pcap2": "2026-11-22", "/b.pcap": "2026-11-22"}
    new = {"/a.pcap3": "2026-11-22", "/c.pcap": "2026-11-22", "/empty.pcap": None}
    assert by_point(new, known) == [
        PointDay("/a", "2026-11-22", ("/a.pcap2", "/a.pcap3")),
        PointDay("/c", "2026-11-22", ("/c.pcap",)),
    ]
    assert by_point(new)[0].partition == "date=2026-11-22/capture_point=%2Fa"
    assert [date_of(time) for time in (0, 1, DAY)] == [None, "1970-01-01", "1970-01-02"]


@pytest.fixture
def ring(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> list[Path]:
    """Two points: one in three files, of which the last is of the next day; another in one."""
    packets, folder = packets_of(unpacked("evict-slow-joiner.pcap.gz")), tmp_path / "caps"
    folder.mkdir()
    cut = len(packets) // 2
    later = [(time + DAY, *rest) for time, *rest in packets]
    parts = [packets[:cut], packets[cut:], later]
    paths = [save(folder / f"kafka-0.pcap{number}", part) for number, part in enumerate(parts)]
    (folder / "kafka-1.pcap").write_bytes(unpacked("old39.pcap.gz").read_bytes())
    return [*paths, folder / "kafka-1.pcap"]


@pytest.fixture
def rows(spark: Any) -> Callable[[str | Path], dict[tuple[str, str, str], list[str]]]:
    """The rows by table, point and day; times as ns only."""

    def read(folder: str | Path) -> dict[tuple[str, str, str], list[str]]:
        out: dict[tuple[str, str, str], list[str]] = {}
        for name in NAMES:
            for row in table_of(spark, str(folder), name).collect():
                values = row.asDict(True)
                key = name, Path(values.pop("capture_point")).name, values.pop("date")
                out.setdefault(key, []).append(repr({k: v for k, v in values.items() if f"{k}_ns" not in values}))
        return {key: sorted(found) for key, found in out.items()}

    return read


def of_files(paths: list[Path]) -> list[list[str]]:
    """The rows of kwire table, of both tables."""
    out = []
    for table in tables_of(paths, NAMES).values():
        rows = [repr({k: v for k, v in row.items() if f"{k}_ns" not in row}) for row in table.to_pylist()]
        out.append(sorted(rows))
    return out


def test_each_point_and_day_has_the_rows_of_its_files(
    spark: Any, tmp_path: Path, ring: list[Path], rows: Callable[..., Any]
) -> None:
    bad = ring[0].with_name("bad.pcap")
    bad.write_bytes(b"nonsense" * 10)
    done = run(spark, list(map(str, [*ring, bad])), str(tmp_path / "out"), Job(("clients", *NAMES)), rollups=False)
    found = rows(tmp_path / "out")
    for point, date, paths in (
        ("kafka-0", "2026-11-21", ring[:2]), ("kafka-0", "2026-11-22", ring[2:3]), ("kafka-1", "2026-11-21", ring[3:]),
    ):  # fmt: skip
        got = [found.pop((name, point, date), []) for name in NAMES]
        assert got == of_files(paths), (point, date)
        assert all(got)
    assert not found
    assert {name: done.rows[name] for name in NAMES} == {
        name: sum(len(each) for key, each in rows(tmp_path / "out").items() if key[0] == name) for name in NAMES
    }
    assert list(done.failed) == [str(bad)]


def test_what_is_added_to_a_day_has_it_judged_anew(
    spark: Any, tmp_path: Path, ring: list[Path], rows: Callable[..., Any]
) -> None:
    job = Job(("clients", *NAMES))

    def add(*paths: Path) -> dict[str, int]:
        said = run(spark, list(map(str, paths)), str(tmp_path / "out"), job, rollups=False, incremental=True)
        return said.rows

    add(ring[0], ring[3])
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "findings").rglob("*.parquet")}
    add(*ring)
    kept = [path for path in before if path.exists()]
    assert [("kafka-1" in str(path), path.stat().st_mtime_ns) for path in kept] == [(True, before[kept[0]])]
    assert set(add(*ring).values()) == {0}
    run(spark, list(map(str, ring)), str(tmp_path / "whole"), job, rollups=False)
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")


def test_files_in_object_stores_and_files_that_are_gone(
    spark: Any, ring: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one is read by the task, the other left out."""
    fs = pytest.importorskip("pyarrow.fs")
    far = fs.SubTreeFileSystem(str(ring[0].parent), fs.LocalFileSystem())
    monkeypatch.setattr(Stores, "_opened", lambda *_: far)
    os.remove(ring[1])
    point = PointDay("s3a://far/kafka-0", "2026-11-21", ("s3a://far/kafka-0.pcap0", "s3a://far/kafka-0.pcap1"))
    with judged(spark, [point], NAMES, Settings(), Stores()) as frame:
        made = {row.name for row in frame.collect()}
    assert made == {name for name, found in zip(NAMES, of_files(ring[:1]), strict=True) if found}


def test_tables_of_a_catalog_have_capture_points_too(
    spark: Any, tmp_path: Path, ring: list[Path], rows: Callable[..., Any]
) -> None:
    spark.sql(f"create database kwire_judged location '{tmp_path}/db'")
    try:
        place = "catalog:/spark_catalog.kwire_judged."
        run(spark, [str(ring[3])], place, Job(NAMES), rollups=False)
        assert list(rows(place).values()) == of_files(ring[3:])
    finally:
        spark.sql("drop database kwire_judged cascade")
