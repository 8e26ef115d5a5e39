"""A cluster whose workers and driver can write to no folder but their own: captures and tables lie in an S3 bucket."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from calls import Call
from s3server import s3_server
from sparkcluster import QUICK, apart, cluster, driver, each_alone, environment, own, rows_in

from kwire.tables.columns import DEFAULT, JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

LIMIT = 600  # s
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
        command = [
            sys.executable, "-m", "kwire", "pipeline", "run", "s3a://lake/in/", "-o", "s3a://lake/out",
            "--master", master, "--json", "--split-size", "20k", "--tables", ",".join(NAMES), "--no-rollups",
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        ]  # fmt: skip
        disk = tmp_path / "driver"
        said = driver(apart(disk, command), {**given, **own(disk)}, LIMIT)
        done = json.loads(next(line for line in said.splitlines() if line.startswith('{"out"')))
        assert done["rows"] == {name: len(rows) for name, rows in want.items()}
        assert s3.asked["PUT upload"]
        assert not s3.asked["PUT copy"]  # as renamed files would be
        lake = s3.filesystem("lake")
        assert {name: rows_in(f"out/{name}", SCHEMAS[name], lake) for name in NAMES} == want
        assert not [path for disk in tmp_path.iterdir() for path in disk.iterdir()]  # of what they wrote, all is gone
