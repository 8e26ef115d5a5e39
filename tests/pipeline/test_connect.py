"""A server of Spark Connect on loopback: what runs without a JVM of one's own gives the same tables."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from calls import Call
from sparkcluster import QUICK, driver, each_alone, environment, rows_in

from kwire.tables.columns import DEFAULT, JUDGEMENTS
from kwire.tables.schemas import SCHEMAS

LIMIT = 200  # s
NAMES = (*DEFAULT, *JUDGEMENTS)

SOURCE = """
import sys
from kwire.pipeline import register
from kwire.pipeline.run import session
captures, out, remote = sys.argv[1:]
spark = session(remote=remote)
register(spark)
options = {"table": "exchanges", "splitSize": "8000", "lateness": "0", "stateLocation": f"{out}/state"}
spark.read.format("kwire").options(**options).load(captures).write.parquet(f"{out}/read")
arriving = spark.readStream.format("kwire").options(**options).load(captures)
writer = arriving.writeStream.format("parquet").option("checkpointLocation", f"{out}/checkpoint")
query = writer.trigger(availableNow=True).start(f"{out}/stream")
query.awaitTermination()
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with two cores."""
    pytest.importorskip("grpc_status", reason="Spark Connect needs pyspark[connect]")
    given = environment()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": 2,
        "spark.driver.extraJavaOptions": QUICK,
    }  # fmt: skip
    command = [
        f"{given['SPARK_HOME']}/bin/spark-submit", "--master", "local[2]",
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
    ]  # fmt: skip
    place = tmp_path_factory.mktemp("server")
    with open(place / "log", "wb") as log:
        process = subprocess.Popen(
            command, env=given | {"SPARK_DAEMON_MEMORY": "1g"}, cwd=place, start_new_session=True, stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            assert process.poll() is None, (place / "log").read_text()[-3000:]
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def test_a_run_on_a_server(remote: str, tmp_path: Path, unpacked: Call, expected: Call) -> None:
    captures, out = [unpacked("kafkajs.pcap"), unpacked("classic.pcap.gz")], tmp_path / "out"
    want = expected(captures, NAMES) | each_alone(expected, captures, NAMES)
    run = [sys.executable, "-m", "kwire", "pipeline", "run", *captures, "-o", out, "--findings", "--split-size", "20k"]
    driver([*run, "--remote", remote], environment(), LIMIT)
    assert {name: rows_in(out / name, SCHEMAS[name]) for name in NAMES} == want
    assert {path.name for path in (out / "rollups").iterdir()} > {"latency", "errors", "topics"}


def test_the_source_on_a_server(remote: str, tmp_path: Path, unpacked: Call, expected: Call) -> None:
    """As a batch and as a stream."""
    source = tmp_path / "in"
    source.mkdir()
    path = source / "kafkajs.pcap"
    path.write_bytes(unpacked("kafkajs.pcap").read_bytes())
    driver([sys.executable, "-c", SOURCE, source, tmp_path, remote], environment(), LIMIT)
    want = expected([path], ["exchanges"])["exchanges"]
    assert rows_in(tmp_path / "read", SCHEMAS["exchanges"]) == want
    assert rows_in(tmp_path / "stream", SCHEMAS["exchanges"]) == want
