"""spark.read.format("kwire"): every table, columns of the user's choice, filters; and files that come one by one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.tables.build import tables_of
from kwire.tables.columns import DEFAULT

PLACE = "capture, connection, kind, `index`"


def rows_of(frame: Any) -> list[str]:
    return sorted(repr(row.asDict(True)) for row in frame.collect())


@pytest.mark.parametrize("table", DEFAULT)
def test_a_table_is_that_of_kwire_table(
    spark: Any, unpacked: Callable[[str], Path], expected: Callable, table: str
) -> None:
    path = unpacked("pyclients.pcap")
    frame = spark.read.format("kwire").option("table", table).option("splitSize", "9000").load(str(path))
    assert rows_of(frame) == expected([path], [table])[table]


def test_several_files_and_folders(spark: Any, tmp_path: Path, packets_of: Callable, save: Callable,
                                   unpacked: Callable[[str], Path], expected: Callable) -> None:  # fmt: skip
    packets = packets_of(unpacked("kafkajs.pcap"))
    paths = [save(tmp_path / "a.pcap", packets[:50]), save(tmp_path / "b.pcap", packets[50:])]
    want = expected(paths, ["messages"])["messages"]
    assert rows_of(spark.read.format("kwire").load(str(tmp_path))) == want
    assert rows_of(spark.read.format("kwire").load([str(path) for path in paths])) == want


def test_columns_are_the_users(spark: Any, unpacked: Callable[[str], Path]) -> None:
    frame = spark.read.format("kwire").schema("api string, size int").load(str(unpacked("kafkajs.pcap")))
    assert frame.columns == ["api", "size"]
    assert frame.count() == 70


def test_filters_that_are_handed_down_choose_the_same_rows(spark: Any, unpacked: Callable[[str], Path]) -> None:
    path = str(unpacked("classic.pcap.gz"))
    frame = spark.read.format("kwire").load(path)
    chosen = frame.filter(
        "api in ('Fetch', 'Heartbeat') and kind = 'response' and latency_ns > 1000000 and error is null "
        "and client_id like 'classic%' and quality <> 'gap'"
    )
    want = [
        row
        for row in tables_of([path], ["messages"])["messages"].to_pylist()
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
        ({"port": "kafka"}, "kafka is no port"),
    ],
)
def test_wrong_options_are_named(spark: Any, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        spark.read.format("kwire").options(**options).load("x.pcap").count()


def test_captures_in_a_binary_column(spark: Any, unpacked: Callable[[str], Path], expected: Callable) -> None:
    from kwire.pipeline.contents import from_column

    path = unpacked("kafkajs.pcap")
    frame = spark.createDataFrame(
        [("x/kafkajs.pcap", bytearray(path.read_bytes())), ("bad", bytearray(b"nonsense"))],
        "path string, content binary",
    )  # fmt: skip
    assert rows_of(from_column(frame)) == expected([path], ["messages"])["messages"]
    quality = from_column(frame, "quality").collect()
    assert [(row.capture, row.what) for row in quality] == [("bad", "damaged")]


def test_messages_of_packets_are_landed_as_files(
    spark: Any, tmp_path: Path, packets_of: Callable, save: Callable, unpacked: Callable, expected: Callable
) -> None:  # fmt: skip
    from kwire.pipeline.contents import land

    packets = packets_of(unpacked("kafkajs.pcap"))
    values = [save(tmp_path / f"{at}", packets[at : at + 30]).read_bytes() for at in range(0, len(packets), 30)]
    folder = tmp_path / "landed"
    folder.mkdir()
    messages = [(bytearray(b"rack/1"), bytearray(value), 0, at) for at, value in enumerate(values)]
    frame = spark.createDataFrame(messages, "key binary, value binary, partition int, offset long")
    assert (land(frame, str(folder)), land(frame, str(folder))) == (len(values), len(values))
    landed = sorted(folder.iterdir())
    assert landed[1].name == "rack_1-00000-0000000000000000001.pcap"
    assert rows_of(spark.read.format("kwire").load(str(folder))) == expected(landed, ["messages"])["messages"]


def test_a_stream_gives_what_a_batch_gives_but_for_what_is_open(
    spark: Any, tmp_path: Path, packets_of: Callable, save: Callable, unpacked: Callable, expected: Callable
) -> None:  # fmt: skip
    packets = packets_of(unpacked("old39.pcap.gz"))
    source, ends = tmp_path / "in", [0, 90, 300, 420, len(packets)]
    source.mkdir()
    paths = []
    for number in range(4):
        path = save(source / f"{number}.pcap", packets[ends[number] : ends[number + 1]])
        os.utime(path, (1e9 + number, 1e9 + number))
        paths.append(path)
    frame = (
        spark.readStream.format("kwire").option("splitSize", "6000").option("maxFilesPerTrigger", 1)
        .option("lateness", 0).option("stateLocation", str(tmp_path / "state")).load(str(source))
    )  # fmt: skip
    for _ in range(2):  # the second time there is nothing new
        query = (
            frame.writeStream.format("parquet").option("path", str(tmp_path / "out")).trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        )  # fmt: skip
        query.awaitTermination()
    found = rows_of(spark.read.parquet(str(tmp_path / "out")))
    want = expected(paths, ["messages"])["messages"]
    assert set(found) <= set(want)
    assert len(found) == len(set(found)) > len(want) - 12
