"""A cluster of Spark's own, a master and two workers on loopback, that really runs a held-up task a second time."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from calls import Call
from tablerows import untimed

from kwire.tables.schemas import SCHEMAS

NAMES = ("messages", "exchanges", "connections", "quality")
HOSTS = ("127.0.0.1", "127.0.0.2")  # a second attempt goes to another host than the first
LIMIT = 150  # s
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
URL = re.compile(r"spark://\S+:\d+")

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
    SparkSession.builder.master(master)
    .config("spark.speculation", "true").config("spark.speculation.interval", "50ms")
    .config("spark.speculation.multiplier", "1.01").config("spark.speculation.quantile", "0.1")
    .config("spark.executor.memory", "512m").config("spark.executor.extraJavaOptions", "{QUICK}")
    .config("spark.driver.extraJavaOptions", "{QUICK}").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false").getOrCreate()
)
run(spark, [source], out, jobs.Job({NAMES}), split_size=6000, rollups=False)
"""


@pytest.fixture
def environment() -> dict[str, str]:
    """Of processes of Spark that find kwire. Skips where there is no Spark, or only one loopback address."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    import pyspark

    for host in HOSTS:
        with socket.socket() as probe:
            try:
                probe.bind((host, 0))
            except OSError:
                pytest.skip(f"two workers need {' and '.join(HOSTS)}, and {host} is not of this machine")
    return os.environ | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable, "PYTHONSAFEPATH": "1",
        "PYTHONPATH": str(Path(__file__).parents[2]), "SPARK_LOCAL_IP": HOSTS[0], "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
    }  # fmt: skip


@pytest.fixture
def master(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The address of a cluster of two workers of one core."""
    running: list[subprocess.Popen[str]] = []

    def start(role: str, host: str, *more: str) -> subprocess.Popen[str]:
        command = [f"{environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{role}"]
        found = subprocess.Popen(
            [*command, "--host", host, "--port", "0", "--webui-port", "0", *more], text=True, start_new_session=True,
            env=environment | {"SPARK_LOCAL_IP": host}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        running.append(found)
        return found

    try:
        said = start("master.Master", HOSTS[0]).stdout
        assert said is not None
        url = next(found[0] for line in said if (found := URL.search(line)))
        for host in HOSTS:
            start("worker.Worker", host, "-c", "1", "-m", "512M", "-d", str(tmp_path / f"work-{host}"), url)
        for process in running:
            threading.Thread(target=process.communicate, daemon=True).start()
        yield url
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait(30)


def test_second_attempts_that_really_run_double_nothing(
    environment: dict[str, str],
    master: str,
    tmp_path: Path,
    unpacked: Callable[[str], Path],
    expected: Call,
) -> None:
    path, out, marks = unpacked("kafkajs.pcap"), tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, path, out, marks, master], env=environment, timeout=LIMIT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
    tried = Counter(mark.name.rpartition(" ")[0] for mark in marks.iterdir())
    assert (tried["survey 1"], tried["write 1"]) == (2, 2)
    files = Counter((file.parent, re.sub("-[0-9a-f]{8}-", "-", file.name)) for file in out.rglob("*.parquet"))
    assert set(files.values()) == {1}
    assert {name: rows_of(out / name, SCHEMAS[name]) for name in NAMES} == expected([path], NAMES)


def rows_of(folder: Path, schema: pa.Schema) -> list[str]:
    parts = ds.partitioning(pa.schema([("date", pa.string()), ("api", pa.string())]), flavor="hive")
    table = ds.dataset(folder, schema=schema, format="parquet", partitioning=parts).to_table()
    return sorted(map(repr, untimed(table).to_pylist()))
