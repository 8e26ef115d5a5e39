"""A cluster of Spark's own, a master and two workers on loopback, that really runs a held-up task a second time."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from calls import Call
from sparkcluster import BUILDER, cluster, driver, environment, rows_in

from kwire.tables.schemas import SCHEMAS

NAMES = ("messages", "exchanges", "connections", "quality")
LIMIT = 150  # s

DRIVER = f"""
import os, sys, time
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
from typing import Any
from kwire.pipeline import job as jobs
from kwire.pipeline.run import run
source, out, marks, master = sys.argv[1:]
surveying, writing = jobs._surveying, jobs._writing

def held(what, inner):
    def run(batches):
        task, done = TaskContext.get(), list(inner(batches))
        number, attempt = task.partitionId(), task.attemptNumber()
        Path(marks, f"{{what}} {{number}} {{attempt}}").touch()
        if number == 1 and attempt == 0:  # done, but does not say so: a survey never, rows when the other one does
            end, other = time.monotonic() + {LIMIT}, Path(marks, "write 1 1")
            while time.monotonic() < end and not (what == "write" and other.exists()):
                time.sleep(0.02)
        yield from done
    return run

jobs._surveying = lambda *given: held("survey", surveying(*given))
jobs._writing = lambda *given: held("write", writing(*given))
spark = (
    {BUILDER}
    .config("spark.speculation", "true").config("spark.speculation.interval", "50ms")
    .config("spark.speculation.multiplier", "1.01").config("spark.speculation.quantile", "0.1")
    .getOrCreate()
)
run(spark, [source], out, jobs.Job({NAMES}), split_size=6000, rollups=False)
"""


def test_second_attempts_that_really_run_double_nothing(
    tmp_path: Path, unpacked: Callable[[str], Path], expected: Call
) -> None:
    path, out, marks, given = unpacked("kafkajs.pcap"), tmp_path / "out", tmp_path / "marks", environment()
    marks.mkdir()
    with cluster(given, tmp_path) as master:
        driver([sys.executable, "-c", DRIVER, path, out, marks, master], given, LIMIT)
    tried = Counter(mark.name.rpartition(" ")[0] for mark in marks.iterdir())
    assert (tried["survey 1"], tried["write 1"]) == (2, 2)
    files = Counter((file.parent, re.sub("-[0-9a-f]{8}-", "-", file.name)) for file in out.rglob("*.parquet"))
    assert set(files.values()) == {1}
    assert {name: rows_in(out / name, SCHEMAS[name]) for name in NAMES} == expected([path], NAMES)
