"""A cluster of Spark's own on loopback: a master and two workers, which may have no folder in common."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tablerows import untimed

from kwire.tables.columns import JUDGEMENTS

HOSTS = ("127.0.0.1", "127.0.0.2")  # a second attempt goes to another host than the first
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
BUILDER = f"""SparkSession.builder.master(master)
    .config("spark.executor.memory", "512m").config("spark.executor.extraJavaOptions", "{QUICK}")
    .config("spark.driver.extraJavaOptions", "{QUICK}").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")"""  # of a driver's program, which knows the master
URL = re.compile(r"spark://\S+:\d+")
# a file system that can only be read, but for the folder $0, which is empty and one's own
APART = 'mount -t tmpfs none "$0" && mount -o remount,bind,ro / && cd "$0" && exec "$@"'


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
        "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1", "SPARK_LOCAL_IP": HOSTS[0],
        "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK,
    }  # fmt: skip


def apart(folder: Path, command: Sequence[str]) -> list[str]:
    """The command in a mount namespace, where it can write to nothing but the folder, which others do not see. Skips
    where that needs rights that there are not."""
    tried = ["unshare", "-m", "true"]
    if shutil.which("unshare") is None or subprocess.run(tried, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("mount namespaces need unshare, and to be root")
    folder.mkdir(exist_ok=True)
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", APART, str(folder), *command]


def own(folder: Path) -> dict[str, str]:
    """The environment's part that says where a process keeps what is its own."""
    names = ("SPARK_LOCAL_DIRS", "LOCAL_DIRS", "TMPDIR")  # Spark's, Hadoop's, Python's
    return dict.fromkeys(names, str(folder)) | {"JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={folder}"}


@contextmanager
def cluster(given: Mapping[str, str], folder: Path, alone: bool = False) -> Iterator[str]:
    """The master's address. The workers have a core each and keep what is theirs in folder/disk-1 and -2. alone: and no
    folder in common."""
    running: list[subprocess.Popen[str]] = []

    def start(role: str, host: str, disk: Path, *more: str) -> subprocess.Popen[str]:
        command = [f"{given['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{role}"]
        command += ["--host", host, "--port", "0", "--webui-port", "0", *more]
        disk.mkdir(exist_ok=True)
        found = subprocess.Popen(
            apart(disk, command) if alone else command, text=True, start_new_session=True,
            env={**given, **own(disk), "SPARK_LOCAL_IP": host}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        running.append(found)
        return found

    try:
        said = start("master.Master", HOSTS[0], folder / "disk-0").stdout
        assert said is not None
        url = next(found[0] for line in said if (found := URL.search(line)))
        for number, host in enumerate(HOSTS, 1):
            disk = folder / f"disk-{number}"
            start("worker.Worker", host, disk, "-c", "1", "-m", "512M", "-d", str(disk / "work"), url)
        for process in running:
            threading.Thread(target=process.communicate, daemon=True).start()
        yield url
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait(30)


def driver(command: Sequence[Any], given: Mapping[str, str], limit: float) -> str:
    """What a program said that had to end well."""
    ran = subprocess.run(
        list(map(str, command)), env=given, timeout=limit, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )  # fmt: skip
    told = [line for line in ran.stdout.splitlines() if not line.strip().startswith("at ")]
    assert ran.returncode == 0, "\n".join(told)[-3000:]
    return ran.stdout


def each_alone(
    expected: Callable[..., dict[str, list[str]]], captures: Sequence[Path], names: Sequence[str]
) -> dict[str, list[str]]:
    """The rows of the tables that judge, in which each capture stands for its own capture point and day."""
    judging = [name for name in names if name in JUDGEMENTS]
    made = [expected([path], judging) for path in captures]
    return {name: sorted(row for rows in made for row in rows[name]) for name in judging}


def rows_in(folder: Path | str, schema: pa.Schema, filesystem: Any = None) -> list[str]:
    """The rows of a table's Parquet files, sorted."""
    parts = ds.partitioning(pa.schema([("date", pa.string()), ("api", pa.string())]), flavor="hive")
    table = ds.dataset(
        str(folder), schema=schema, format="parquet", partitioning=parts, filesystem=filesystem
    ).to_table()  # fmt: skip
    return sorted(map(repr, untimed(table).to_pylist()))
