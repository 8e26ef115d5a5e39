"""What lies with Spark between the steps, on the executors' disks, is lost: an executor dies, a disk is emptied. It is
made again, and the tables are as if nothing had been."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from calls import Call
from sparkcluster import QUICK, Cluster, cluster, driver, environment, rows_in

from kwire.tables.columns import DEFAULT
from kwire.tables.schemas import SCHEMAS

LIMIT = 200  # s

DRIVER = f"""
import os, signal, subprocess, sys
from pathlib import Path
from pyspark.sql import SparkSession
from kwire.pipeline import job as jobs, run as running
source, out, marks, master, lost, disk = sys.argv[1:]
surveying, stitch = jobs._surveying, running.stitch

def told(inner):
    def run(batches):  # the executor is the parent of the worker's parent, which forks all workers
        executor = subprocess.run(["ps", "-o", "ppid=", "-p", str(os.getppid())], capture_output=True, text=True).stdout
        yield from inner(batches)
        Path(marks, executor.strip()).touch()
    return run

def losing(*given, **named):
    if lost == "executor":
        os.kill(int(min(os.listdir(marks))), signal.SIGKILL)
    else:
        blocks = [path for path in Path(disk).glob("**/blockmgr-*/*/rdd_*")]
        assert len(blocks) > 1, blocks
        for path in blocks:
            path.unlink()
    return stitch(*given, **named)

jobs._surveying = lambda *given: told(surveying(*given))
running.stitch = losing
spark = (
    SparkSession.builder.master(master)
    .config("spark.executor.memory", "512m").config("spark.executor.extraJavaOptions", "{QUICK}")
    .config("spark.driver.extraJavaOptions", "{QUICK}").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false").getOrCreate()
)
running.run(spark, [source], out, jobs.Job({DEFAULT}), split_size=2000, rollups=False)
assert len(os.listdir(marks)) > 1
"""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(environment(), tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.mark.parametrize("lost", ["executor", "disk"])
def test_what_is_lost_between_the_steps_is_made_again(
    workers: Cluster, tmp_path: Path, unpacked: Callable[[str], Path], expected: Call, lost: str
) -> None:
    path, out, marks = unpacked("kafkajs.pcap"), tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    given = [sys.executable, "-c", DRIVER, path, out, marks, workers.url, lost, workers.disks[1]]
    driver(given, environment(), LIMIT)
    assert {name: rows_in(out / name, SCHEMAS[name]) for name in DEFAULT} == expected([path], DEFAULT)
