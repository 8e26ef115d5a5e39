"""Captures that come as Kafka messages: in batches, by a restart, sent twice; and by Spark's connector where it is."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from calls import Call

from kwire.errors import NoTopic
from kwire.pipeline.formats import table_of
from kwire.pipeline.job import Job
from kwire.pipeline.messages import arriving, land, point_of
from kwire.pipeline.stream import BatchStream
from kwire.tables.columns import COLUMNS
from kwire.testing import Broker

NAMES = ("messages", "exchanges", "partitions", "clients", "connections", "quality")
CAPTURES = ("kafkajs.pcap", "old39.pcap.gz")
SHAPE = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
START = datetime(2026, 11, 21, 10, tzinfo=UTC)
PARTS = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
CONNECTOR = [
    jar for part in PARTS for jar in glob.glob(os.path.join(os.environ.get("KWIRE_LAB", "?"), "spark", f"{part}*.jar"))
]

Message = tuple[bytes, bytes]  # key, value


@pytest.fixture
def messages(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> list[Message]:
    """Two captures cut into messages, by turns; each one's key is the capture's name."""
    cut = []
    for name in CAPTURES:
        path = unpacked(name)
        packets = packets_of(path)
        files = [save(tmp_path / "piece", packets[at : at + 45]).read_bytes() for at in range(0, len(packets), 45)]
        cut.append([(path.name.encode(), value) for value in files])
    turns = max(map(len, cut))
    return [some[turn] for turn in range(turns) for some in cut if turn < len(some)]


def rows_of(spark: Any, folder: Path) -> dict[str, list[str]]:
    out = {}
    for name in NAMES:
        columns = [f"`{column}`" for column, kind, _ in COLUMNS[name] if kind != "timestamp"]
        found = table_of(spark, str(folder), name).select(*columns).collect()
        out[name] = sorted(repr(row.asDict(True)) for row in found)
    return out


@pytest.fixture
def frames(spark: Any) -> Call:
    """Messages as the connector gives them; apart: hours between one and the next."""

    def frame(messages: Sequence[Message], first: int = 0, apart: float = 0) -> Any:
        rows = [
            (bytearray(key), bytearray(value), 0, at, START + timedelta(hours=apart * at))
            for at, (key, value) in enumerate(messages, first)
        ]
        return spark.createDataFrame(rows, SHAPE)

    return frame


def unnumbered(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without the packets' numbers, which count from the beginning of each message."""
    return {table: sorted(re.sub(r"packet': \d+", "", row) for row in found) for table, found in rows.items()}


def test_batches_of_messages_give_the_tables_of_the_captures(
    spark: Any,
    tmp_path: Path,
    messages: list[Message],
    frames: Call,
    unpacked: Call,
    expected: Call,
) -> None:
    out, half = tmp_path / "out", len(messages) // 2

    def stream() -> BatchStream:
        return BatchStream(spark, str(out), Job(NAMES), 9000, in_order=True)

    stream().messages(0, frames(messages[:half]))
    again = [*messages[half:], messages[half - 1], messages[2]]  # with two that are sent a second time
    stream().messages(1, frames(again, half))
    stream().messages(1, frames(again, half))  # after a restart, which does not know that it was done
    stream().messages(2, frames(messages[:1], len(messages) + 2))  # nothing new
    stream().finish()
    want = expected([unpacked(name) for name in CAPTURES], NAMES)
    assert unnumbered(rows_of(spark, out)) == unnumbered(want)
    assert list((out / ".kwire-stream" / "landed").iterdir()) == []


def test_a_point_that_falls_silent_is_given_up_by_the_times_of_messages(
    spark: Any, tmp_path: Path, messages: list[Message], frames: Call
) -> None:
    stream = BatchStream(spark, str(tmp_path), Job(("messages", "quality")), lateness=0, in_order=True)
    stream.messages(0, frames([messages[0], messages[1], messages[3]], apart=1))
    given_up = {row.capture for row in table_of(spark, str(tmp_path), "quality").collect() if row.what == "given up"}
    assert given_up == {"kafkajs.pcap"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (b"rack-1", "rack-1"), (None, "partition 3"), (b"", "partition 3"), (b"rack/1", "rack_1-828279ee"),
        (b"rack_1", "rack_1"), (b"..", "-e6fc5bb9"), (b"\xff", "_-708935f9"), (b"a" * 81, "a" * 80 + "-50b06609"),
        (("é" * 99).encode(), "é" * 40 + "-3747ce31"),
    ],
)  # fmt: skip
def test_a_point_has_the_name_of_its_key(key: bytes | None, name: str) -> None:
    assert point_of(key, 3) == name


def test_empty_messages_are_nothing(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(bytearray(b"k"), None, 1, 0, START), (None, bytearray(b"v"), 1, 1, START)], SHAPE)
    (found,) = land(frame, str(tmp_path))
    assert (found.point, found.sent, Path(found.path).read_bytes()) == ("partition 1", 1795255200000000000, b"v")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("kafka://127.0.0.1/topic", "no topic: write kafka://HOST:PORT/TOPIC"),
        ("kafka://127.0.0.1:9092", "no topic: write kafka://HOST:PORT/TOPIC"),
        ("kafka://127.0.0.1:9092/topic", "spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:"),
    ],
)
def test_what_is_missing_is_said(spark: Any, source: str, said: str) -> None:
    with pytest.raises(NoTopic, match=said):
        arriving(spark, source)


@pytest.mark.skipif(len(CONNECTOR) < len(PARTS), reason="needs the jars of spark_jars.xml in KWIRE_LAB/spark")
def test_a_topic_read_by_the_connector_in_two_runs(
    spark: Any, tmp_path: Path, messages: list[Message], unpacked: Call, expected: Call
) -> None:
    from kafka import KafkaProducer

    half = len(messages) // 2
    with Broker(topics={"captures": 2}) as broker:
        for some in (messages[:half], [messages[half - 1], *messages[half:]]):
            producer = KafkaProducer(bootstrap_servers=broker.address)
            for key, value in some:
                producer.send("captures", key=key, value=value)
            producer.close()
            ran = subprocess.run(
                [
                    sys.executable, "-c", "from kwire.cli.main import main; main()", "pipeline", "run",
                    f"kafka://{broker.address}/captures", "--out", tmp_path / "out", "--stream", "--available-now",
                    "--max-files", "5", "--tables", ",".join(NAMES), "--no-rollups", "--master", "local[2]",
                    "--conf", f"spark.jars={','.join(CONNECTOR)}", "--conf", "spark.kwire.kafka.client.id=kwire",
                ],
                timeout=200, stderr=subprocess.PIPE,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr.decode()[-3000:]
        assert any(seen.client_id == "kwire" for seen in broker.requests("Fetch"))
    want = expected([unpacked(name) for name in CAPTURES], NAMES)
    assert unnumbered(rows_of(spark, tmp_path / "out")) == unnumbered(want)
