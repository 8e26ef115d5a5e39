"""Small files of a folder's tables become few, with the same rows, and whatever happens none is lost or doubled."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import Call

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from kwire.errors import OutputError  # noqa: E402
from kwire.pipeline import compact, ledger  # noqa: E402
from kwire.pipeline.compact import rewrite, rewrites  # noqa: E402
from kwire.tables.writer import OPENERS  # noqa: E402

RUNS = "run-00000000000a", "run-00000000000b"
DAY = "messages/date=2026-11-21/api=Fetch"
SCHEMA = pa.schema([("time_ns", pa.int64()), ("client_id", pa.string())])


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """A file with these rows."""

    def write(name: str, numbers: range, schema: Any = SCHEMA) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = [pa.array(numbers, pa.int64())]
        columns += [pa.array([f"client {number}" for number in numbers])] * (len(schema) - 1)
        writer = OPENERS["parquet"](path, schema)
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        writer.close()
        return path

    return write


@pytest.fixture
def lake(tmp_path: Path, put: Callable[..., Path]) -> Path:
    """Two runs of which one is recorded, in one partition, and a file alone in another."""
    for number in range(6):
        put(f"{DAY}/{RUNS[number % 2]}-{number}-messages.parquet", range(number * 10, number * 10 + 10))
    put(f"clients/date=2026-11-21/{RUNS[0]}-0-clients.parquet", range(3))
    put(f"files/{RUNS[0]}.parquet", range(1))
    return tmp_path


def rows(place: Path) -> list[int]:
    return sorted(number for path in place.glob("*.parquet") for number in pq.read_table(path)["time_ns"].to_pylist())


def merged(lake: Path, target: int = compact.TARGET) -> list[int]:
    return [rewrite(found, lake) for found in list(rewrites(lake, target))]


def test_the_rows_stay_and_runs_that_are_recorded_keep_their_names(lake: Path) -> None:
    [found] = rewrites(lake)
    assert (found.table, found.day, found.files, len(found.merges)) == ("messages", "2026-11-21", 6, 2)
    assert len(merged(lake)) == 1
    assert rows(lake / DAY) == list(range(60))
    assert sorted(path.name[:6] for path in (lake / DAY).iterdir()) == ["merged", "run-00"]
    assert {ledger.run_of(path.name) for path in (lake / DAY).iterdir()} == {None, RUNS[0]}
    assert not list(rewrites(lake))
    assert not list(lake.glob(".kwire-*"))


def test_files_are_packed_up_to_a_size(lake: Path) -> None:
    size = max(path.stat().st_size for path in (lake / DAY).iterdir())
    merged(lake, target=size * 2)
    assert len(list((lake / DAY).iterdir())) == 4  # of three of a run, two and one
    assert rows(lake / DAY) == list(range(60))


@pytest.mark.parametrize("dies", ["_sync", "_exchange"])
def test_a_crash_before_the_exchange_leaves_the_old_files(
    lake: Path, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    before = sorted(os.listdir(lake / DAY))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compact, dies, die)
    with pytest.raises(KeyboardInterrupt):
        merged(lake)
    assert sorted(os.listdir(lake / DAY)) == before


def test_a_crash_after_the_exchange_leaves_the_new_files(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = compact._exchange

    def then_die(*paths: Path) -> None:
        exchange(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(compact, "_exchange", then_die)
    with pytest.raises(KeyboardInterrupt):
        merged(lake)
    assert (len(os.listdir(lake / DAY)), rows(lake / DAY)) == (2, list(range(60)))


def test_what_comes_and_goes_meanwhile_does_so_in_the_new_folder(
    lake: Path, put: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = put(f"{DAY}/open-0-messages.parquet", range(100, 110))
    exchange = compact._exchange

    def meanwhile(*paths: Path) -> None:
        put(f"{DAY}/{RUNS[0]}-9-messages.parquet", range(200, 210))
        stays.unlink()
        exchange(*paths)

    monkeypatch.setattr(compact, "_exchange", meanwhile)
    merged(lake)
    assert rows(lake / DAY) == [*range(60), *range(200, 210)]


def test_a_system_that_cannot_exchange_folders_is_told_of(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(os.listdir(lake / DAY))
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    with pytest.raises(OutputError, match="in one step"):
        merged(lake)
    assert sorted(os.listdir(lake / DAY)) == before


def test_what_a_stream_may_write_again_stays(tmp_path: Path, put: Callable[..., Path]) -> None:
    for number in (1, 2, 3, 4):
        put(f"{DAY}/batch-{number:08}-x-messages.parquet", range(number * 10, number * 10 + 10))
    put(f"{DAY}/open-1-messages.parquet", range(5))
    (tmp_path / ".kwire-stream").mkdir()
    (tmp_path / ".kwire-stream/state-00000003").touch()
    [found] = rewrites(tmp_path)
    assert [path.name[6:14] for path in found.merges[0][1]] == ["00000001", "00000002"]


def test_files_with_other_columns_and_links_are_left(lake: Path, put: Callable[..., Path], tmp_path: Path) -> None:
    later = pa.schema([*SCHEMA, ("new", pa.string())])
    put(f"{DAY}/{RUNS[0]}-8-messages.parquet", range(100, 101), later)
    put(f"{DAY}/{RUNS[0]}-7-messages.parquet", range(101, 102), SCHEMA.with_metadata({
        compact.SPARK_SCHEMA: b'{"fields":[{"name":"body","type":"variant"}]}'
    }))  # fmt: skip
    place = tmp_path / "exchanges/date=2026-11-21/api=Fetch"
    place.parent.mkdir(parents=True)
    place.symlink_to(lake / DAY)
    merged(lake)
    assert rows(lake / DAY) == [*range(60), 100, 101]
    assert len(list((lake / DAY).iterdir())) == 4
    assert place.is_symlink()


@pytest.mark.parametrize(("name", "said"), [("_delta_log", "OPTIMIZE"), ("metadata", "rewrite_data_files")])
def test_tables_of_other_formats_are_left_to_them(lake: Path, kwire: Call, name: str, said: str) -> None:
    (lake / "messages" / name).mkdir()
    ran = kwire("pipeline", "compact", str(lake))
    assert (ran.status, said in ran.err, len(ran.err.splitlines())) == (2, True, 1)


def test_a_damaged_file_is_told_of(lake: Path, kwire: Call) -> None:
    (lake / DAY / "x.parquet").write_bytes(b"PAR1 and no more")
    ran = kwire("pipeline", "compact", str(lake))
    assert (ran.status, "x.parquet: this is no whole Parquet file" in ran.err) == (2, True)
    assert rows_without(lake, "x.parquet") == list(range(60))


def rows_without(lake: Path, name: str) -> list[int]:
    (lake / DAY / name).unlink()
    return rows(lake / DAY)


def test_not_while_a_run_writes(lake: Path, kwire: Call) -> None:
    with ledger.running(str(lake)):
        ran = kwire("pipeline", "compact", str(lake))
    assert (ran.status, "a run writes there now" in ran.err) == (2, True)
    assert kwire("pipeline", "compact", str(lake)).status == 0


def test_the_command_says_what_it_merges(lake: Path, kwire: Call) -> None:
    tried = kwire("pipeline", "compact", str(lake), "--dry-run")
    assert len(os.listdir(lake / DAY)) == 6
    ran = kwire("pipeline", "compact", str(lake))
    assert len(os.listdir(lake / DAY)) == 2
    assert tried.out.startswith(f"{DAY}: ".encode())
    assert tried.out.endswith(b"in 6 files -> 2\n")
    assert ran.out.endswith(b"bytes in 2\n")
    assert tried.err.startswith("kwire: 6 files would become 2 in ")
    assert ran.err.startswith("kwire: 6 files became 2 in ")
