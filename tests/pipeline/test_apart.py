"""A cluster whose workers and driver can write to no folder but their own: captures and tables lie in an S3 bucket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from calls import Call
from pyarrow import fs
from s3server import s3_server
from sparkcluster import QUICK, apart, cluster, driver, each_alone, environment, own, rows_in

from kwire.tables.columns import DEFAULT, JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

LIMIT = 600  # s
RUN = "from kwire.cli.main import main; main()"
DIES = (
    """
import os, signal
from kwire.pipeline import hive
place = hive.place

def dying(folder, staged, written, *more):
    if any(found.file.startswith("batch-00000001") for found in written):
        place(folder, staged, written[: len(written) // 2 + 1], *more)
        os.kill(os.getpid(), signal.SIGKILL)
    place(folder, staged, written, *more)

hive.place = dying
"""
    + RUN
)
NAMES = (*DEFAULT, *JUDGEMENTS)


def jars() -> str:
    """Those of s3a, for spark.jars. Skips where spark_jars.xml was not fetched."""
    found = sorted(Path(os.environ.get("KWIRE_LAB", "none"), "spark").glob("*.jar"))
    if not found:
        pytest.skip("s3a needs KWIRE_LAB with the jars of tests/pipeline/spark_jars.xml")
    return ",".join(str(jar) for jar in found if "minicluster" not in jar.name)


def test_workers_and_driver_that_share_no_folder(tmp_path: Path, unpacked: Call, expected: Call) -> None:
    """Nobody but the store holds anything that another one reads."""
    given, needed = environment(), jars()
    captures = [unpacked(name) for name in ("kafkajs.pcap", "consumer848.pcap")]
    want = expected(captures, NAMES) | each_alone(expected, captures, NAMES)
    with s3_server() as s3, cluster(given, tmp_path, alone=True) as master:
        s3.put("lake", *captures)
        settings = {f"spark.hadoop.{name}": value for name, value in s3.settings.items()} | {
            "spark.jars": needed, "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": QUICK,
            "spark.driver.extraJavaOptions": QUICK,
        }  # fmt: skip

        def command(out: str, names: Sequence[str], *more: str, code: str = RUN) -> list[str]:
            return [
                sys.executable, "-c", code, "pipeline", "run", "s3a://lake/in/", "-o", out, "--master", master,
                "--json", "--split-size", "20k", "--tables", ",".join(names), *more,
                *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            ]  # fmt: skip

        disk = tmp_path / "driver"
        said = driver(apart(disk, command("s3a://lake/out", NAMES, "--no-rollups")), {**given, **own(disk)}, LIMIT)
        done = json.loads(next(line for line in said.splitlines() if line.startswith('{"out"')))
        assert done["rows"] == {name: len(rows) for name, rows in want.items()}
        assert s3.asked["PUT upload"]
        assert not s3.asked["PUT copy"]  # as renamed files would be
        lake = s3.filesystem("lake")
        assert {name: rows_in(f"out/{name}", SCHEMAS[name], lake) for name in NAMES} == want
        streamed = "--stream", "--available-now", "--max-files", "1", "--lateness", "1ms"
        first = apart(disk, command("s3a://lake/stream", DEFAULT, *streamed, code=DIES))
        killed = subprocess.run(
            first, env={**given, **own(disk)}, timeout=LIMIT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert killed.returncode == -signal.SIGKILL, killed.stdout[-3000:]
        driver(apart(disk, command("s3a://lake/stream", DEFAULT, *streamed)), {**given, **own(disk)}, LIMIT)
        assert {name: rows_in(f"stream/{name}", SCHEMAS[name], lake) for name in DEFAULT} == {
            name: want[name] for name in DEFAULT
        }
        folders = lake.get_file_info(fs.FileSelector("stream/rollups"))
        assert {"latency", "errors", "clients"} <= {info.base_name for info in folders}
        assert not [path for disk in tmp_path.iterdir() for path in disk.iterdir()]  # of what they wrote, all is gone
