"""spark.readStream.format("kwire"): files of buckets, the state in one, what Spark counts by event time."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from calls import Call

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyarrow import fs  # noqa: E402
from pyspark.sql.pandas.types import from_arrow_schema  # noqa: E402

from kwire.errors import OptionError  # noqa: E402
from kwire.pipeline.source import KwireSource  # noqa: E402
from kwire.pipeline.stores import Stores  # noqa: E402
from kwire.pipeline.stream_source import KwireStream  # noqa: E402

LATER = 2000 * 1_000_000_000  # ns


@pytest.fixture
def arriving(tmp_path: Path, packets_of: Call, save: Call, unpacked: Call) -> Path:
    """A folder with a capture in two files, and a third that comes long after."""
    packets = packets_of(unpacked("kafkajs.pcap"))
    late = [(time + LATER, *rest) for time, *rest in packets[:9]]
    folder = tmp_path / "far" / "in"
    folder.mkdir(parents=True)
    for number, found in enumerate((packets[:50], packets[50:], late)):
        os.utime(save(folder / f"{2 - number}.pcap", found), (1e9 + number, 1e9 + number))
    return folder


def stream_of(**options: str) -> KwireStream:
    source = KwireSource({"lateness": "0", **{name.lower(): value for name, value in options.items()}})
    return source.streamReader(from_arrow_schema(pa.schema({"capture": pa.string(), "api": pa.string()})))


def rows_of(stream: KwireStream, start: dict[str, int], end: dict[str, int]) -> list[dict[str, Any]]:
    parts = pickle.loads(pickle.dumps(stream.partitions(start, end)))
    return [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]


def test_captures_and_state_in_a_bucket(arriving: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come by their times, each once; a batch that is planned again gives the same rows."""
    made = fs.SubTreeFileSystem(str(arriving.parent), fs.LocalFileSystem())
    monkeypatch.setattr(Stores, "_opened", lambda *given: made if given[-1] == "s3a://far" else None)
    far, near = (
        stream_of(path=f"{place}/in", stateLocation=f"{place}/state-of-{name}", splitSize="3000")
        for name, place in (("far", "s3a://far"), ("near", str(arriving.parent)))
    )
    limit, start, seen = far.getDefaultReadLimit(), far.initialOffset(), []
    for stream in (far, near):
        end = stream.latestOffset(start, limit)
        assert end == {"files": 3}
        middle = {"files": 2}
        first = rows_of(stream, start, middle)
        assert rows_of(stream, start, middle) == first != []
        seen.append(first + rows_of(stream, middle, end))
        stream.commit(end)
    assert seen[0] == seen[1]
    assert {row["capture"] for row in seen[0]} == {"2.pcap", "1.pcap", "0.pcap"}
    assert sorted(path.name for path in arriving.parent.glob("state-of-far/messages/*")) == [
        "files.json",
        "state-0000000003",
    ]
    (arriving.parent / "state-of-far/messages/state-0000000003").unlink()
    with pytest.raises(OptionError, match="state-0000000003 is not there, at which the checkpoint goes on"):
        far.partitions(end, end)


def test_counts_by_event_time(spark: Any, arriving: Path, tmp_path: Path) -> None:
    """Those whose time is over are final, as every source's."""
    from pyspark.sql import functions as F

    frame = (
        spark.readStream.format("kwire").option("maxFilesPerTrigger", 2).option("lateness", 0)
        .option("stateLocation", str(tmp_path / "state")).schema("time timestamp, api string").load(str(arriving))
    )  # fmt: skip
    counted = frame.withWatermark("time", "1 second").groupBy(F.window("time", "1 second"), "api").count()
    writer = counted.writeStream.format("memory").queryName("kwire_counted").outputMode("append")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    batch = spark.read.format("kwire").load([str(arriving / "1.pcap"), str(arriving / "2.pcap")])
    want = Counter((row.time.replace(microsecond=0), row.api) for row in batch.select("time", "api").collect())
    rows = spark.table("kwire_counted").collect()
    last = max(time for time, _ in want)
    assert {(row.window.start, row.api): row["count"] for row in rows if row.window.start <= last} == want != {}
