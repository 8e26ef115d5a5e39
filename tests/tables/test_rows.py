"""Rows of single exchanges: how an exchange came out, and what is null when one side is missing."""

from __future__ import annotations

from typing import Any

import pytest
from tablerows import names_of, rows_of

from kwire.tables.build import tables_of
from kwire.tables.schemas import SCHEMAS


def rows(traffic: Any, table: str = "exchanges") -> list[dict[str, Any]]:
    return rows_of(tables_of([traffic.save(traffic.folder / "made.pcap")], [table])[table])


def heartbeat(traffic: Any, code: int = 0) -> tuple[bytes, bytes]:
    return traffic.request("Heartbeat", 4, {}), traffic.response("Heartbeat", 4, {"ErrorCode": code})


def test_an_exchange_is_ok_an_error_or_without_an_answer(traffic: Any) -> None:
    tcp = traffic.connection()
    for code in (0, 27):
        asked, answer = heartbeat(traffic, code)
        tcp.send(asked).answer(answer)
    tcp.send(traffic.request("Produce", 9, {"Acks": 0}, 2)).send(traffic.request("Heartbeat", 4, {}, 3)).close()
    found = rows(traffic)
    assert [each["outcome"] for each in found] == ["ok", "error", "no answer wanted", "no answer"]
    row = found[-1]
    assert row["note"] == "no answer: the connection closed"
    assert [name for name, value in row.items() if value is None] == [
        "response_index", "response_size", "response_packet", "response_time", "latency_ns", "held_ns", "throttle_ns",
        "error_code", "error", "group", "transactional_id", "acks", "isolation_level", "max_wait_ms", "rack",
    ]  # fmt: skip


def test_an_orphan_has_no_request(traffic: Any) -> None:
    tcp = traffic.connection()
    for ident in (1, 2):
        tcp.send(traffic.request("Heartbeat", 4, {}, ident)).answer(traffic.response("Heartbeat", 4, {}, ident))
    tcp.answer(traffic.response("Heartbeat", 4, {}, 77)).close()
    row = next(each for each in rows(traffic) if each["request_index"] is None)
    assert row["outcome"] == "orphan"
    assert (row["request_index"], row["request_size"], row["latency_ns"]) == (None, None, None)
    assert (row["response_index"], row["correlation_id"], row["api"]) == (2, 77, None)


@pytest.mark.parametrize(
    ("code", "name"), [(27, "REBALANCE_IN_PROGRESS"), (-1, "UNKNOWN_SERVER_ERROR"), (999, "error 999")]
)
def test_an_error_has_code_and_name(code: int, name: str, traffic: Any) -> None:
    asked, answer = heartbeat(traffic, code)
    traffic.connection().send(asked).answer(answer).close()
    (row,) = rows(traffic)
    assert (row["error_code"], row["error"], row["errors"], row["outcome"]) == (code, name, 1, "error")
    assert [(each["kind"], each["error_code"], each["errors"]) for each in rows(traffic, "messages")] == [
        ("request", None, 0), ("response", code, 1),
    ]  # fmt: skip


def test_latency_is_from_the_last_byte_asked_to_the_first_answered(traffic: Any) -> None:
    asked, answer = heartbeat(traffic)
    traffic.connection().send(asked[:9]).send(asked[9:]).answer(answer[:5]).answer(answer[5:]).close()
    request, response = rows(traffic, "messages")
    assert request["last_time"] - request["time"] == response["last_time"] - response["time"] == 1_000_000
    assert rows(traffic)[0]["latency_ns"] == response["latency_ns"] == 1_000_000
    assert request["latency_ns"] is None


def test_rows_have_the_columns_of_their_tables(traffic: Any) -> None:
    asked, answer = heartbeat(traffic)
    traffic.connection().send(asked).answer(answer).close()
    assert [list(row) for row in rows(traffic)] == [names_of(SCHEMAS["exchanges"])]
    assert [list(row) for row in rows(traffic, "messages")] == [names_of(SCHEMAS["messages"])] * 2


@pytest.mark.parametrize("names", [["connections"], ["connections", "clients"]])
def test_a_connection_says_who_speaks_and_how_it_ended(names: list[str], traffic: Any) -> None:
    software = {"ClientSoftwareName": "lib", "ClientSoftwareVersion": "1.2"}
    tcp = traffic.connection()
    tcp.send(traffic.request("ApiVersions", 3, software)).answer(traffic.response("ApiVersions", 3, {}))
    tcp.close()
    traffic.connection(51600).send(traffic.request("Heartbeat", 4, {}, client=b"other"))
    made = tables_of([traffic.save(traffic.folder / "made.pcap")], names)
    found = {row["connection"]: row for row in rows_of(made["connections"])}
    first, second = found["10.0.0.7:51522>10.0.0.2:9092#1"], found["10.0.0.7:51600>10.0.0.2:9092#1"]
    told = ("client_id", "software", "software_version", "exchanges", "what", "ending")
    assert [first[name] for name in told] == ["c", "lib", "1.2", 1, "Kafka", "closed"]
    assert [second[name] for name in told] == ["other", None, None, 1, "Kafka", "open"]
    assert first["last_time"] - first["first_time"] == 5_000_000
    assert [first["handshake_ns"], second["handshake_ns"]] == [1_000_000] * 2
    if "clients" in names:
        apis = {row["client_id"]: row["apis"] for row in made["clients"].to_pylist()}
        assert apis["c"] == [{"api": "ApiVersions", "versions": [3]}]
        assert apis["other"] == [{"api": "Heartbeat", "versions": [4]}]
