"""What lies with Spark between the steps, on the executors' disks, is lost: an executor dies, a disk is emptied. It is
made again, and the tables are as if nothing had been."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from calls import Call
from sparkcluster import BUILDER, cluster, driver, environment, rows_in

from kwire.tables.columns import DEFAULT
from kwire.tables.schemas import SCHEMAS

LIMIT = 300  # s
LOST = ("disk", "executor")

DRIVER = f"""
import os, signal, sys
from pathlib import Path
from pyspark.sql import SparkSession
from kwire.pipeline import job as jobs, run as running
source, out, marks, master, disks = sys.argv[1:]
surveying, stitch = jobs._surveying, running.stitch

def told(inner):
    def run(batches):  # the executor is the parent of the worker's parent, which forks all workers
        executor = Path(f"/proc/{{os.getppid()}}/stat").read_text().rpartition(")")[2].split()[1]
        yield from inner(batches)
        Path(marks, executor).touch()
    return run

def losing(*given, **named):
    if lost == "executor":
        os.kill(int(min(os.listdir(marks))), signal.SIGKILL)
    else:
        blocks = list(Path(disks).glob("disk-*/**/blockmgr-*/*/rdd_*"))
        assert blocks
        for path in blocks:
            path.unlink()
    return stitch(*given, **named)

jobs._surveying = lambda *given: told(surveying(*given))
running.stitch = losing
spark = (
    {BUILDER}
    .getOrCreate()
)
for lost in {LOST}:
    running.run(spark, [source], f"{{out}}/{{lost}}", jobs.Job({DEFAULT}), split_size=4000, rollups=False)
assert len(os.listdir(marks)) > 1
"""


def test_what_is_lost_between_the_steps_is_made_again(
    tmp_path: Path, unpacked: Callable[[str], Path], expected: Call
) -> None:
    path, out, marks, given = unpacked("kafkajs.pcap"), tmp_path / "out", tmp_path / "marks", environment()
    marks.mkdir()
    with cluster(given, tmp_path) as master:
        driver([sys.executable, "-c", DRIVER, path, out, marks, master, tmp_path], given, LIMIT)
    for lost in LOST:
        assert {name: rows_in(out / lost / name, SCHEMAS[name]) for name in DEFAULT} == expected([path], DEFAULT)
