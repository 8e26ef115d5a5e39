"""Folders KEY=VALUE as columns of a data source: what is listed, what filters leave out; rows stay the same."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from calls import Call

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyarrow import fs  # noqa: E402
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan  # noqa: E402
from pyspark.sql.pandas.types import from_arrow_schema  # noqa: E402

from kwire.errors import FilesUnreachable, OptionError, UnknownName  # noqa: E402
from kwire.pipeline.capture_folders import folders, keys  # noqa: E402
from kwire.pipeline.dataframes import opened  # noqa: E402
from kwire.pipeline.options import PipelineOptions  # noqa: E402
from kwire.pipeline.source import KwireSource  # noqa: E402
from kwire.pipeline.stores import Stores  # noqa: E402
from kwire.tables.build import tables_of  # noqa: E402

NAMES = ("kafkajs.pcap", "pyclients.pcap", "classic.pcap.gz")


@pytest.fixture
def divided(tmp_path: Path, unpacked: Call) -> Path:
    """point=a/day=1/, point=a/day=2/ and point=b c/day=2/ with a capture each."""
    for place, name in zip(("point=a/day=1", "point=a/day=2", "point=b%20c/day=2"), NAMES, strict=True):
        path = tmp_path / "in" / place / name.removesuffix(".gz")
        path.parent.mkdir(parents=True)
        path.write_bytes(unpacked(name).read_bytes())
    for hidden in ("point=a/.new", "point=a/_SUCCESS", "other/x.pcap"):
        (tmp_path / "in" / hidden).parent.mkdir(exist_ok=True)
        (tmp_path / "in" / hidden).write_bytes(b"x")
    return tmp_path / "in"


def test_captures_by_folder(divided: Path) -> None:
    stores = Stores()
    found = folders([str(divided)], stores)
    assert [folder.values for folder in found] == [
        (("point", "a"), ("day", "1")), (("point", "a"), ("day", "2")), (("point", "b c"), ("day", "2")),
    ]  # fmt: skip
    assert [Path(path).name for folder in found for path in folder.paths] == [
        name.removesuffix(".gz") for name in NAMES
    ]
    assert all(folder.size == Path(folder.paths[0]).stat().st_size for folder in found)
    assert keys([str(divided)], stores) == ["point", "day"]
    assert keys([str(divided / "point=a")], stores) == ["day"]
    assert len(folders([str(divided)], stores, lambda key, value: (key, value) != ("point", "a"))) == 1


def test_files_and_patterns_are_one_folder(divided: Path) -> None:
    (found,) = folders([f"{divided}/*/*/*.pcap"], Stores())
    assert (found.values, len(found.paths)) == ((), 3)
    with pytest.raises(OptionError, match="no such file or folder"):
        folders([f"{divided}/*.pcapng"], Stores())
    with pytest.raises(FilesUnreachable, match="viewfs://a/b is not on this machine"):
        folders(["viewfs://a/b"], Stores())


def rows_of(source: KwireSource, fields: dict[str, Any], *filters: Filter) -> list[tuple[Any, ...]]:
    """The rows that the source gives to Spark, which plans and reads in different processes."""
    reader = source.reader(from_arrow_schema(pa.schema(fields)))
    assert list(reader.pushFilters(list(filters))) == []
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    assert len(partitions) == 1 or "splitsize" in source.options
    reader = pickle.loads(pickle.dumps(reader))
    return [
        tuple(row.values()) for part in partitions for batch in reader.read(part) for row in batch.to_pylist()
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"splitsize": "9000"}])
def test_filters_on_keys_and_times_leave_out_the_rest(divided: Path, options: dict[str, str]) -> None:
    source = KwireSource({"path": str(divided), **options})
    assert source.schema().endswith("`point` string, `day` string")
    tables = [tables_of([path], ["messages"])["messages"] for path in sorted(divided.rglob("point*/*/*.pcap"))]
    text, time = pa.string(), pa.timestamp("us", "UTC")
    found = Counter(rows_of(source, {"point": text, "DAY": text}))
    assert found == dict(zip((("a", "1"), ("a", "2"), ("b c", "2")), (table.num_rows for table in tables), strict=True))
    moment = tables[1]["time"][40].as_py()
    late = sum(time.as_py() > moment for table in tables[1:] for time in table["time"])
    (divided / "point=a/day=1/broken.pcap").symlink_to("nowhere")  # nobody looks there
    kept = rows_of(source, {"day": text, "time": time}, EqualTo(("day",), "2"), GreaterThan(("time",), moment))
    assert len(kept) == late > 9
    assert {day for day, _ in kept} == {"2"}


def test_spark_compares_keys_and_times_alike(spark: Any, divided: Path) -> None:
    (table,) = (tables_of([path], ["messages"])["messages"] for path in divided.rglob("point=b*/*/*.pcap"))
    moment = table["time_ns"][40].as_py() // 1000
    frame = spark.read.format("kwire").load(str(divided))
    chosen = frame.filter(f"point = 'b c' and time > timestamp_micros({moment})").select("day", "time_ns").collect()
    assert {row.day for row in chosen} == {"2"}
    assert sorted(row.time_ns for row in chosen) == sorted(
        time for time in table["time_ns"].to_pylist() if time // 1000 > moment
    )


def test_a_bucket_is_read_in_place(divided: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a source that has the settings of its session, in a task and by splits."""
    made = fs.SubTreeFileSystem(str(divided), fs.LocalFileSystem())
    seen: list[str | None] = []

    def there(self: Stores, _: str, root: str) -> Any:
        seen.append(self._setting("fs.s3a.endpoint"))
        return made if root == "s3a://far" else None

    monkeypatch.setattr(Stores, "_opened", there)
    ours = type("KwireSource", (KwireSource,), {"hadoop": {"fs.s3a.endpoint": "here"}})
    for options in ({}, {"splitsize": "9000"}):
        text = {"point": pa.string(), "api": pa.string()}
        far, near = (rows_of(kind({"path": path, **options}), text) for kind, path in
                     ((ours, "s3a://far/"), (KwireSource, str(divided))))  # fmt: skip
        assert sorted(map(str, far)) == sorted(map(str, near)) != []
    assert set(seen) == {"here"}
    assert PipelineOptions.of({"path": "s3a://far/point=a/day=*/*.pcap"}).arrived(Stores()) == [
        "s3a://far/point=a/day=1/kafkajs.pcap", "s3a://far/point=a/day=2/pyclients.pcap",
    ]  # fmt: skip


def test_frames_of_a_context(spark: Any, unpacked: Call, expected: Call) -> None:
    path = unpacked("kafkajs.pcap")
    with opened(spark, str(path), ["messages", "clients"], 9000) as tables:
        for name, want in expected([path], ["messages", "clients"]).items():
            times = [column for column, kind in tables[name].dtypes if kind == "timestamp"]
            rows = tables[name].drop("date", *times).collect()
            assert sorted(repr(row.asDict(True)) for row in rows) == want
    with pytest.raises(UnknownName, match="no table audit"), opened(spark, str(path), ["audit"]):
        pass
