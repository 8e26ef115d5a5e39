"""Tables of a catalog: modes, what is refused before captures are read, and which captures are in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import Call

from kwire.errors import OutputError, SparkFailed
from kwire.pipeline.catalog_tables import CatalogRun
from kwire.pipeline.job import Job
from kwire.pipeline.run import run

FEW = ("messages", "exchanges", "connections", "quality")
TWO = ("exchanges", "clients")
PLACE = "catalog:/spark_catalog.kwire_lake.raw_"


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A schema of the catalog."""
    spark.sql(f"create database kwire_lake location '{tmp_path}/lake'")
    yield PLACE
    spark.sql("drop database kwire_lake cascade")


def test_a_schema_that_is_not_there(spark: Any) -> None:
    with pytest.raises(SparkFailed, match="kwire_lake"):
        run(spark, ["never read"], PLACE, Job(TWO))


def test_tables_of_a_catalog(
    spark: Any, lake: str, unpacked: Callable[[str], Path], expected: Call, written: Call
) -> None:
    """What cannot be is said before the captures are read; somebody else's tables stay."""
    paths = [str(unpacked("kafkajs.pcap"))]
    want = expected(paths, TWO)
    done = run(spark, paths, lake, Job(TWO), mode="error")
    assert done.rows == {name: len(rows) for name, rows in want.items()}
    assert written(lake, TWO) == want
    names = {row.tableName for row in spark.sql("show tables in kwire_lake").collect() if row.namespace}
    assert names == {f"raw_{name}" for name in (*TWO, "files", "rollup_latency", "rollup_errors", "rollup_clients")}
    with pytest.raises(OutputError, match="raw_exchanges: this is there already"):
        run(spark, ["never read"], lake, Job(TWO), mode="error")
    run(spark, paths, lake, Job(TWO), mode="append", rollups=False)
    assert written(lake, TWO) == {name: sorted(rows * 2) for name, rows in want.items()}
    run(spark, paths, lake, Job(TWO), rollups=False)
    assert written(lake, TWO) == want
    spark.sql("create table kwire_lake.raw_messages (id int) using parquet")
    for mode, error, said in (
        ("overwrite", OutputError, "with other columns"), ("append", SparkFailed, "raw_messages"),
        ("overwrite-partitions", OutputError, "with other columns"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            run(spark, ["never read"], lake, Job(FEW), mode=mode)
    assert spark.table("kwire_lake.raw_messages").columns == ["id"]


def test_partitions_that_get_rows_are_written_anew(
    spark: Any, lake: str, tmp_path: Path, packets_of: Call, save: Call, unpacked: Call, expected: Call, written: Call
) -> None:  # fmt: skip
    """A day later the same traffic comes again; then the first day's is read again."""
    packets = packets_of(unpacked("kafkajs.pcap"))
    day = 86_400_000_000_000  # ns
    paths = [
        save(tmp_path / f"{number}.pcap", [(time + number * day, *rest) for time, *rest in packets])
        for number in (0, 1)
    ]
    for path in (*paths, paths[0]):
        run(spark, [str(path)], lake, Job(("exchanges",)), mode="overwrite-partitions", rollups=False)
    rows = [row for path in paths for row in expected([path], ["exchanges"])["exchanges"]]
    assert written(lake, ["exchanges"])["exchanges"] == sorted(rows)


def test_only_new_captures_are_added(
    spark: Any, lake: str, tmp_path: Path, unpacked: Call, expected: Call, written: Call
) -> None:
    job, paths = Job(("exchanges",)), [tmp_path / f"{number}.pcap" for number in (0, 1)]
    for path, name in zip(paths, ("kafkajs.pcap", "pyclients.pcap"), strict=True):
        path.write_bytes(unpacked(name).read_bytes())
        done = run(spark, [str(found) for found in paths if found.exists()], lake, job, incremental=True)
        assert done.known == (path == paths[1])
    rows = [row for path in paths for row in expected([path], ["exchanges"])["exchanges"]]
    assert written(lake, ["exchanges"])["exchanges"] == sorted(rows)
    assert run(spark, list(map(str, paths)), lake, job, incremental=True).known == 2
    with pytest.raises(OutputError, match=r"raw_messages: .*\.pcap is not in it, only in others"):
        run(spark, list(map(str, paths)), lake, Job(FEW), incremental=True)


def test_rows_are_counted_where_a_format_lets_spark_observe_nothing(
    spark: Any, lake: str, unpacked: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    def get(_: Any) -> Any:
        raise Py4JError("assertion failed")

    monkeypatch.setattr("pyspark.sql.Observation.get", property(get))
    done = run(spark, [str(unpacked("kafkajs.pcap"))], lake, Job(("exchanges",)), rollups=False)
    assert done.rows["exchanges"] == spark.table("kwire_lake.raw_exchanges").count() > 9


def test_what_a_killed_run_left_is_told(spark: Any, lake: str, unpacked: Call) -> None:
    paths, job = [str(unpacked("kafkajs.pcap"))], Job(("exchanges",))
    CatalogRun(spark, lake, "parquet", job.names).begin(anew=False)
    with pytest.raises(OutputError, match=r"raw_files: run-[0-9a-f]+ ended in its midst: read them all once without"):
        run(spark, paths, lake, job, incremental=True)
    run(spark, paths, lake, job, rollups=False)
    assert run(spark, paths, lake, job, incremental=True).known == 1
    spark.sql("drop table kwire_lake.raw_files")
    with pytest.raises(OutputError, match="raw_exchanges: which captures are in it is not known"):
        run(spark, paths, lake, job, incremental=True)
