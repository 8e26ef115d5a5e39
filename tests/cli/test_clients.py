"""kwire clients: every client of a capture with its software, as text of every width and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.errors import Exit

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "fixtures" / "captures").glob("*.pcap*"))
FOLDER = "fixtures/captures/"
every = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])


def _clients(kwire: Any, *arguments: str) -> list[dict[str, Any]]:
    found = json.loads(kwire("clients", "--format", "json", *arguments).text)["clients"]
    assert isinstance(found, list)
    return found


@every
def test_no_line_is_wider_than_the_terminal(path: Path, kwire: Any) -> None:
    for width in (60, 80, 120, 200):
        ran = kwire("clients", str(path), columns=width)
        assert [line for line in ran.text.splitlines() if len(line) > width] == []


@every
def test_every_client_id_of_read_is_there(path: Path, kwire: Any) -> None:
    rows = [json.loads(line) for line in kwire("read", str(path), "--format", "json").text.splitlines()]
    asked = [row for row in rows if row["kind"] == "request" and row["api"] != "SaslToken"]
    found = _clients(kwire, str(path))
    assert {client["client_id"] for client in found} == {row["client_id"] for row in asked}
    assert sum(client["exchanges"] for client in found) == len(asked)
    text = kwire("clients", str(path)).text
    assert all((client["client_id"] or "(no client id)") in text for client in found)


@pytest.mark.parametrize(
    ("capture", "client_id", "software"),
    [
        ("classic.pcap.gz", "classic-c1", ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")),
        ("consumer848.pcap", "consumer848-c1", ("apache-kafka-java", "4.3.1")),
        ("kafkajs.pcap", None, (None, None)),
    ],
)
def test_software(capture: str, client_id: str | None, software: tuple[str | None, str | None], kwire: Any) -> None:
    found = [
        client for client in _clients(kwire, FOLDER + capture) if client_id is None or client["client_id"] == client_id
    ]
    assert found
    assert {(client["software"], client["software_version"]) for client in found} == {software}


def test_logins_and_compressions(kwire: Any) -> None:
    clients = _clients(kwire, FOLDER + "sasl.pcap.gz")
    assert {name for client in clients for name in client["principals"]} == {"fixture-plain", "fixture-scram"}
    assert {name for client in clients for name in client["sasl_mechanisms"]} == {"PLAIN", "SCRAM-SHA-256"}
    codecs = {codec for client in _clients(kwire, FOLDER + "franz.pcap.gz") for codec in client["compression"]}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_filters_leave_their_part(kwire: Any) -> None:
    found = _clients(kwire, FOLDER + "classic.pcap.gz", "--api", "Heartbeat", "--client-id", "*-c2")
    assert [(client["client_id"], list(client["versions"])) for client in found] == [("classic-c2", ["Heartbeat"])]


def test_tls_is_listed_with_the_name_that_was_asked_for(kwire: Any) -> None:
    ran = kwire("clients", FOLDER + "tls.pcap")
    assert "TLS  127.0.0.1 → 127.0.0.1:9094 as kafka.example  5 of 6 connections, encrypted\n" in ran.text
    secured = json.loads(kwire("clients", FOLDER + "tls.pcap", "--format", "json").text)["tls"]
    assert [(row["server_name"], row["connections"]) for row in secured] == [("kafka.example", 6), (None, 2)]
    assert ran.status == Exit.OK


def test_no_kafka(kwire: Any) -> None:
    ran = kwire("clients", FOLDER + "classic.pcap.gz", "--port", "1")
    assert (ran.out, ran.status) == (b"", Exit.NOT_KAFKA)
