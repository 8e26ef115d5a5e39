"""HDFS, in one process on loopback: captures are read from it and tables written to it."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import Call

from kwire.pipeline.job import Job
from kwire.pipeline.run import run
from kwire.pipeline.stores import of_session
from kwire.pipeline.stream import BatchStream, run_stream
from kwire.tables.columns import DEFAULT

HERE = Path(__file__).parent
ADDRESSES = re.compile(r"(hdfs://\S+) (webhdfs://\S+)")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, and its web address."""
    jars = Path(os.environ.get("KWIRE_LAB", "none"), "spark")
    jar = next(jars.glob("hadoop-client-minicluster-*.jar"), None)
    if jar is None:
        pytest.skip("HDFS needs KWIRE_LAB with the jars of tests/pipeline/spark_jars.xml")
    import pyspark

    place = f"{jar}:{Path(pyspark.__file__).parent}/jars/*"
    process = subprocess.Popen(
        ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", place, HERE / "MiniDfs.java",
         tmp_path_factory.mktemp("hdfs")],
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    found = next((found for line in process.stdout if (found := ADDRESSES.search(line))), None)
    threading.Thread(target=process.stdout.read, daemon=True).start()
    assert found is not None
    try:
        yield found[1], found[2]
    finally:
        process.communicate(timeout=60)


def put(web: str, path: Path, folder: str) -> None:
    place = f"{web.replace('webhdfs', 'http')}/webhdfs/v1{folder}/{path.name}"
    asked = urllib.request.Request(f"{place}?op=CREATE&noredirect=true", method="PUT")
    with urllib.request.urlopen(asked) as answer:
        there = re.search(r'"Location":"([^"]+)"', answer.read().decode())
    assert there is not None
    urllib.request.urlopen(urllib.request.Request(there[1], path.read_bytes(), method="PUT")).close()


def test_batch_and_stream(
    spark: Any, hdfs: tuple[str, str], tmp_path: Path, unpacked: Call, expected: Call, written: Call
) -> None:
    address, web = hdfs
    captures = [unpacked(name) for name in ("kafkajs.pcap", "consumer848.pcap")]
    for path in captures:
        put(web, path, "/captures")
    want = expected(captures, DEFAULT)
    for root in (address, web):  # Spark brings them, or they are read in place; the second run replaces the first
        if root == web:
            pytest.importorskip("fsspec", reason="HDFS in place, without libhdfs, is read by fsspec")
        done = run(spark, [f"{root}/captures"], f"{address}/lake", Job(DEFAULT), split_size=30_000, rollups=root == web)
        assert done.rows == {name: len(rows) for name, rows in want.items()}
        assert written(f"{address}/lake", DEFAULT) == want
    assert spark.read.parquet(f"{address}/lake/rollups/latency").count() > 0
    run_stream(spark, f"{address}/captures", str(tmp_path / "out"), Job(DEFAULT), lateness=0, rollups=False)
    assert written(tmp_path / "out", DEFAULT) == want


def test_a_stream_to_it(spark: Any, hdfs: tuple[str, str], unpacked: Call, expected: Call, written: Call) -> None:
    pytest.importorskip("fsspec", reason="without libhdfs, fsspec writes to HDFS")
    address, web = hdfs
    captures = [unpacked(name) for name in ("kafkajs.pcap", "consumer848.pcap")]
    for path in captures:
        put(web, path, "/streamed")
    for number, path in ((0, captures[0]), (1, captures[1]), (1, captures[1])):  # the last is asked for twice
        stream = BatchStream(spark, f"{web}/tables", Job(DEFAULT), lateness=1, stores=of_session(spark))
        stream.batch(number, [f"{web}/streamed/{path.name}"])
    stream.finish()
    assert written(f"{address}/tables", DEFAULT) == expected(captures, DEFAULT)
