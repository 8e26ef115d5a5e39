"""The message record: its columns, and its lines of JSON."""

from __future__ import annotations

import json
from struct import pack
from typing import Any

import pytest

from kwire.render.bodies import BodyRenderer
from kwire.render.message_json import MessageLines
from kwire.session.batch import of_exchanges
from kwire.session.record import about_row, error_name, records

COLUMNS = [
    "capture", "connection", "kind", "index", "position", "time", "last_time", "packet", "last_packet", "size",
    "api_key", "api", "api_version", "header_version", "correlation_id", "client_id", "error_code", "error", "errors",
    "latency_ns", "quality", "note",
]  # fmt: skip


@pytest.fixture
def everything(traffic: Any) -> Any:
    """A message of every quality, odd client ids, tokens, orphans, refusals."""
    ask, reply, sized = traffic.request, traffic.response, traffic.size_prefixed
    tcp = traffic.connection().send(ask(18, 5, b"\2x\2y\0", 1)).answer(reply("ApiVersions", 0, {"ErrorCode": 35}, 1))
    clients = [None, "", 'é\u2028"\\', b"\xff\xfe", "a\x1b[1m\n\0", "\u202e\U0001f600"]
    for ident, client in enumerate(clients, 2):
        tcp.send(ask("Heartbeat", 4, {}, ident, client)).answer(reply("Heartbeat", 4, {"ErrorCode": 4000}, ident))
    body = {"ErrorCode": -1, "Responses": [{"Partitions": [{"ErrorCode": 1}]}]}
    tcp.send(ask("Fetch", 12, ident=20)).answer(reply("Fetch", 12, body, 20))
    tcp.send(sized(ask("Heartbeat", 3, ident=21)[4:] + b"!")).answer(sized(pack(">i", 21) + b"\0"))
    tcp.send(ask("Produce", 9, {"Acks": 0}, 22)).send(ask(200, 1, b"?", 23)).answer(sized(pack(">i", 23) + b"\0"))
    tcp.answer(sized(b"\0")).answer(sized(pack(">i", 99) + b"\xff" * 9)).send(sized(b"\0\1"))
    metadata = {"ClusterId": "a-cluster-id", "Topics": [{"Name": "orders", "ErrorCode": 3}]}
    tcp.answer(reply("Metadata", 9, metadata, 98)).send(ask("Heartbeat", 3, ident=30), lost=True)
    tcp.send(ask("Heartbeat", 3, ident=31)).send(ask("Metadata", 9, ident=32)[:-1])
    login = traffic.connection("10.0.0.9:1").send(ask("SaslHandshake", 0, {"Mechanism": "PLAIN"}, 1))
    login.answer(reply("SaslHandshake", 0, ident=1)).send(sized(b"\0u\0p")).answer(sized(b""))
    return traffic.read()


def test_the_columns_and_their_order(everything: Any) -> None:
    assert {tuple(row) for row in everything.rows} == {tuple(COLUMNS)}
    found = {row["quality"] for row in everything.rows}
    assert found >= {"ok", "trailing", "truncated", "orphan", "malformed", "unsupported", "opaque"}


def test_a_line_is_the_row_as_json_dumps_writes_it(everything: Any) -> None:
    batch, bodies = of_exchanges(everything.exchanges), BodyRenderer()
    plain = "".join(MessageLines().of(batch)).splitlines()
    assert plain == [json.dumps(row | about_row(exchange.about)) for exchange in batch for _, row in records(exchange)]
    bodied = [json.loads(line) for line in "".join(MessageLines(bodies).of(batch)).splitlines()]
    rows = [(message, row | about_row(exchange.about)) for exchange in batch for message, row in records(exchange)]
    assert bodied == [row | {"body": json.loads(bodies.json(message))} for message, row in rows]


def test_one_exchange_in_full(traffic: Any) -> None:
    tcp = traffic.connection().send(traffic.request("Heartbeat", 4, ident=7, client="app"), 10)
    tcp.answer(traffic.response("Heartbeat", 4, {"ErrorCode": 25}, 7), 10)
    start, step, where = 1_700_000_000_000_000_000, 1_000_000, "10.0.0.7:51522>10.0.0.2:9092#1"
    request, response = traffic.read().rows
    assert request == dict(zip(COLUMNS, [
        "made.pcap", where, "request", 0, 0, start + 2 * step, start + 4 * step, 3, 5, 22, 12, "Heartbeat", 4, 2, 7,
        "app", None, None, 0, None, "ok", None], strict=True))  # fmt: skip
    assert response == dict(zip(COLUMNS, [
        "made.pcap", where, "response", 0, 0, start + 5 * step, start + 6 * step, 6, 7, 12, 12, "Heartbeat", 4, 1,
        7, "app", 25, "UNKNOWN_MEMBER_ID", 1, step, "ok", None], strict=True))  # fmt: skip


@pytest.mark.parametrize(("code", "name"), [
    (None, None), (27, "REBALANCE_IN_PROGRESS"), (-1, "UNKNOWN_SERVER_ERROR"), (4000, "error 4000"),
])  # fmt: skip
def test_error_names(code: int | None, name: str | None) -> None:
    assert error_name(code) == name
