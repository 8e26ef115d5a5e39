"""Clients as blocks of lines: what fits every width, versions as ranges, and text from the wire made safe."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kwire.analyze.client import Client
from kwire.analyze.clients import Clients, Secured
from kwire.render import clients as module
from kwire.render.clients import clients_lines
from kwire.render.lines import plain
from kwire.session.reading import Reading

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
NASTY = "\x1b[31m\u202e\n" * 20


def collected(name: str) -> Clients:
    clients = Clients()
    for batch in Reading([CAPTURES / name], ended=clients.close).batches():
        clients.add(batch)
    return clients


def test_a_block_for_each_client() -> None:
    lines = [plain(line) for line in clients_lines(collected("classic.pcap.gz"), 100)]
    assert lines[0] == "classic-admin  confluent-kafka-python 2.16.1-rdkafka-2.16.0"
    assert lines[1].startswith("  5 exchanges on 2 connections · 02:16:11.331748 to 02:16:11.360672")
    assert lines[2:5] == [
        "  from      127.0.0.1",
        "  to        127.0.0.1:9092",
        "  speaks    Metadata v13, ApiVersions v3, CreateTopics v4",
    ]
    assert lines[5] == ""
    assert lines[-1] != ""


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["sasl.pcap.gz", "tls.pcap", "ipv6.pcap", "txn.pcap.gz"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    assert [line for line in map(plain, clients_lines(collected(name), width)) if len(line) > width] == []


@pytest.mark.parametrize("width", [60, 100])
def test_text_from_the_wire_is_safe_and_fits(width: int) -> None:
    clients = Clients()
    client = Client(NASTY, NASTY, NASTY, Counter(["10.0.0.7"]), Counter(["b:1"]))
    client.mechanisms, client.principals = {NASTY}, {NASTY}
    clients._found[NASTY, None, None] = client
    clients._secured["a", "b", NASTY] = Secured("a", "b", NASTY, 1, Counter({NASTY: 2}))
    lines = [plain(line) for line in clients_lines(clients, width)]
    assert "".join(lines).isprintable()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("versions", "text"),
    [({3}, "3"), ({3, 5, 6, 7}, "3,5-7"), ({0, 1, 2, 9}, "0-2,9"), ({4, 3}, "3-4"), (set(), "")],
)
def test_versions_as_ranges(versions: set[int], text: str) -> None:
    assert module._ranges(versions) == text


def test_only_a_few_addresses_are_named() -> None:
    assert module._listed(f"10.0.0.{number}" for number in range(6)) == (
        "10.0.0.0, 10.0.0.1, 10.0.0.2, 10.0.0.3 and 2 more"
    )


def test_who_says_nothing_of_itself() -> None:
    clients = Clients()
    clients._found[None, None, None] = Client(None, None, None)
    assert plain(clients_lines(clients, 80)[0]) == "(no client id)  software not said"
    assert clients_lines(Clients(), 80) == []


@pytest.mark.parametrize(("connections", "refused", "said"), [
    (6, 0, "6 connections, encrypted"),
    (6, 6, "6 connections  each a ClientHello that got no ServerHello: not encrypted"),
    (1, 1, "1 connection  each a ClientHello that got no ServerHello: not encrypted"),
    (6, 2, "4 of 6 connections, encrypted  2 a ClientHello that got no ServerHello: not encrypted"),
])  # fmt: skip
def test_what_got_no_server_hello_is_not_called_encrypted(connections: int, refused: int, said: str) -> None:
    clients = Clients()
    clients._secured["a", "b", None] = Secured("a", "b", None, connections, Counter(), refused)
    assert [plain(line) for line in clients_lines(clients, 200)] == [f"TLS  a → b  {said}"]
