"""The tables of captures: they hold what kwire read says of the same captures, and whatever the bytes are, they are
made."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tablerows import names_of, rows_of

import kwire as api
from kwire.errors import CaptureError, UnknownName
from kwire.render.bodies import BodyRenderer
from kwire.session.reader import Settings
from kwire.session.record import records
from kwire.tables import build
from kwire.tables.build import tables_of
from kwire.tables.columns import COLUMNS, DEFAULT
from kwire.tables.schemas import SCHEMAS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
each = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
Row = dict[str, Any]


@cache
def tables(path: Path) -> dict[str, pa.Table]:
    return tables_of([path], COLUMNS, bodies=BodyRenderer())


def rows(path: Path, table: str) -> list[Row]:
    return rows_of(tables(path)[table])


def ordered(found: list[Row]) -> list[str]:
    """Rows as text, in an order of their own."""
    return sorted(json.dumps(row) for row in found)


def said(kwire: Callable[..., Any], *arguments: str) -> list[Row]:
    return [json.loads(line) for line in kwire("read", "--format", "json", *arguments).text.splitlines()]


# ---------------------------------------------------------------- as kwire read says it


@each
def test_messages_are_the_lines_of_kwire_read(path: Path, kwire: Callable[..., Any]) -> None:
    lines = said(kwire, str(path))
    about = ["topics", "group", "transactional_id"]
    assert list(lines[0]) == [*names_of(SCHEMAS["messages"]), *about]
    for line in lines:
        for name in about:
            del line[name]
    assert ordered(rows(path, "messages")) == ordered(lines)


@each
def test_bodies_are_those_of_kwire_read(path: Path, kwire: Callable[..., Any]) -> None:
    lines = said(kwire, "--body", str(path))
    expected = [
        {column: line[column] for column in SCHEMAS["bodies"].names} for line in lines if line["body"] is not None
    ]
    ours = [row | {"body": json.loads(row["body"])} for row in rows(path, "bodies")]
    assert ordered(ours) == ordered(expected)


@each
def test_exchanges_join_the_messages_of_kwire_read(path: Path, kwire: Callable[..., Any]) -> None:
    messages = {(line["connection"], line["kind"], line["index"]): line for line in said(kwire, str(path))}
    joined = 0
    for row in rows(path, "exchanges"):
        request = messages.get((row["connection"], "request", row["request_index"]))
        response = messages.get((row["connection"], "response", row["response_index"]))
        joined += (request is not None) + (response is not None)
        first, answer = request or response, response or {}
        assert first is not None
        for column in ("capture", "time", "api_key", "api", "api_version", "correlation_id", "client_id"):
            assert row[column] == first[column], column
        assert row["request_size"] == (request["size"] if request else None)
        assert row["response_size"] == answer.get("size")
        assert row["response_time"] == answer.get("time")
        for column in ("latency_ns", "error_code", "error"):
            assert row[column] == answer.get(column), column
        assert row["errors"] == answer.get("errors", 0)
        assert (row["outcome"] in ("ok", "error")) == (request is not None and response is not None)
        assert (row["outcome"] == "error") == (request is not None and bool(answer.get("errors")))
    assert joined == len(messages)


@each
def test_connections_and_clients_sum_up_what_the_messages_say(path: Path) -> None:
    exchanges, connections = rows(path, "exchanges"), rows(path, "connections")
    of_each = Counter(row["connection"] for row in exchanges)
    assert {row["connection"]: row["exchanges"] for row in connections if row["exchanges"]} == of_each
    assert len({row["connection"] for row in connections}) == len(connections)
    # a bare token names no client
    asked = [row for row in exchanges if row["request_index"] is not None and row["api"] != "SaslToken"]
    clients = rows(path, "clients")
    assert sum(row["exchanges"] for row in clients) == len(asked)
    assert sum(row["errors"] for row in clients) == sum(row["error_code"] is not None for row in asked)
    by_name: Counter[str | None] = Counter()
    for row in clients:
        by_name[row["client_id"]] += row["exchanges"]
    assert by_name == Counter(row["client_id"] for row in asked)
    spoken = {(one["api"], version) for row in clients for one in row["apis"] for version in one["versions"]}
    assert spoken == {(row["api"], row["api_version"]) for row in asked}


@each
def test_group_events_and_partitions_name_exchanges(path: Path) -> None:
    known = {(row["connection"], row["time"], row["correlation_id"]): row for row in rows(path, "exchanges")}
    for table in ("partitions", "batches", "group_events"):
        for row in rows(path, table):
            exchange = known[row["connection"], row["time"], row["correlation_id"]]
            assert (row["api"], row["api_version"]) == (exchange["api"], exchange["api_version"])


def test_what_is_no_kafka_is_said_in_quality() -> None:
    found = rows(CAPTURES / "notkafka.pcap", "quality")
    assert len(found) == 12
    assert {row["what"] for row in found} == {"not Kafka"}
    assert any(row["note"].startswith("HTTP") for row in found)
    assert {row["connection"] for row in found} < {
        row["connection"] for row in rows(CAPTURES / "notkafka.pcap", "connections")
    }


def test_damage_to_the_capture_is_said_in_quality(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((CAPTURES / "ipv6.pcap").read_bytes()[:-7])
    (row,) = tables_of([cut], ["quality"])["quality"].to_pylist()
    assert (row["capture"], row["what"], row["connection"], row["time"]) == ("cut.pcap", "damaged", None, None)
    assert row["note"]


# ---------------------------------------------------------------- which tables, which captures


@each
def test_a_table_alone_is_the_same_as_with_all_others(path: Path) -> None:
    for name in DEFAULT:
        assert ordered(rows_of(tables_of([path], [name])[name])) == ordered(rows(path, name)), name


def test_several_captures_make_one_table() -> None:
    chosen = [CAPTURES / "pyclients.pcap", CAPTURES / "streams.pcap"]
    found = tables_of(chosen, DEFAULT)
    for name in set(DEFAULT) - {"clients"}:
        both = [row for path in chosen for row in rows(path, name)]
        assert ordered(rows_of(found[name])) == ordered(both), name


def test_only_what_was_asked_for_is_there_in_its_order() -> None:
    found = tables_of([CAPTURES / "ipv6.pcap"], ["quality", "messages", "quality"])
    assert list(found) == ["quality", "messages"]
    assert found["quality"].schema == SCHEMAS["quality"]
    assert found["quality"].num_rows == 0


def test_an_unknown_table_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no table mesages; did you mean messages"):
        tables_of([CAPTURES / "ipv6.pcap"], ["mesages"])


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no capture at all")
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        tables_of([tmp_path / "text"], ["messages"])


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_rows_come_in_batches_of_any_size(size: int) -> None:
    path, found = CAPTURES / "classic.pcap.gz", []
    builder = build.Builder(["connections"], lambda _, batch: found.append(batch), most=size)
    builder.finish(build.read_into(builder, [path], Settings()))
    assert max(batch.num_rows for batch in found) <= size
    assert ordered(rows_of(pa.Table.from_batches(found))) == ordered(rows(path, "connections"))


@pytest.mark.parametrize("name", COLUMNS)
def test_only_some_tables_need_topics_names(name: str) -> None:
    builder = build.Builder(["messages", name], lambda *_: None)
    assert builder.tracking == (name in ("partitions", "batches", "findings", "audit"))


# ---------------------------------------------------------------- hostile


@pytest.mark.parametrize("names", [list(DEFAULT), list(COLUMNS)], ids=["without bodies", "with bodies"])
def test_text_that_is_no_utf8_is_mended(traffic: Any, names: list[str]) -> None:
    tcp = traffic.connection()
    tcp.send(traffic.request("Heartbeat", 4, {}, 0)).answer(traffic.response("Heartbeat", 4, {}, 0))
    tcp.send(traffic.request("SaslHandshake", 1, b"\0\5PL\xffIN", 1, b"a\xff"))
    tcp.answer(traffic.response("SaslHandshake", 1, {}, 1))
    for ident in range(2, 40):
        tcp.send(traffic.request("Heartbeat", 4, b"\3g\xff" + bytes(4) + b"\2m\0\0", ident, b"a\xff"))
        tcp.answer(traffic.response("Heartbeat", 4, {}, ident))
    tcp.close()
    path = traffic.save(Path(os.fsdecode(os.fsencode(traffic.folder) + b"/odd\xff.pcap")))
    found = tables_of([path], names, bodies=BodyRenderer())
    assert set(found["messages"]["client_id"].to_pylist()) == {"a\ufffd", "c"}
    assert set(found["messages"]["capture"].to_pylist()) == {"odd\ufffd.pcap"}
    assert found["connections"]["sasl_mechanism"].to_pylist() == ["PL\ufffdIN"]
    if "clients" in names:
        assert set(found["group_events"]["group"].to_pylist()) == {"g\ufffd", ""}
        assert ["PL\ufffdIN"] in found["clients"]["sasl_mechanisms"].to_pylist()


@pytest.mark.parametrize("name", ["franz.pcap.gz", "old39.pcap.gz", "streams.pcap", "sasl.pcap.gz", "sasl-v0.pcap"])
def test_changed_bytes_still_make_tables(name: str, tmp_path: Path) -> None:
    data = (CAPTURES / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    rng = random.Random(name)
    for _ in range(4):
        made = bytearray(data)
        at = 24
        while at < len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "little")
            if size > 90 and rng.random() < 0.05:
                made[at + 16 + rng.randrange(66, size)] = rng.choice((0, 1, 127, 128, 255))
            at += 16 + size
        (tmp_path / "made.pcap").write_bytes(made)
        found = tables_of([tmp_path / "made.pcap"], COLUMNS, bodies=BodyRenderer())
        for table in found.values():
            table.validate(full=True)
        exact = [row for exchange in api.read(tmp_path / "made.pcap") for _, row in records(exchange)]
        ours = rows_of(found["messages"])
        assert len(ours) == len(exact)
        assert Counter(row["quality"] for row in ours) == Counter(row["quality"] for row in exact)


# ---------------------------------------------------------------- the public functions


@pytest.mark.parametrize("name", COLUMNS)
def test_the_public_functions_give_the_same_in_three_forms(name: str) -> None:
    path = CAPTURES / "txn.pcap.gz"
    arrow = api.to_arrow(path, name)
    assert arrow.schema == SCHEMAS[name]
    assert ordered(rows_of(arrow)) == ordered(rows(path, name))
    assert api.to_polars(path, name).to_dicts() == arrow.to_pylist()
    frame = api.to_pandas(str(path), table=name)
    assert (list(frame.columns), len(frame)) == (arrow.schema.names, arrow.num_rows)
    assert pa.Table.from_pandas(frame, SCHEMAS[name], preserve_index=False).equals(arrow)


def test_without_a_name_it_is_the_messages() -> None:
    assert api.to_arrow(CAPTURES / "ipv6.pcap").schema == SCHEMAS["messages"]
    assert api.to_polars(CAPTURES / "ipv6.pcap").height == len(api.to_pandas(CAPTURES / "ipv6.pcap")) == 63
    with pytest.raises(UnknownName, match="no table nothing"):
        api.to_arrow(CAPTURES / "ipv6.pcap", "nothing")
