"""Rows of messages and exchanges from columns are those of single frames, over real captures and made ones."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tablerows import rows_of

from kwire.session.reader import Settings
from kwire.tables import exchange_columns
from kwire.tables.build import Builder, read_into, tables_of
from kwire.tables.columns import COLUMNS

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
each = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
TABLES = ("messages", "exchanges", "connections", "quality")


def same(path: Path, ways: Any) -> int:
    """Both ways give the same rows; of how many exchanges columns were made."""
    ways.both(path, TABLES)
    return int(ways.taken)


@each
def test_both_ways_give_the_same_rows(path: Path, ways: Any) -> None:
    pairs = same(path, ways)
    assert (pairs > 0) == (path.name not in ("notkafka.pcap", "tls.pcap", "sasl-v0.pcap"))


def test_a_capture_of_many_pairs_is_nearly_all_fast(traffic: Any, ways: Any) -> None:
    tcp = traffic.connection()
    for ident in range(200):
        tcp.send(traffic.request("Heartbeat", 4, {"GroupId": "g"}, ident))
        tcp.answer(traffic.response("Heartbeat", 4, {"ErrorCode": 27 if ident % 50 == 49 else 0}, ident))
    tcp.close()
    assert same(traffic.save(traffic.folder / "made.pcap"), ways) > 150


RESPONSES: dict[str, list[dict[str, Any]]] = {
    "no error": [{}],
    "one error": [{"ErrorCode": 27}],
    "several errors": [{"ErrorCode": 25}, {}, {"ErrorCode": 27}],
    "an error that nobody knows": [{"ErrorCode": -7}, {"ErrorCode": 32767}],
}


@pytest.mark.parametrize("what", RESPONSES)
def test_errors_have_their_names(what: str, traffic: Any, ways: Any) -> None:
    tcp, answers = traffic.connection(), RESPONSES[what]
    for ident in range(60):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident))
        tcp.answer(traffic.response("Heartbeat", 4, answers[ident % len(answers)], ident))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, ways) > 30
    found = tables_of([path], ["exchanges"])["exchanges"]
    codes = {body.get("ErrorCode") for body in answers}
    assert set(found["error_code"].to_pylist()) == codes
    assert set(found["outcome"].to_pylist()) == {"error" if code else "ok" for code in codes}


@pytest.mark.parametrize("client", [b"", b"\xff\xfe", "grüße".encode(), b"\x1b[31m"])
def test_client_ids_are_texts(client: bytes, traffic: Any, ways: Any) -> None:
    tcp = traffic.connection()
    for ident in range(60):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident, client if ident > 3 else b"c"))
        tcp.answer(traffic.response("Heartbeat", 4, {}, ident))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, ways) > 30
    found = tables_of([path], ["messages"])["messages"]["client_id"].to_pylist()
    assert set(found) == {"c", client.decode("utf-8", "replace")}


def test_keys_and_versions_that_nobody_has(traffic: Any, ways: Any) -> None:
    """Of another connection, in the midst of what is regular."""
    tcp, odd = traffic.connection(), traffic.connection(51600)
    for ident in range(60):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident)).answer(traffic.response("Heartbeat", 4, {}, ident))
        head = b"\xb0\x0d\xb0\x0d" if ident % 9 == 8 else b"\0\x0c\0\4"
        odd.send(traffic.request("Heartbeat", 4, {}, ident).replace(b"\0\x0c\0\4", head))
        odd.answer(traffic.response("Heartbeat", 4, {}, ident))
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, ways) > 30
    versions = tables_of([path], ["messages"])["messages"]["api_version"].to_pylist()
    assert set(versions) == {4, -20467}


@pytest.mark.parametrize("ident", [0, -1, -(1 << 31), (1 << 31) - 40])
def test_correlation_ids_have_their_sign(ident: int, traffic: Any, ways: Any) -> None:
    tcp = traffic.connection()
    for number in range(ident, ident + 30):
        tcp.send(traffic.request("Heartbeat", 4, {}, number)).answer(traffic.response("Heartbeat", 4, {}, number))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    assert same(path, ways) > 10
    found = tables_of([path], ["exchanges"])["exchanges"]["correlation_id"].to_pylist()
    assert sorted(found) == list(range(ident, ident + 30))


def narrow(path: Path, table: str, columns: Collection[str]) -> tuple[pa.Table, bool]:
    """Only these columns of a table, and whether bodies were walked over."""
    found: list[pa.RecordBatch] = []
    builder = Builder([table], lambda _, batch: found.append(batch), columns=columns)
    builder.finish(read_into(builder, [path], Settings()))
    return pa.Table.from_batches(found, found[0].schema), builder.scans


def lines(table: pa.Table) -> list[str]:
    return sorted(map(json.dumps, rows_of(table)))


CHOSEN = [
    ("messages", {"time", "api"}, False), ("messages", {"client_id", "kind", "position", "latency_ns"}, False),
    ("messages", {"quality", "size"}, True), ("messages", {"errors", "note"}, True),
    ("exchanges", {"response_time", "connection"}, False), ("exchanges", {"outcome"}, True),
]  # fmt: skip


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize(("table", "columns", "scans"), CHOSEN)
def test_only_the_columns_that_are_asked_for_are_made(
    table: str, columns: set[str], scans: bool, traffic: Any
) -> None:  # fmt: skip
    """And bodies are walked over only where they must be: malformed ones change nothing of the rest."""
    tcp = traffic.connection()
    requests = [{"GroupId": "g"}, b"", {"GroupId": "g"}, b"\xff" * 9, {"GroupId": "g"}, b"\2g\0\0\0\1\1\0\0more"]
    answers = [{}, b"\0", {"ErrorCode": 27}, b"", {"ErrorCode": 25}, b"\0" * 40]
    for ident in range(120):
        at = ident % 6 if ident > 60 else 2 * (ident % 3)
        tcp.send(traffic.request("Heartbeat", 4, requests[at], ident))
        tcp.answer(traffic.response("Heartbeat", 4, answers[at], ident))
    tcp.close()
    path = traffic.save(traffic.folder / "made.pcap")
    whole = tables_of([path], [table])[table]
    assert whole.num_rows == (240 if table == "messages" else 120)
    found, walked = narrow(path, table, columns)
    assert walked is scans
    assert found.schema.names == [name for name, _, _ in COLUMNS[table] if name in columns]
    assert lines(found) == lines(whole.select(found.schema.names))


@each
@pytest.mark.usefixtures("ways")
def test_the_columns_of_a_capture_are_those_of_the_whole_table(path: Path) -> None:
    unjudged = {name for name, _, _ in COLUMNS["messages"]} - exchange_columns.JUDGED
    found, walked = narrow(path, "messages", unjudged)
    assert not walked
    assert lines(found) == lines(tables_of([path], ["messages"])["messages"].select(found.schema.names))
