"""Captures of the fixtures unpacked, the way through splits without Spark, and one Spark session for all tests."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import os
import pickle
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tablerows import untimed

import kwire
from kwire.capture.files import open_capture
from kwire.capture.save import PcapWriter
from kwire.capture.source import Source
from kwire.pipeline import plan as planning
from kwire.pipeline.provisional import fixed
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import plan
from kwire.session.reader import Settings
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS
from kwire.tables.schemas import SCHEMAS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
Packet = tuple[int, bytes, int, int]  # time, bytes, length on the wire, link
Rows = dict[str, list[str]]


def names_of_captures() -> list[str]:
    return sorted(path.name for path in CAPTURES.glob("*.pcap*"))


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A capture of the fixtures as a file that is not compressed."""
    folder = tmp_path_factory.mktemp("captures")

    @functools.cache
    def find(name: str) -> Path:
        path = CAPTURES / name
        if path.suffix == ".gz":
            path = folder / path.stem
            path.write_bytes(gzip.decompress((CAPTURES / name).read_bytes()))
        return path

    return find


@pytest.fixture(scope="session")
def packets_of() -> Callable[[Path], list[Packet]]:
    def packets(path: Path) -> list[Packet]:
        return [
            (time, bytes(block.buffer[start : start + captured]), length, link)
            for block in open_capture(path).blocks()
            for time, start, captured, length, link in zip(
                *(getattr(block, name).tolist() for name in ("time", "start", "captured", "length", "link")),
                strict=True,
            )
        ]

    return packets


@pytest.fixture(scope="session")
def save() -> Callable[[Path, Sequence[Packet]], Path]:
    def write(path: Path, packets: Sequence[Packet]) -> Path:
        with open(path, "wb") as file:
            writer = PcapWriter(file)
            for packet in packets:
                writer.write(*packet)
        return path

    return write


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rows]:
    """The rows of kwire table, sorted; window: in how large pieces it reads the files."""

    def rows(paths: Sequence[Path], names: Sequence[str], window: int | None = None) -> Rows:
        with monkeypatch.context() as patch:
            if window is not None:
                patch.setattr("kwire.capture.files.Source", functools.partial(Source, window=window))
            return sorted_rows(tables_of(paths, names))

    return rows


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Rows, planning.TaskPlan]]:
    """The same rows by way of splits. again: every split is read a second time, for its rows."""

    def rows(
        paths: Sequence[Path], names: Sequence[str], size: int, window: int | None = None, again: bool = False
    ) -> tuple[Rows, planning.TaskPlan]:
        settings, want = Settings(), planning.wanted(names)
        parts: dict[str, list[pa.RecordBatch]] = {name: [] for name in names}
        made: dict[tuple[str, int], list[tuple[str, pa.RecordBatch]]] = {}

        def one(split: Any) -> Any:
            if again:
                return survey(split, settings, want, window)
            mine = made[split.path, split.number] = []
            found = planning.survey_with_rows(
                split, names, lambda name, batch: mine.append((name, batch)), settings, want, window=window,
                finals=True,
            )  # fmt: skip
            return pickle.loads(pickle.dumps(found))

        with monkeypatch.context() as patch:
            if window is not None:
                patch.setattr("kwire.capture.files.Source", functools.partial(Source, window=window))
            splits = plan(paths, size, window)
            files = planning.survey_all(splits, lambda some: [one(split) for split in some], settings, want, window)
            planned = planning.stitch(files, names, settings, window=window)
            for name, batch in planned.rows:
                parts[name].append(batch)
            for task in planned.tasks:
                if task.made:
                    for name, batch in made[task.split.path, task.split.number]:
                        parts[name].append(fixed(name, batch, task.ordinals, planned.names))
                else:
                    planning.read_task(
                        task, names, lambda name, batch: parts[name].append(batch), settings, planned.names,
                        window=window,
                    )  # fmt: skip
        tables = {name: pa.Table.from_batches(found, SCHEMAS[name]) for name, found in parts.items()}
        return sorted_rows(tables), planned

    return rows


def sorted_rows(tables: dict[str, pa.Table]) -> Rows:
    return {name: sorted(map(repr, untimed(table).to_pylist())) for name, table in tables.items()}


@pytest.fixture(scope="session")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a zip."""
    root, path = Path(kwire.__file__).parent, tmp_path_factory.mktemp("zip") / "kwire.zip"
    with zipfile.ZipFile(path, "w") as file:
        for found in sorted(root.rglob("*")):
            if found.is_file() and "__pycache__" not in found.parts:
                file.write(found, Path("kwire") / found.relative_to(root))
    return path


def _callbacks(spark: Any, plugins: Any) -> None:
    """Starts what streams call back before many files are open: py4j waits by select(), and ends with none to say so
    where its socket's number is above 1,023."""
    from pyspark.java_gateway import ensure_callback_server_started

    low: list[int] = next((plugin.LOW for plugin in plugins.get_plugins() if hasattr(plugin, "LOW")), [])
    while low:
        os.close(low.pop())
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[2], once for all."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from kwire.pipeline import register

    made = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    register(made)
    _callbacks(made, request.config.pluginmanager)
    yield made
    made.stop()


@pytest.fixture
def written(spark: Any) -> Callable[..., dict[str, list[str]]]:
    """The rows of tables that a job wrote."""

    def rows(folder: Path, names: Iterable[str], form: str = "parquet") -> dict[str, list[str]]:
        from kwire.pipeline.formats import table_of

        out = {}
        for name in names:
            columns = [f"`{column}`" for column, kind, _ in COLUMNS[name] if kind != "timestamp"]
            found = table_of(spark, str(folder), name, form).select(*columns).collect()
            out[name] = sorted(repr(row.asDict(True)) for row in found)
        return out

    return rows
