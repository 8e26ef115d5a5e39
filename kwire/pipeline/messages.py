"""Captures that arrive as Kafka messages, through Spark's connector: a source kafka://HOST:PORT/TOPIC.

A message's key names the capture point, which the tables show as the capture; its value is a pcap or pcapng file of the
point's next packets, compressed or not. A point's messages are ordered by offset in their partition. They are stored as
files as long as a batch needs them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import pyarrow as pa

from kwire.errors import NoTopic
from kwire.pipeline.binary_files import UNFIT, small_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ADDRESS = re.compile(r"kafka://(?P<servers>[^/\s]+:\d+)/(?P<topic>[\w.-]+)/?", re.IGNORECASE)
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
SHAPE = pa.schema([("path", pa.string()), ("point", pa.string()), ("digest", pa.binary()), ("sent", pa.int64())])
LONGEST = 80  # most bytes of a key in a file name
SETTINGS = "spark.kwire.kafka."  # prefix of session settings for Kafka's client


class Landed(NamedTuple):
    """A message stored as a file. digest: of its value; sent: timestamp, ns."""

    path: str
    point: str
    digest: bytes
    sent: int


def is_topic(source: str) -> bool:
    """Whether a source is a Kafka topic."""
    return source.lower().startswith("kafka:")


def arriving(spark: SparkSession, source: str, most: int | None = None) -> DataFrame:
    """The messages of a topic as a stream, from the earliest. most: messages per batch. Raises NoTopic."""
    from pyspark.errors import AnalysisException

    found = ADDRESS.fullmatch(source)
    if found is None:
        raise NoTopic(f"{source} is no topic: write kafka://HOST:PORT/TOPIC")
    options = {"kafka.bootstrap.servers": found["servers"], "subscribe": found["topic"], "startingOffsets": "earliest"}
    if most:
        options["maxOffsetsPerTrigger"] = str(most)
    for name, value in spark.sparkContext.getConf().getAll():
        if name.startswith(SETTINGS):
            options["kafka." + name.removeprefix(SETTINGS)] = value
    try:
        return spark.readStream.format("kafka").options(**options).load()
    except AnalysisException as error:
        if "data source" not in str(error):
            raise
        raise NoTopic(
            f"{source}: Spark needs its connector: --conf spark.jars.packages={CONNECTOR}:VERSION, the newest that is "
            f"not above {spark.version}"
        ) from error


def land(frame: DataFrame, folder: str) -> list[Landed]:
    """Writes messages as files FOLDER/PARTITION-OFFSET/POINT, in a folder that all workers see; sorted by path."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = zip(*(column.to_pylist() if at else column for at, column in enumerate(batch.columns)), strict=True)
            landed = [_land(folder, value.as_buffer(), *rest)._asdict() for value, *rest in rows if value.is_valid]
            yield pa.RecordBatch.from_pylist(landed, SHAPE)

    chosen = frame.selectExpr("value", "key", "partition", "offset", "unix_millis(timestamp) as sent")
    with small_batches(frame.sparkSession):
        found = chosen.mapInArrow(run, "path string, point string, digest binary, sent bigint").collect()
    return sorted(Landed(row.path, row.point, bytes(row.digest), row.sent) for row in found)


def point_of(key: bytes | None, partition: int) -> str:
    """A file name for a key, unique to it."""
    if not key:
        return f"partition {partition}"
    said = key.decode("utf-8", "replace")
    name = UNFIT.sub("_", said).lstrip(".").encode()[:LONGEST].decode(errors="ignore")
    return name if name == said else f"{name}-{blake2b(key, digest_size=4).hexdigest()}"


def _land(folder: str, value: pa.Buffer, key: bytes | None, partition: int, offset: int, sent: int) -> Landed:
    point = point_of(key, partition)
    place = Path(folder, f"{partition:05}-{offset:019}")
    place.mkdir(parents=True, exist_ok=True)
    part = place / f".{uuid4().hex}"  # an attempt's own
    part.write_bytes(value)
    os.replace(part, place / point)
    return Landed(str(place / point), point, blake2b(value, digest_size=16).digest(), sent * 1_000_000)
