"""What a lake knows of the captures in it: which are new, and what killed runs leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import OutputError
from kwire.pipeline import ledger
from kwire.pipeline.ledger import enter, of_folder, running
from kwire.pipeline.stores import Stores

TABLES = ("messages", "exchanges")


@pytest.fixture
def captures(tmp_path: Path) -> list[str]:
    """Three files that no capture is, which does not matter here."""
    paths = [tmp_path / f"{number}.pcap" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 300_000)
    return [str(path) for path in paths]


@pytest.fixture
def lake(tmp_path: Path, captures: list[str]) -> Path:
    """One that holds the first two."""
    folder = tmp_path / "lake"
    written(folder, captures[:2])
    return folder


def written(folder: Path, paths: list[str], tables: tuple[str, ...] = TABLES, anew: bool = False) -> str:
    with running(str(folder)) as run:
        for table in tables:
            place = folder / table / "date=2026-11-21"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{run}-00000-ab-{table}.parquet").write_bytes(b"rows")
        enter(str(folder), run, tables, dict.fromkeys(paths, "2026-11-21"), anew, Stores())
    return run


def test_what_is_new_is_chosen(lake: Path, captures: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(Path(captures[0]).read_bytes())
    twin = tmp_path / "twin.pcap"
    twin.write_bytes(Path(captures[2]).read_bytes())
    found = of_folder(str(lake), TABLES).choose([*captures, str(copy), str(twin)], Stores())
    assert (found.new, found.known, found.grown) == ([captures[2]], [*captures[:2], str(copy), str(twin)], [])


def test_a_file_that_grew_is_told_and_one_of_a_ring_that_begins_anew_is_new(lake: Path, captures: list[str]) -> None:
    with open(captures[0], "ab") as file:
        file.write(b"more")
    Path(captures[1]).write_bytes(b"\xff" * 400_000)  # longer, and another
    found = of_folder(str(lake), TABLES).choose(captures, Stores())
    assert (found.new, found.known, found.grown) == (captures[1:], [], [captures[0]])


def test_a_short_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "short.pcap"
    path.write_bytes(b"abc")
    written(tmp_path / "lake", [str(path)])
    path.write_bytes(b"abcdef")
    assert of_folder(str(tmp_path / "lake"), TABLES).choose([str(path)], Stores()).grown == [str(path)]


def test_files_of_a_run_that_was_killed_are_removed(lake: Path, captures: list[str]) -> None:
    there = sorted(lake.rglob("*.parquet"))
    with pytest.raises(TypeError):
        written(lake, [None])  # type: ignore[list-item]
    assert len(sorted(lake.rglob("*.parquet"))) == len(there) + 2
    found = of_folder(str(lake), TABLES).choose(captures, Stores())
    assert sorted(lake.rglob("*.parquet")) == there
    assert found.new == captures[2:]
    assert not list(lake.rglob("*.begun"))


def test_files_of_a_run_that_goes_on_stay(lake: Path) -> None:
    with running(str(lake)) as run:
        place = lake / "other"
        place.mkdir()
        (place / f"{run}-x.parquet").write_bytes(b"rows")
        of_folder(str(lake), TABLES)
        assert (place / f"{run}-x.parquet").exists()


def test_a_run_that_writes_all_anew_leaves_nothing_of_what_was_known(lake: Path, captures: list[str]) -> None:
    for table in TABLES:
        for path in (lake / table).rglob("*.parquet"):
            path.unlink()
    written(lake, captures[2:], anew=True)
    assert of_folder(str(lake), TABLES).choose(captures, Stores()).new == captures[:2]


def test_tables_that_lack_what_others_hold_are_refused(lake: Path, captures: list[str]) -> None:
    written(lake, captures[2:], ("messages",))
    assert of_folder(str(lake), ("messages",)).choose(captures, Stores()).new == []
    with pytest.raises(OutputError, match=r"2\.pcap is not in it, only in others: read them all once"):
        of_folder(str(lake), TABLES)


@pytest.mark.parametrize("name", ["part-0001.snappy.parquet", "run-0123456789ab-x.parquet"])
def test_tables_that_nobody_tells_of_are_refused(lake: Path, name: str) -> None:
    (lake / "messages" / name).write_bytes(b"rows")
    with pytest.raises(OutputError, match="which captures are in it is not known"):
        of_folder(str(lake), TABLES)
    assert (lake / "messages" / name).exists()


def test_judgements_of_before_there_were_capture_points_are_refused(tmp_path: Path, captures: list[str]) -> None:
    lake = tmp_path / "lake"
    written(lake, captures, ("findings",))
    with pytest.raises(OutputError, match="findings: it is not by capture point yet: read them all once"):
        of_folder(str(lake), ("findings",))


def test_a_digest_is_of_size_and_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "one"
    found = set()
    for data in (b"", b"a", b"a" * 200_000, b"a" * 200_001, b"b" + b"a" * 199_999, b"a" * 199_999 + b"b"):
        path.write_bytes(data)
        found.add(ledger.digest_of(str(path), Stores()))
    assert len(found) == 6
