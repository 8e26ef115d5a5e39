"""Tables in hive partitions: where rows go, what of a run is there when it is over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwire.errors import OutputError
from kwire.pipeline.hive import NONE, Hive, place, remove, spare
from kwire.tables.schemas import batch_of_rows

DAY = 86_400_000_000_000


def exchanges(*rows: tuple[int | None, str | None]) -> pa.RecordBatch:
    return batch_of_rows("exchanges", [{"time": time, "api": api} for time, api in rows])


def test_rows_go_to_the_partition_of_their_day_and_api(tmp_path: Path) -> None:
    hive = Hive(str(tmp_path), "some-0")
    hive.write("exchanges", exchanges((0, "Fetch"), (DAY, "Fetch"), (1, "Fetch"), (2, None), (DAY + 1, "a/b")))
    hive.write("exchanges", exchanges((3, "Fetch")))
    written = {found.partition: found.rows for found in hive.close()}
    assert written == {
        "date=1970-01-01/api=Fetch": 3, "date=1970-01-02/api=Fetch": 1, f"date=1970-01-01/api={NONE}": 1,
        "date=1970-01-02/api=a%2Fb": 1,
    }  # fmt: skip
    file = tmp_path / "exchanges" / "date=1970-01-01" / "api=Fetch" / "some-0-exchanges.parquet"
    assert pq.ParquetFile(file).read().column("time_ns").to_pylist() == [0, 1, 3]
    assert "api" not in pq.ParquetFile(file).schema_arrow.names


def test_tables_without_an_api_and_rows_without_a_time(tmp_path: Path) -> None:
    hive = Hive(str(tmp_path), "x")
    hive.write("quality", batch_of_rows("quality", [{"capture": "a"}, {"capture": "b", "time": 5}]))
    assert {found.partition for found in hive.close()} == {f"date={NONE}", "date=1970-01-01"}


def test_files_get_their_places_and_those_of_an_earlier_attempt_go(tmp_path: Path) -> None:
    staged, folder = tmp_path / ".staged", tmp_path / "out"
    for attempt in ("batch-1-a", "batch-1-b"):
        hive = Hive(str(staged), attempt)
        hive.write("exchanges", exchanges((0, "Fetch")))
        written = hive.close()
        remove(str(folder), ["exchanges"], ("open-", "batch-1-"))
        place(str(folder), str(staged), written)
    assert [path.name for path in folder.rglob("*.parquet")] == ["batch-1-b-exchanges.parquet"]
    assert not list(staged.rglob("*.parquet"))
    place(str(folder), str(staged), [], ["exchanges"])
    assert list(folder.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    "name", ["date=2026-11-21", "_SUCCESS", "_delta_log", ".crc", "metadata", "data", "part-0.parquet"]
)
def test_a_table_of_an_earlier_run_is_written_anew(name: str, tmp_path: Path) -> None:
    (tmp_path / "messages" / name).mkdir(parents=True)
    spare(str(tmp_path), ["messages", "exchanges"], [str(tmp_path / "captures")])


def test_what_is_no_table_stays(tmp_path: Path) -> None:
    (tmp_path / "clients").mkdir()
    (tmp_path / "clients" / "contract.pdf").touch()
    with pytest.raises(OutputError, match=r"clients: this is written anew, and contract\.pdf in it is not of a table"):
        spare(str(tmp_path), ["messages", "clients"], [])


@pytest.mark.parametrize("link", [False, True])
def test_sources_within_a_table_stay(link: bool, tmp_path: Path) -> None:
    source = tmp_path / "lake" / "messages" / "date=1" / "x.pcap"
    source.parent.mkdir(parents=True)
    source.touch()
    read = tmp_path / "read" if link else source
    if link:
        read.symlink_to(source)
    with pytest.raises(OutputError, match="which is read, is in it"):
        spare(str(tmp_path / "lake"), ["messages"], [str(read)])
