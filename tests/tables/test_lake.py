"""Lakes: their tables say what those of the captures say, and what is no lake is told in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3server import s3_server

from kwire.errors import Exit, KwireError
from kwire.pipeline.hive import Hive
from kwire.pipeline.judging import PointDay, judgements_of, point_of
from kwire.pipeline.row_bytes import rows_of
from kwire.session.reader import Settings
from kwire.tables.build import build
from kwire.tables.columns import JUDGEMENTS
from kwire.tables.lake import lake_tables
from kwire.tables.query import QuerySession, Result
from kwire.tables.sqltext import report, reports

FIXTURES = Path(__file__).parents[2] / "fixtures" / "captures"
CAPTURES = [FIXTURES / "consumer848.pcap", FIXTURES / "oldjava.pcap.gz"]
TABLES = ("messages", "exchanges", "partitions", "group_events", "clients", "connections")
ASKED = """select api, count(*) as n, min(time) as first, max(time_ns) as last, sum(latency_ns) as took,
  count(distinct "group") as groups from exchanges group by api order by api"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What kwire pipeline run writes of the captures."""
    folder = tmp_path_factory.mktemp("lake")
    hive = Hive(str(folder), "batch")
    build(CAPTURES, TABLES, hive.write)
    for path in map(str, CAPTURES):
        point = PointDay(point_of(path), "2026-11-21", (path,))
        for table, data in judgements_of(point, [None], tuple(JUDGEMENTS), Settings()):
            for batch in rows_of(data):
                hive.write(table, batch)
    hive.close()
    return folder


def results(text: str, **source: Any) -> Result:
    """What a session of captures, or of a lake, answers."""
    session = QuerySession(source.get("paths", ()), lake=source.get("lake"))
    session.load(session.missing(text)) if session.missing(text) else None
    result = session.run(text)
    assert result is not None
    return result


def asked(text: str, **source: Any) -> list[tuple[Any, ...]]:
    """The rows of the answer."""
    return list(results(text, **source).rows())


def test_a_lake_answers_as_its_captures_do(lake: Path) -> None:
    from_lake, from_capture = asked(ASKED, lake=lake_tables(str(lake))), asked(ASKED, paths=CAPTURES)
    assert [(*row[:2], row[2] // 1000, *row[3:]) for row in from_lake] == [
        (*row[:2], row[2] // 1000, *row[3:])
        for row in from_capture  # Spark's times are of microseconds
    ]
    assert len(from_lake) == 15


@pytest.mark.parametrize("name", sorted(reports()))
def test_reports_over_a_lake(lake: Path, name: str) -> None:
    """They are those of the captures, but for times, which files have in microseconds."""
    from_lake, from_capture = results(report(name), lake=lake_tables(str(lake))), results(report(name), paths=CAPTURES)
    times = {at for at, kind in enumerate(from_capture.kinds) if kind == "time"}
    rows, expected = (
        [[value // 1000 if at in times else value for at, value in enumerate(row)] for row in result.rows()]
        for result in (from_lake, from_capture)
    )
    assert rows == expected
    assert from_lake.columns == from_capture.columns
    assert rows or name == "silent"


def test_findings_say_whose_they_are(lake: Path) -> None:
    tables = lake_tables(str(lake))
    assert asked("select count(*) from findings where date = '2026-11-20'", lake=tables) == [(0,)]
    points = asked("select distinct capture_point from audit order by 1", lake=tables)
    assert [Path(point).name for (point,) in points] == ["consumer848", "oldjava"]


def test_a_day_that_is_not_there_opens_no_file(lake: Path) -> None:
    for path in (lake / "messages").rglob("*.parquet"):
        assert path.parts[-3] == "date=2026-11-21"
    broken = lake.parent / "broken" / "messages" / "date=2026-11-20" / "api=Fetch"
    broken.mkdir(parents=True)
    (broken / "x.parquet").write_bytes(b"no Parquet")
    tables = lake_tables(str(broken.parents[2]))
    assert asked("select count(*) from messages where date = '2026-11-21'", lake=tables) == [(0,)]
    with pytest.raises(KwireError, match="Parquet"):
        asked("select count(distinct client_id) from messages", lake=tables)


def test_one_table_is_a_lake_too(lake: Path) -> None:
    tables = lake_tables(str(lake / "messages"))
    assert list(tables) == ["messages"]
    with pytest.raises(KwireError, match="no table exchanges; there are messages"):
        asked("select 1 from exchanges", lake=tables)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("", "no such folder"),
        ("empty/", "no tables there; kwire pipeline run -o .* makes them"),
        ("messages/_delta_log/", "is a table of Delta's"),
        ("messages/metadata/", "is a table of Iceberg's"),
    ],
)
def test_what_is_no_lake(tmp_path: Path, made: str, said: str) -> None:
    if made:
        (tmp_path / "lake" / made).mkdir(parents=True)
    with pytest.raises(KwireError, match=said):
        lake_tables(str(tmp_path / "lake"))


def test_an_address_that_nobody_knows() -> None:
    with pytest.raises(KwireError, match="foo://x/y: Unrecognized filesystem"):
        lake_tables("foo://x/y")


def test_a_lake_on_an_s3_server(kwire: Any, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables, and the rollups of kwire pipeline report; what is not there is told in a line."""
    sums = {name: [40, 2] for name in ("bytes_in", "records_in", "bytes_out", "records_out", "errors")}
    topics = pa.table({"topic": ["orders", "orders"], "partitions": [[0, 1], [1]], **sums})
    for number in range(2):
        day = tmp_path / f"rollups/topics/date=2026-11-2{number}"
        day.mkdir(parents=True)
        pq.write_table(topics.slice(number, 1), day / "part.parquet")
    with s3_server() as server:
        tables, rollups = server.put_folder("tables", lake), server.put_folder("sums", tmp_path)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        for place in (tables, tables.replace("s3:", "s3a:")):
            assert asked(ASKED, lake=lake_tables(place)) == asked(ASKED, lake=lake_tables(str(lake)))
        with pytest.raises(KwireError, match="s3://tables/none: no such folder"):
            lake_tables("s3://tables/none")
        told, here = (kwire("pipeline", "report", where) for where in (rollups, str(tmp_path)))
        assert (told.text, told.err, told.status) == (here.text, "", Exit.OK)
        assert "42" in told.text
        none = kwire("pipeline", "report", "s3://nobody/lake")
        assert (none.err.count("\n"), none.status) == (1, Exit.USAGE)
        assert "s3://nobody/lake: no rollups there" in none.err


def test_the_command(kwire: Any, lake: Path) -> None:
    ran = kwire("sql", "--lake", str(lake), "select count(*) as n from exchanges where api = 'Fetch'")
    assert (ran.text, ran.err, ran.status) == (" n\n71\n1 row\n", "", Exit.OK)
    both = kwire("sql", "--lake", str(lake), str(CAPTURES[0]), "select 1 as n")
    assert both.status == Exit.USAGE
    assert "--lake or captures, not both" in both.err
