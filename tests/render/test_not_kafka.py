"""Connections of other protocols: a line with the verdict, what follows from it beneath, and the same as a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.render.lines import plain
from kwire.render.not_kafka import lines_of, row_of
from kwire.session.connection_info import ConnectionInfo
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def foreign(name: str) -> list[ConnectionInfo]:
    over: list[ConnectionInfo] = []
    for _ in Reading([CAPTURES / name], ended=over.append).exchanges():
        pass
    return sorted((each for each in over if each.verdict), key=lambda each: each.tcp.first_time)


FOUND = foreign("notkafka.pcap")
START = FOUND[0].tcp.first_time


def test_what_each_of_them_is() -> None:
    kinds = [row_of(connection)["what"] for connection in FOUND]
    assert kinds[:4] == ["HTTP request", "TLS ClientHello", "SSH", "ZooKeeper command"]
    assert {"PROXY protocol v1", "PROXY protocol v2", "AMQP", "MQTT CONNECT", "Redis command"} <= set(kinds)


def test_a_line_with_what_follows_from_it() -> None:
    assert [plain(line) for line in lines_of(FOUND[0], 100, START)] == [
        "   0.000000  127.0.0.1:46714 → 127.0.0.1:9092  HTTP request  86 bytes sent, 0 got",
        "             GET /brokers",
        "             An HTTP client or health check talks to this port.",
        "             The broker logs: Invalid receive (size = 1195725856 larger than 104857600)",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("name", ["notkafka.pcap", "tls.pcap"])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(name: str, width: int) -> None:
    for connection in foreign(name):
        lines = [plain(line) for line in lines_of(connection, width, START)]
        assert max(map(len, lines)) <= width
        wide = " ".join(plain(line).strip() for line in lines_of(connection, 1000, START))
        assert "".join("".join(lines).split()) == "".join(wide.split())


def test_a_row() -> None:
    row = row_of(FOUND[0])
    assert row["connection"] == "127.0.0.1:46714>127.0.0.1:9092#1"
    assert (row["capture"], row["sent"], row["got"], row["detail"]) == ("notkafka.pcap", 86, 0, "GET /brokers")
    assert row["logged"] == "Invalid receive (size = 1195725856 larger than 104857600)"


def test_the_time_of_day() -> None:
    assert plain(lines_of(FOUND[0], 100, None)[0]).startswith("05:28:")
