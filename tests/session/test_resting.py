"""Connections that open in a block and are regular as a whole are read without a conversation, and go on as all do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from session.conftest import Packet, Tcp, Traffic, request, response

from kwire.codec.thresholds import TOGETHER
from kwire.session import reader as reading
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.exchange import Exchange
from kwire.session.reader import Reader, Settings
from kwire.session.record import records

CAREFUL = Settings(careful=True)
COLUMNS = Settings(thresholds=TOGETHER)


def talk(tcp: Tcp, first: int = 1, count: int = 3, error: int = 0) -> Tcp:
    tcp.send(request("ApiVersions", 3, {"ClientSoftwareName": "n", "ClientSoftwareVersion": "1"}, first - 1))
    tcp.answer(response("ApiVersions", 3, None, first - 1))
    for ident in range(first, first + count):
        tcp.send(request("Heartbeat", 3, {"GroupId": "g"}, ident), 9)
        tcp.answer(response("Heartbeat", 3, {"ErrorCode": error}, ident), 5)
    return tcp


@pytest.fixture
def conversations(monkeypatch: pytest.MonkeyPatch) -> list[Conversation]:
    """Those that are made."""
    made: list[Conversation] = []

    class Counted(Conversation):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(reading, "Conversation", Counted)
    return made


def said(traffic: Traffic, feed: int | None, settings: Settings, packets: list[Packet] | None = None) -> Any:
    """All that is known of the exchanges and of the connections, in an order of its own."""
    found = traffic.read(packets, feed, settings)
    over = [
        (one.name, one.exchanges, one.coverage, one.identity.said, one.login, one.clients, one.twin_of, one.is_kafka)
        for one in found.over
    ]
    return found.rows, [each.silent for each in found.exchanges], sorted(over, key=str)


def test_a_whole_connection_needs_no_conversation(traffic: Traffic, conversations: list[Conversation]) -> None:
    for number in range(40):
        tcp = talk(traffic.connection(f"10.0.0.7:{51_000 + number}"), error=number % 3)
        if number % 2:
            tcp.close()
    found = said(traffic, None, COLUMNS)
    assert not conversations
    assert found == said(traffic, None, CAREFUL)
    assert len(found[0]) == 320


def irregular(tcp: Tcp, how: str) -> None:
    match how:
        case "no answer":
            tcp.send(request("Heartbeat", 3, {"GroupId": "g"}, 9))
        case "half a frame":
            tcp.send(request("Heartbeat", 3, {"GroupId": "g"}, 9)[:11])
        case "lost":
            tcp.send(request("Heartbeat", 3, {"GroupId": "g"}, 9), lost=True)
            talk(tcp, 10)
        case "no answer wanted":
            tcp.send(request("Produce", 7, {"Acks": 0}, 9))
        case "bare tokens":
            tcp.send(request("SaslHandshake", 0, {"Mechanism": "PLAIN"}, 9))
            tcp.answer(response("SaslHandshake", 0, {"Mechanisms": ["PLAIN"]}, 9))
            tcp.send(b"\0\0\0\x04\0a\0b").answer(bytes(4))
        case "not a body":
            tcp.send(request(12, 3, b"\xff", 9)).answer(response("Heartbeat", 3, {}, 9))
        case "reset":
            tcp.reset()


HOW = ["no answer", "half a frame", "lost", "no answer wanted", "bare tokens", "not a body", "reset"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("feed", [None, 9, 40])
def test_what_is_not_regular_is_read_as_ever(traffic: Traffic, how: str, feed: int | None) -> None:
    for number in range(4):
        tcp = talk(traffic.connection(f"10.0.0.7:{51_000 + number}"))
        if number == 2:
            irregular(tcp, how)
        tcp.close()
    assert said(traffic, feed, COLUMNS) == said(traffic, feed, CAREFUL)


@pytest.mark.parametrize("how", ["", *HOW])
def test_one_that_rests_goes_on(traffic: Traffic, how: str, conversations: list[Conversation]) -> None:
    tcp = talk(traffic.connection())
    first = len(traffic.packets)
    if not how:
        talk(tcp, 100, error=27).close()
    irregular(tcp, how)
    assert said(traffic, first, COLUMNS) == said(traffic, first, CAREFUL)
    assert len(conversations) == 1 + (how != "reset")  # with the careful one's


def test_bytes_that_come_again_wake_nobody(traffic: Traffic) -> None:
    talk(traffic.connection()).close()
    again = traffic.packets[3]
    packets = [*traffic.packets, again._replace(time=traffic.packets[-1].time + 1000)]
    feed = len(traffic.packets)
    assert said(traffic, feed, COLUMNS, packets) == said(traffic, feed, CAREFUL, packets)


@pytest.mark.parametrize("resumed", [False, True])
def test_it_is_kept_in_a_snapshot(traffic: Traffic, resumed: bool) -> None:
    tcp = talk(traffic.connection())
    first = len(traffic.packets)
    talk(tcp, 100).close()
    over: list[ConnectionInfo] = []
    reader = Reader("made.pcap", COLUMNS, ended=over.append)
    found: list[Exchange] = [one for batch in reader.feed(traffic.block(traffic.packets[:first], 1)) for one in batch]
    assert [known.name for known in reader.open_connections] == ["10.0.0.7:51522>10.0.0.2:9092#1"]
    if resumed:
        reader = Reader.resume(reader.snapshot(), ended=over.append)
    rest: list[Callable[[], Any]] = [
        lambda: reader.feed(traffic.block(traffic.packets[first:], first + 1)), reader.finish,
    ]  # fmt: skip
    found += [one for step in rest for batch in step() for one in batch]
    rows = [row for exchange in found for _, row in records(exchange)]
    assert rows == traffic.read(settings=CAREFUL).rows
    assert [one.exchanges for one in over] == [8]


def test_more_connections_than_may_be_open(traffic: Traffic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are ended before they were read are read all the same."""
    monkeypatch.setattr("kwire.capture.connections.MOST_UNKNOWN", 6)
    for number in range(20):
        talk(traffic.connection(f"10.0.0.7:{51_000 + number}"))
    rows = [sorted(map(str, said(traffic, None, settings)[0])) for settings in (COLUMNS, CAREFUL)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 160
