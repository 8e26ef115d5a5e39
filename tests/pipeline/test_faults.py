"""Drivers that are really killed, and tasks that run twice at once: the tables are as if nothing had been."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from calls import Call

from kwire.pipeline import hive
from kwire.pipeline import job as jobs
from kwire.pipeline.formats import table_of
from kwire.pipeline.hive import WrittenFile
from kwire.pipeline.job import Job
from kwire.pipeline.run import run
from kwire.pipeline.stream import run_stream
from kwire.tables.columns import COLUMNS

NAMES = ("messages", "exchanges", "connections", "quality")
LIMIT = 240  # s for a driver of its own

STREAM = """
import os, signal, sys
from kwire.pipeline import hive, stream
from kwire.pipeline.job import Job
from kwire.pipeline.run import session
source, out, where, number = sys.argv[1:]
tag, write, place = f"batch-{int(number):08}", stream.write_rows, hive.place

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying_write(rows, tables, names, staged, said, *more):
    written = write(rows, tables, names, staged, said, *more)
    return die() if where == "written" and said == tag else written

def dying_place(folder, staged, written, *more):
    if where == "placing" and any(found.file.startswith(tag) for found in written):
        place(folder, staged, written[: len(written) // 2 + 1], *more)
        die()
    place(folder, staged, written, *more)

stream.write_rows, hive.place = dying_write, dying_place
spark = session("local[1]")
stream.run_stream(spark, source, out, Job(tuple("messages exchanges connections quality".split())), split_size=9000,
    lateness=0, most=1, rollups=False)
"""


def driver(code: str, *arguments: Any, place: Path | None = None) -> int:
    """The status of a process that runs the code; all that it started is over too. place: where it finds kwire."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    environment = os.environ | {
        "PYTHONPATH": str(place or Path(__file__).parents[2]), "PYTHONSAFEPATH": "1", "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=LIMIT,
    )  # fmt: skip
    print(ran.stdout.decode(errors="replace")[-3000:])
    return ran.returncode


def table_rows(spark: Any, folder: Path, name: str) -> list[str]:
    columns = [f"`{column}`" for column, kind, _ in COLUMNS[name] if kind != "timestamp"]
    return sorted(repr(row.asDict(True)) for row in table_of(spark, str(folder), name).select(*columns).collect())


def test_a_driver_that_is_killed_twice_loses_and_doubles_nothing(
    spark: Any, tmp_path: Path, packets_of: Call, save: Call, unpacked: Call, expected: Call,
    zipped: Path,
) -> None:  # fmt: skip
    packets, ends = packets_of(unpacked("old39.pcap.gz")), [0, 190, 420]
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    paths = []
    for number, (low, high) in enumerate(zip(ends, [*ends[1:], len(packets)], strict=True)):
        paths.append(save(source / f"{number}.pcap", packets[low:high]))
        os.utime(paths[-1], (1e9 + number, 1e9 + number))
    assert driver(STREAM, source, out, "written", 1, place=zipped) == -signal.SIGKILL
    assert driver(STREAM, source, out, "placing", 2) == -signal.SIGKILL
    there = {path.name.partition("-")[2][:8] for path in (out / "messages").rglob("batch-*.parquet")}
    assert there == {"00000000", "00000001", "00000002"}
    assert len(list(out.glob(".kwire-?*[0-9a-f]"))) == 1  # of the second, which removed that of the first
    run_stream(spark, str(source), str(out), Job(NAMES), split_size=9000, lateness=0, most=1, rollups=False)
    assert [path.name for path in out.glob(".kwire-*")] == [".kwire-stream"]
    assert {name: table_rows(spark, out, name) for name in NAMES} == expected(paths, NAMES)


def test_two_attempts_at_every_task_double_nothing(
    spark: Any,
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    expected: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, out, writing, surveying = unpacked("kafkajs.pcap"), tmp_path / "out", jobs._writing, jobs._surveying
    staged: list[str] = []
    late: list[WrittenFile] = []
    place = hive.place

    def twice(inner: Any) -> Any:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            given = list(batches)
            first, second = inner(given), list(inner(given))
            done = list(first)  # both have written; Spark takes what one says
            yield from done if len(second) == len(done) else second

        return run

    def placing(folder: str, where: str, written: list[WrittenFile], *more: Any, **named: Any) -> None:
        files = [path.name for path in Path(where).rglob("*.parquet")]
        staged.extend(sorted(files))
        late.extend(written)
        place(folder, where, written, *more, **named)

    monkeypatch.setattr(jobs, "_surveying", lambda *given: twice(surveying(*given)))
    monkeypatch.setattr(jobs, "_writing", lambda *given: twice(writing(*given)))
    monkeypatch.setattr(hive, "place", placing)
    run(spark, [str(path)], str(out), Job(("messages",)), split_size=6000, rollups=False)
    assert len(late) > 1
    attempts: dict[str, Counter[str]] = {}
    for task, attempt in (parts[2:4] for name in staged if len(parts := name.split("-")) == 5):  # the rest are joined
        attempts.setdefault(task, Counter())[attempt] += 1
    assert all(len(found) == 2 and len(set(found.values())) == 1 for found in attempts.values())
    assert table_rows(spark, out, "messages") == expected([path], ["messages"])["messages"]
