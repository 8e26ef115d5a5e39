"""Bytes that are fed as they travel give the exchanges that a capture of them gives."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from kwire.session import session as module
from kwire.session.exchange import Exchange
from kwire.session.session import Session

CLIENT, BROKER = ("10.0.0.7", 51522), ("10.0.0.2", 9092)


def test_the_example_runs() -> None:
    assert doctest.testmod(module).failed == 0


def said(exchanges: list[Exchange]) -> list[tuple[Any, ...]]:
    return [(one.api, one.correlation_id, one.latency, one.ending, one.connection.name) for one in exchanges]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("kept", [False, True])
def test_pieces_of_any_size(traffic: Any, size: int, kept: bool) -> None:
    """kept: the session is stopped and taken up between any two pieces."""
    session, found = Session(), []
    for ident in range(3):
        asked = traffic.request("Heartbeat", 3, {"GroupId": "g"}, ident)
        answer = traffic.response("Heartbeat", 3, {}, ident)
        for time, ends, data in ((0, (CLIENT, BROKER), asked), (5, (BROKER, CLIENT), answer)):
            for at in range(0, len(data), size):
                found += session.feed(ident * 10 + time, *ends, data[at : at + size])
                session = Session.resume(session.snapshot()) if kept else session
    name = "10.0.0.7:51522>10.0.0.2:9092#1"
    assert said(found) == [("Heartbeat", ident, 5, None, name) for ident in range(3)]
    assert session.finish() == []


@pytest.mark.parametrize("reset", [False, True])
def test_what_is_open_at_a_close_and_the_next_connection(traffic: Any, reset: bool) -> None:
    session = Session()
    asked = traffic.request("Heartbeat", 3, {"GroupId": "g"}, 1)
    assert session.feed(0, CLIENT, BROKER, asked) == []
    assert session.connections[0].coverage.opened
    done = session.close(1, BROKER, CLIENT, reset=reset)
    done += session.feed(2, CLIENT, BROKER, asked) + session.finish()
    why = "the connection was reset" if reset else "the connection closed"
    assert [(one.ending, one.connection.tcp.epoch) for one in done] == [(why, 1), ("the session ended", 2)]


def test_a_broker_that_speaks_first_is_known_by_its_port(traffic: Any) -> None:
    session = Session(ports=[9092])
    ends = ("::1", 40000), ("::1", 9092)
    answer, asked = traffic.response("Heartbeat", 3, {}, 1), traffic.request("Heartbeat", 3, {"GroupId": "g"}, 1)
    found = session.feed(0, ends[1], ends[0], answer) + session.feed(1, ends[0], ends[1], asked)
    assert said(found) == [("Heartbeat", 1, -1, None, "[::1]:40000>[::1]:9092#1")]


def test_no_address() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        Session().feed(0, ("broker", 9092), CLIENT, b"x")
