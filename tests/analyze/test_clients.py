"""Who speaks in a capture: clients by id and software, what they use, brokers that speak to themselves, TLS."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.analyze import clients as module
from kwire.analyze.client import Client
from kwire.analyze.clients import Clients
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


def collected(*names: str) -> Clients:
    clients = Clients()
    for batch in Reading([CAPTURES / name for name in names], ended=clients.close).batches():
        clients.add(batch)
    return clients


def test_each_client_with_its_software_and_what_it_uses() -> None:
    found = {client.client_id: client for client in collected("classic.pcap.gz").found}
    assert list(found) == ["classic-admin", "classic-c1", "classic-c2", "classic-producer"]
    one = found["classic-c1"]
    assert (one.software, one.software_version) == ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0")
    assert (one.exchanges, one.errors, len(one.connections)) == (89, 5, 3)
    assert one.versions["Fetch"] == {16}
    assert one.versions["Heartbeat"] == {3}
    assert set(one.addresses) == {"127.0.0.1"}
    assert found["classic-producer"].compressions == {"lz4": 4}
    assert one.first_time < one.last_time


def test_addresses_of_ipv6_have_no_brackets() -> None:
    (address,) = {address for client in collected("ipv6.pcap").found for address in client.addresses}
    assert address == "::1"


def test_logins() -> None:
    found = collected("sasl.pcap.gz").found
    logins = {(*client.mechanisms, *client.principals) for client in found}
    assert logins == {("PLAIN", "fixture-plain"), ("SCRAM-SHA-256", "fixture-scram")}


def test_bare_tokens_are_no_client_of_their_own() -> None:
    found = {client.client_id: client for client in collected("sasl-v0.pcap").found}
    assert list(found) == ["bare-gssapi", "bare-plain", "bare-scram-sha-256"]
    assert found["bare-plain"].principals == {"fixture-plain"}


def test_compressions_of_old_batches() -> None:
    found = {codec for client in collected("oldjava.pcap.gz").found for codec in client.compressions}
    assert {"none", "gzip", "snappy", "lz4"} <= found


@pytest.mark.parametrize(
    ("client_id", "is_broker"),
    [
        ("broker-1-fetcher-0", True),
        ("broker-1-to-controller-heartbeat-channel-manager", True),
        ("AddPartitionsManager-client", True),
        ("Persister-client-1", True),
        ("raft-client-1", True),
        ("controller-3000", True),
        ("1", True),
        ("cart-1", False),
        ("", False),
        (None, False),
        ("my-broker", False),
    ],
)
def test_brokers_that_speak_to_themselves_are_told_by_their_names(client_id: str | None, is_broker: bool) -> None:
    assert Client(client_id, None, None).is_broker is is_broker


def test_brokers_come_last() -> None:
    found = collected("share.pcap", "txn.pcap.gz").found
    kinds = [client.is_broker for client in found]
    assert kinds == sorted(kinds)
    assert any(kinds)


def test_tls_connections_by_the_name_that_was_asked_for() -> None:
    secured = collected("tls.pcap").secured
    assert [(row.server_name, row.connections, row.refused) for row in secured] == [
        ("kafka.example", 6, 1), (None, 2, 0),
    ]  # fmt: skip
    assert any("unknown_ca" in text for text in secured[0].alerts)


def test_beyond_so_many_no_client_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    assert len(collected("classic.pcap.gz").found) == 2


def test_a_row_of_json() -> None:
    row = next(client.row() for client in collected("franz.pcap.gz").found if client.compressions)
    assert set(row["compression"]) <= {"none", "gzip", "snappy", "lz4", "zstd"}
    assert row["brokers"] == ["127.0.0.1:9092"]
    assert next(iter(row["versions"])) == "Produce", "in the order of the API keys"
