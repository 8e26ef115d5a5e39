"""spark.read.format("kwire"): every table, columns of the user's choice, filters; and files that come one by one."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from calls import Call
from tablerows import untimed

from kwire.render.bodies import BodyRenderer
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS

SECOND = 1_000_000_000  # ns


def rows_of(frame: Any) -> list[str]:
    times = [name for name, kind in frame.dtypes if kind == "timestamp"]
    return sorted(repr(row.asDict(True)) for row in frame.drop(*times).collect())


def rows_in(table: pa.Table) -> list[str]:
    return sorted(map(repr, untimed(table).to_pylist()))


@pytest.mark.parametrize("table", COLUMNS)
def test_a_table_is_that_of_kwire_table(spark: Any, unpacked: Callable[[str], Path], table: str) -> None:
    """Read as a whole, and by splits. The table bodies holds bodies."""
    path = unpacked("pyclients.pcap")
    reader = spark.read.format("kwire").option("table", table)
    want = rows_in(tables_of([path], [table], bodies=BodyRenderer())[table])
    assert rows_of(reader.load(str(path))) == want
    assert rows_of(reader.option("splitSize", "9000").load(str(path))) == want
    assert want or table == "quality"


@pytest.mark.parametrize("size", ["128m", "3000"])
def test_secrets_stay_withheld(spark: Any, unpacked: Callable[[str], Path], size: str) -> None:
    path = str(unpacked("sasl.pcap.gz"))
    frame = spark.read.format("kwire").option("table", "bodies").option("splitSize", size).load(path)
    logins = frame.filter("api = 'SaslAuthenticate' and kind = 'request'").select("body").collect()
    assert logins
    assert all('"AuthBytes": "withheld' in row.body for row in logins)


@pytest.mark.parametrize("size", ["128m", "3000"])
def test_a_file_that_is_no_capture_fails_alone(
    spark: Any, tmp_path: Path, unpacked: Callable[[str], Path], expected: Call, size: str
) -> None:
    good = tmp_path / "good.pcap"
    good.write_bytes(unpacked("kafkajs.pcap").read_bytes())
    Path(tmp_path, "bad.pcap").write_bytes(b"nonsense" * 10)
    reader = spark.read.format("kwire").option("splitSize", size)
    assert rows_of(reader.load(f"file:{tmp_path}/*.pcap")) == expected([good], ["messages"])["messages"]
    quality = reader.option("table", "quality").load(str(tmp_path)).collect()
    assert [(row.capture, row.what) for row in quality] == [("bad.pcap", "damaged")]


def test_several_files_and_folders(spark: Any, tmp_path: Path, packets_of: Call, save: Call,
                                   unpacked: Callable[[str], Path], expected: Call) -> None:  # fmt: skip
    packets = packets_of(unpacked("kafkajs.pcap"))
    paths = [save(tmp_path / "a.pcap", packets[:50]), save(tmp_path / "b.pcap", packets[50:])]
    want = expected(paths, ["messages"])["messages"]
    assert rows_of(spark.read.format("kwire").load(str(tmp_path))) == want
    assert rows_of(spark.read.format("kwire").load([str(path) for path in paths])) == want


@pytest.mark.parametrize("size", ["128m", "3000"])
def test_columns_are_the_users(spark: Any, unpacked: Callable[[str], Path], size: str) -> None:
    """In their order and case, integers as wide as they say; and filters rest on them alone."""
    path = unpacked("kafkajs.pcap")
    reader = spark.read.format("kwire").option("splitSize", size)
    frame = reader.schema("API string, size bigint").load(str(path))
    assert frame.columns == ["API", "size"]
    want = tables_of([path], ["messages"])["messages"].select(["api", "size"]).to_pylist()
    assert sorted(map(tuple, frame.collect())) == sorted(tuple(row.values()) for row in want)
    big = frame.filter("size > 100 and api <> 'Fetch' and size < 5000000000")
    assert big.count() == sum(row["size"] > 100 and row["api"] != "Fetch" for row in want) > 5


def test_filters_that_are_handed_down_choose_the_same_rows(spark: Any, unpacked: Callable[[str], Path]) -> None:
    path = str(unpacked("classic.pcap.gz"))
    frame = spark.read.format("kwire").load(path)
    chosen = frame.filter(
        "api in ('Fetch', 'Heartbeat') and kind = 'response' and latency_ns > 1000000 and error is null "
        "and client_id like 'classic%' and quality <> 'gap'"
    )
    want = [
        row
        for row in untimed(tables_of([path], ["messages"])["messages"]).to_pylist()
        if row["api"] in ("Fetch", "Heartbeat") and row["kind"] == "response" and (row["latency_ns"] or 0) > 1000000
        and row["error"] is None and (row["client_id"] or "").startswith("classic")
    ]  # fmt: skip
    assert rows_of(chosen) == sorted(map(repr, want))
    assert len(want) > 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "mesages"}, "no table mesages"),
        ({"splitSize": "big"}, "big is no size"),
        ({"path": "viewfs://far/x.pcap"}, "viewfs://far/x.pcap is not on this machine"),
        ({"path": "nothing.pcap"}, "nothing.pcap: no such file or folder"),
    ],
)
def test_what_is_wrong_is_one_line_at_the_end(spark: Any, options: dict[str, str], said: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=said) as caught:
        spark.read.format("kwire").options(**{"path": "x.pcap"} | options).load().count()
    lines = str(caught.value).strip().splitlines()
    assert len(lines) == 5
    assert said in lines[3]


def test_captures_in_a_binary_column(spark: Any, unpacked: Callable[[str], Path], expected: Call) -> None:
    from kwire.pipeline.binary_files import from_column

    path = unpacked("kafkajs.pcap")
    frame = spark.createDataFrame(
        [("x/kafkajs.pcap", bytearray(path.read_bytes())), ("bad", bytearray(b"nonsense"))],
        "path string, content binary",
    )  # fmt: skip
    assert rows_of(from_column(frame)) == expected([path], ["messages"])["messages"]
    quality = from_column(frame, "quality").collect()
    assert [(row.capture, row.what) for row in quality] == [("bad", "damaged")]


def test_a_stream_that_failed_goes_on_without_losing_or_doubling_rows(
    spark: Any, tmp_path: Path, packets_of: Call, save: Call, unpacked: Call, expected: Call
) -> None:  # fmt: skip
    """One file a batch; the third batch dies when it is written. The last file says that the others' time is over."""
    from pyspark.errors import StreamingQueryException

    packets = packets_of(unpacked("old39.pcap.gz"))
    source, ends = tmp_path / "in", [0, 90, 300, 420, len(packets)]
    source.mkdir()

    def arrive(number: int, found: list[Any]) -> Path:
        path = save(source / f"{number}.pcap", found)
        os.utime(path, (1e9 + number, 1e9 + number))
        return path

    paths = [arrive(number, packets[ends[number] : ends[number + 1]]) for number in range(4)]
    began: list[int] = []

    def take(frame: Any, number: int) -> None:
        began.append(number)
        frame.write.mode("overwrite").parquet(str(tmp_path / f"out/batch={number}"))
        assert began != [0, 1, 2]

    def run() -> None:
        frame = (
            spark.readStream.format("kwire").option("splitSize", "6000").option("maxFilesPerTrigger", 1)
            .option("lateness", 0).option("stateLocation", str(tmp_path / "state")).load(str(source))
        )  # fmt: skip
        writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException):
        run()
    run()
    arrive(4, [(time + 2000 * SECOND, *rest) for time, *rest in packets[:9]])
    run()
    run()  # there is nothing new
    assert began == [0, 1, 2, 2, 3, 4]
    found = spark.read.parquet(str(tmp_path / "out")).filter("capture <> '4.pcap'").drop("batch")
    assert rows_of(found) == expected(paths, ["messages"])["messages"]
