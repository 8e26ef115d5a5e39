"""Questions in SQL: which tables they name, what they give, what they may not do, and what is said of wrong ones."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tablerows import names_of

from kwire.errors import KwireError, QueryError, UnknownName
from kwire.render.bodies import BodyRenderer
from kwire.session.reading import Reading
from kwire.session.record import records
from kwire.tables.columns import COLUMNS
from kwire.tables.query import QuerySession, Result
from kwire.tables.schemas import SCHEMAS
from kwire.tables.sqltext import report, reports, split

CAPTURE = Path(__file__).parents[2] / "fixtures" / "captures" / "classic.pcap.gz"


@pytest.fixture(scope="module")
def classic() -> QuerySession:
    """A session with all tables loaded; tests only read."""
    session = QuerySession([CAPTURE], bodies=BodyRenderer())
    session.load(set(COLUMNS))
    return session


@pytest.fixture
def session() -> QuerySession:
    """One that has read nothing."""
    return QuerySession([CAPTURE])


def _asked(session: QuerySession, query: str) -> Result:
    result = session.run(query)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select 1", set()),
        ("from messages", {"messages"}),
        ("select * from MESSAGES m join Exchanges e using (connection)", {"messages", "exchanges"}),
        ('select * from "messages"', {"messages"}),
        ("select * from main.messages", {"messages"}),
        ("with clients as (select 1) from clients, batches", {"batches"}),
        ("select 'messages' -- from batches", set()),
        ("select (select count(*) from quality)", {"quality"}),
        ("select exchanges from clients", {"clients"}),
        ("from messages where exists (from bodies)", {"messages", "bodies"}),
        ("select 1; from batches; from clients", {"batches", "clients"}),
        ("explain select api from messages", {"messages"}),
        ("create view v as select api from messages", {"messages"}),
        ("pivot messages on api using count(*)", {"messages"}),
        ("summarize clients", {"clients"}),
        ("describe messages", set()),
        ("show tables", set()),
        ("show tables;;", set()),
    ],
)
def test_only_what_a_query_names_is_missing(query: str, names: set[str], session: QuerySession) -> None:
    assert session.missing(query) == names


def test_what_was_loaded_is_not_missing_any_more(session: QuerySession) -> None:
    reading, exchanges = session.load({"messages"})
    assert exchanges == 166
    assert reading.notes == []
    assert session.missing("from messages, exchanges") == {"exchanges"}


def test_rows_are_those_of_the_records(classic: QuerySession) -> None:
    wanted = [row for exchange in Reading([CAPTURE]).exchanges() for _, row in records(exchange)]
    result = _asked(classic, "select * from messages")
    key = ("connection", "kind", "index")
    names = names_of(SCHEMAS["messages"])
    found = [dict(zip(result.columns, row, strict=True)) for row in result.rows()]
    found = [{name: row[name] for name in names} for row in found]
    assert sorted(found, key=lambda row: [row[name] for name in key]) == sorted(
        wanted, key=lambda row: [row[name] for name in key]
    )


def test_the_last_statement_gives_the_result(classic: QuerySession) -> None:
    result = _asked(classic, "select 1 as a; select 2 as b, 'x;y' as c; -- that is all")
    assert (result.columns, list(result.rows())) == (["b", "c"], [(2, "x;y")])


def test_what_gives_no_rows_gives_no_result_and_lasts(session: QuerySession) -> None:
    assert session.run("create table t as select 1 as a") is None
    assert session.run("create view v as select a + 1 as b from t") is None
    assert list(_asked(session, "from v").rows()) == [(2,)]
    assert session.tables()[-2:] == ["t", "v"]
    assert session.describe("v") == [("b", "INTEGER", "")]


def test_a_pivot_gives_rows(classic: QuerySession) -> None:
    result = _asked(classic, "pivot exchanges on outcome using count(*) group by capture")
    assert result.columns == ["capture", "error", "no answer", "ok"]
    assert [row[0] for row in result.rows()] == ["classic.pcap.gz"]


VALUES = [
    ("null", None, "text"),
    ("true", True, "text"),
    ("7::tinyint", 7, "number"),
    ("sum(7)", 7, "number"),
    ("170141183460469231731687303715884105727::hugeint", 170141183460469231731687303715884105727, "number"),
    ("0.5", 0.5, "number"),
    ("0.5::double", 0.5, "number"),
    ("'ä'", "ä", "text"),
    ("'a\\x00'::blob", b"a\0", "text"),
    ("[1, 2]", [1, 2], "text"),
    ("{'a': [0.5], 'b': date '2026-11-21'}", {"a": [0.5], "b": "2026-11-21"}, "text"),
    ("map {'a': 1}", {"a": 1}, "text"),
    ("date '2026-11-21'", "2026-11-21", "text"),
    ("timestamp_ns '2026-11-21 01:02:03.123456789'", 1_795_222_923_123_456_789, "time"),
    ("timestamp '9999-01-01 00:00:00'", "9999-01-01 00:00:00.000000Z", "time"),
    ("[timestamp '2026-11-21 00:00:00']", ["2026-11-21T00:00:00"], "text"),
    ("'7e0b5d54-3f0a-4a57-b26f-c12f9a5c4d7d'::uuid", "7e0b5d54-3f0a-4a57-b26f-c12f9a5c4d7d", "text"),
]


@pytest.mark.parametrize(("sql", "value", "kind"), VALUES, ids=[case[0] for case in VALUES])
def test_values_are_plain(sql: str, value: object, kind: str, session: QuerySession) -> None:
    result = _asked(session, f"select {sql} as x")
    assert (list(result.rows()), result.kinds) == ([(value,)], [kind])


def test_times_are_compared_with_text_and_reckoned_with(classic: QuerySession) -> None:
    times = list(_asked(classic, "select time, time_ns from messages").rows())
    assert times
    assert all(time == ns for time, ns in times)
    day = "'2026-11-01' and '2026-12-01'"
    asked = f"select count(*), max(time) - min(time) > interval 1 second from messages where time between {day}"
    assert list(_asked(classic, asked).rows()) == [(len(times), True)]
    minutes = _asked(classic, "select date_trunc('minute', time) as minute, count(*) from messages group by 1")
    assert minutes.kinds == ["time", "number"]
    assert all(minute % 60_000_000_000 == 0 for minute, _ in minutes.rows())


def test_names_of_columns_become_unique(session: QuerySession) -> None:
    assert _asked(session, "select 1 as a, 2 as a, 3 as a_1").columns == ["a", "a_1", "a_1_1"]


def test_rows_may_be_bounded(session: QuerySession) -> None:
    result = _asked(session, "from range(25000)")
    assert (len(result), len(list(result.rows())), list(result.rows(2))) == (25_000, 25_000, [(0,), (1,)])


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_results_as_files(form: str, classic: QuerySession) -> None:
    result = _asked(classic, "select api, sum(size) as bytes from messages group by api order by api")
    file = io.BytesIO()
    result.write(file, form)
    data = pa.BufferReader(file.getvalue())
    table = pq.read_table(data) if form == "parquet" else pa.ipc.open_file(data).read_all()
    assert table.schema.types == [pa.string(), pa.int64()]
    assert table.to_pylist() == [dict(zip(result.columns, row, strict=True)) for row in result.rows()]


def test_what_parquet_lacks_is_said(session: QuerySession) -> None:
    with pytest.raises(QueryError, match="parquet cannot hold this result: "):
        _asked(session, "select interval 3 day as x").write(io.BytesIO(), "parquet")


WRONG = [
    ("", "the query is empty"),
    (" ; -- nothing", "the query is empty"),
    ("select * from messages where", 'syntax error at or near "where"'),
    ("select 1\nfrom messages\nwhere where", 'syntax error at or near "where", line 3'),
    ("from messags", "no table messags; did you mean messages?"),
    ("select apy from messages", "no column apy; did you mean api or api_key?"),
    ("select m.apy from messages m", "no column apy; did you mean api, api_key or apis?"),
    ("select $1", "the query has parameters, which nothing gives values"),
    ("select \udcff", "the query is no UTF-8"),
    ("delete from messages", "Can only delete from base table"),
    ("select 'x'::int", "Could not convert string 'x' to INT32"),
]


@pytest.mark.parametrize(("query", "message"), WRONG, ids=[case[1] for case in WRONG])
def test_what_is_wrong_is_said_in_a_line(query: str, message: str, session: QuerySession) -> None:
    with pytest.raises(KwireError) as raised:
        _checked_and_run(session, query)
    assert str(raised.value) == message


def _checked_and_run(session: QuerySession, query: str) -> None:
    session.missing(query)
    session.run(query)


def test_an_unknown_table_without_a_near_one_names_all(session: QuerySession) -> None:
    with pytest.raises(QueryError, match=f"^no table zzz; there are {', '.join(COLUMNS)}$"):
        session.missing("from zzz")


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1) to '{0}/x.csv'",
        "copy (select 1) to '{0}/x.parquet' (format parquet)",
        "export database '{0}'",
        "attach '{0}/x.db'",
        "from read_csv('{0}/there.csv')",
        "from read_text('{0}/there.csv')",
        "from glob('{0}/*')",
        "from '{0}/there.csv'",
        "create table t as from read_blob('{0}/there.csv')",
        "install httpfs",
        "load httpfs",
        "load '{0}/there.csv'",
        "set enable_external_access = true",
        "set temp_directory = '{0}'",
        "reset lock_configuration",
        "pragma profiling_output = '{0}/x'",
        "import database '{0}'",
        "from wanted",
    ],
)
def test_a_query_reaches_no_file_and_changes_no_setting(query: str, tmp_path: Path, session: QuerySession) -> None:
    wanted = pa.table({"a": [1]})  # a variable that DuckDB might take for a table
    (tmp_path / "there.csv").write_text("a\n1\n")
    with pytest.raises((QueryError, UnknownName)):
        session.run(query.format(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["there.csv"]
    assert wanted.num_rows == 1


def test_an_interrupt_ends_a_query(session: QuerySession) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            session.run("select count(*) from range(100000000000000) where range % 7 = 3")
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(_asked(session, "select 1").rows()) == [(1,)]


def test_tables_and_columns_are_described(session: QuerySession) -> None:
    assert session.tables() == list(COLUMNS)
    for name, columns in COLUMNS.items():
        assert [(column, what) for column, _, what in session.describe(name)] == [
            (column, what) for column, _, what in columns
        ]
    with pytest.raises(UnknownName, match="no table clint; did you mean clients"):
        session.describe("clint")


def test_bodies_hold_json_without_secrets(classic: QuerySession) -> None:
    result = _asked(classic, "select body from bodies where api = 'Heartbeat' and kind = 'request'")
    bodies = [json.loads(row[0]) for row in result.rows()]
    assert len(bodies) == 32
    assert {body["GroupId"] for body in bodies} == {"classic-billing"}


@pytest.mark.parametrize("name", reports())
def test_a_report_runs_and_says_what_it_shows(name: str, classic: QuerySession) -> None:
    assert report(name).startswith("-- ")
    assert len(_asked(classic, report(name))) > 0
    assert reports()[name]


def _lines(session: QuerySession, name: str) -> Iterator[dict[str, Any]]:
    result = _asked(session, report(name))
    for row in result.rows():
        yield dict(zip(result.columns, row, strict=True))


def test_reports_agree_with_what_the_exchanges_say(classic: QuerySession) -> None:
    exchanges = list(Reading([CAPTURE], tracking=True).exchanges())
    errors = [exchange for exchange in exchanges if exchange.error is not None]
    assert sum(row["count"] for row in _lines(classic, "errors")) == len(errors)
    assert sum(row["count"] for row in _lines(classic, "versions")) == len(exchanges)
    assert next(_lines(classic, "slowest"))["ms"] == 89.182
    (topic,) = _lines(classic, "top-topics")
    assert (topic["topic"], topic["records_in"], topic["records_out"]) == ("classic-orders", 200, 200)
    assert len(list(_lines(classic, "silent"))) == sum(
        exchange.response is None and not exchange.silent for exchange in exchanges
    )
    assert [row["generation"] for row in _lines(classic, "rebalances")] == [1, 2, 3, 4]


def test_the_audit_says_what_kwire_audit_says() -> None:
    session = QuerySession([CAPTURE.with_name("old39.pcap.gz")])
    assert session.missing(report("audit")) == {"audit"}
    session.load({"audit"})
    rows = list(_lines(session, "audit"))
    assert (rows[0]["verdict"], rows[0]["client_id"]) == ("blocked", "kafka-python-0.10")
    assert rows[0]["blocked_by"] == "Produce v2; magic 1"
    assert rows[-1]["verdict"] == "ready"


def test_an_unknown_report_gets_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no report slowst; did you mean slowest"):
        report("slowst")


@pytest.mark.parametrize(
    ("text", "whole", "rest"),
    [
        ("", [], ""),
        ("select 1", [], "select 1"),
        ("select 1;", ["select 1"], ""),
        ("select 1; select 2", ["select 1"], "select 2"),
        ("select ';' ; ", ["select ';'"], ""),
        ('select ";" from x;', ['select ";" from x'], ""),
        ("select 'it''s;';", ["select 'it''s;'"], ""),
        ("select 1 -- a; b\n;", ["select 1 -- a; b"], ""),
        ("/* a; */ select 1 /* ; */;", ["/* a; */ select 1 /* ; */"], ""),
        ("select $$a;b$$; select $x$;$$;$x$;", ["select $$a;b$$", "select $x$;$$;$x$"], ""),
        ("select 'open;", [], "select 'open;"),
        ("select 1; select /* open;", ["select 1"], "select /* open;"),
        (";; -- nothing", [], ""),
        ("select 4 - 2 / 1;", ["select 4 - 2 / 1"], ""),
    ],
)
def test_statements_are_told_apart(text: str, whole: list[str], rest: str) -> None:
    assert split(text) == (whole, rest)


def test_several_processes_build_the_same_tables(session: QuerySession) -> None:
    query = "select api, count(*), sum(request_size) from exchanges group by api order by api"
    many = QuerySession([CAPTURE], jobs=2)
    for one in (session, many):
        one.load({"exchanges"})
    alone, together = session.run(query), many.run(query)
    assert alone is not None
    assert together is not None
    assert together.table.equals(alone.table)
    assert len(alone) > 5


def test_a_result_as_a_stream(classic: QuerySession) -> None:
    result, file = _asked(classic, "select api, time from exchanges order by time"), io.BytesIO()
    result.write(file, "arrow", stream=True)
    read = pa.ipc.open_stream(file.getvalue()).read_all()
    assert read.equals(result.table)
    assert read.schema.field("time").type == pa.timestamp("ns", "UTC")
