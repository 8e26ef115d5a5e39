"""A cluster whose workers and driver can write to no folder but their own: captures and tables lie in an S3 bucket."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from calls import Call
from s3server import s3_server
from sparkcluster import QUICK, alone, apart, cluster, driver, environment, own, rows_in

from kwire.tables.columns import DEFAULT, JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

LIMIT = 600  # s


def jars(committers: bool) -> str:
    """Those of s3a, for spark.jars; committers: with s3a's own, which Spark takes where they are. Skips where
    spark_jars.xml was not fetched."""
    found = sorted(Path(os.environ.get("KWIRE_LAB", "none"), "spark").glob("*.jar"))
    if not found:
        pytest.skip("s3a needs KWIRE_LAB with the jars of tests/pipeline/spark_jars.xml")
    rest = ("minicluster",) if committers else ("minicluster", "hadoop-cloud")
    return ",".join(str(jar) for jar in found if not any(name in jar.name for name in rest))


@pytest.mark.parametrize(
    ("committers", "names"), [(True, (*DEFAULT, *JUDGEMENTS)), (False, ("messages",))], ids=["magic", "renaming"]
)
def test_workers_and_driver_that_share_no_folder(
    tmp_path: Path, unpacked: Call, expected: Call, committers: bool, names: tuple[str, ...]
) -> None:
    """Nobody but the store holds anything that another one reads."""
    given, needed = environment(), jars(committers)
    captures = [unpacked(name) for name in ("kafkajs.pcap", "consumer848.pcap")]
    want = expected(captures, names) | alone(expected, captures, names)
    with s3_server() as s3, cluster(given, tmp_path, alone=True) as made:
        s3.put("lake", *captures)
        settings = {f"spark.hadoop.{name}": value for name, value in s3.settings.items()} | {
            "spark.jars": needed, "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": QUICK,
            "spark.driver.extraJavaOptions": QUICK,
        }  # fmt: skip
        command = [
            sys.executable, "-m", "kwire", "pipeline", "run", "s3a://lake/in/", "-o", "s3a://lake/out",
            "--master", made.url, "--json", "--split-size", "20k", "--tables", ",".join(names), "--no-rollups",
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        ]  # fmt: skip
        disk = tmp_path / "driver"
        said = driver(apart(disk, command), {**given, **own(disk)}, LIMIT)
        done = json.loads(next(line for line in said.splitlines() if line.startswith('{"out"')))
        assert done["rows"] == {name: len(rows) for name, rows in want.items()}
        print(done["splits"], "splits:", dict(s3.asked))
        assert ("PUT copy" in s3.asked) != committers  # s3 renames by copying; else uploads are completed at the end
        lake = s3.filesystem("lake")
        assert {name: rows_in(f"out/{name}", SCHEMAS[name], lake) for name in names} == want
        assert not [path for disk in tmp_path.iterdir() for path in disk.iterdir()]  # of what they wrote, all is gone
