"""What connections keep has limits: holes that are given up, idle and too many connections, what waits in all."""

from __future__ import annotations

from typing import Any

import pytest
from capture.conftest import CLOSING, OPENING, TALK, TEXT, feed, play

from kwire.capture import connections as module
from kwire.capture.connections import IDLE, LINGER, Connections
from kwire.capture.streams import PATIENCE, cost_of

A, B, C = ((0, 100 + low, TEXT[low : low + 10], "A") for low in (0, 10, 20))


def test_a_hole_is_given_up_when_it_stays_too_long(make: Any) -> None:
    connections = Connections()
    feed(make, connections, OPENING)
    (found,) = feed(make, connections, [C], 5)
    assert (found.streams[0].held_bytes, found.streams[0].pieces) == (10, [])
    assert feed(make, connections, [TALK[1]], PATIENCE + 5) == [found]
    assert found.streams[0].held_bytes == 10
    other = make.ip4(make.tcp(b"x", sport=7))
    given = make.feed(connections, [other], time=PATIENCE + 6)
    assert found in given
    assert (make.gaps(found.streams[0]), make.data(found.streams[0])) == ([(20, 20, False)], TEXT[20:30])
    assert found not in make.feed(connections, [other], time=2 * PATIENCE)


def test_a_hole_is_given_up_when_too_much_waits_behind_it(make: Any) -> None:
    connections = Connections(held=100)
    feed(make, connections, OPENING)
    for number, low in enumerate(range(10, 110, 10)):
        (found,) = feed(make, connections, [(0, 100 + low, TEXT[low : low + 10], "A")], number)
        assert found.streams[0].held_bytes == low
    feed(make, connections, [(0, 300, TEXT[200:210], "A")], 50)
    assert (make.gaps(found.streams[0]), make.data(found.streams[0])) == ([(10, 10, False)], TEXT[10:110])
    assert (found.streams[0].held_bytes, found.streams[0].missing) == (10, 10)


def test_what_waits_in_all_connections_is_bounded(make: Any) -> None:
    connections, found = Connections(in_all=100), {}
    for low in (0, 20, 40):
        packets = [make.ip4(make.tcp(TEXT[:10], 1 + low, sport=port)) for port in range(1, 31)]
        found.update({id(one): one for one in make.feed(connections, packets, time=low)})
        assert sum(one.streams[0].held_bytes for one in found.values()) <= 100
    list(connections.finish())
    assert [make.data(one.streams[0]) for one in found.values()] == [TEXT[:10] * 3] * 30


def test_the_end_of_the_capture_gives_up_all_holes(make: Any) -> None:
    (found,) = play(make, OPENING, [B, (0, 150, b"far", "A"), (1, 505, b"x", "A")])
    assert make.gaps(found.streams[0]) == [(10, 10, False), (50, 30, False)]
    assert make.gaps(found.streams[1]) == [(5, 5, False)]
    assert all(make.in_order(stream) and not stream.held for stream in found.streams)


def test_closed_connections_are_swept_after_a_while_and_idle_ones_later(make: Any) -> None:
    connections = Connections()
    (closed,) = feed(make, connections, [*OPENING, *TALK, *CLOSING])
    ping = make.ip4(make.tcp(b"x", sport=7))
    assert closed not in make.feed(connections, [ping], time=LINGER)
    ended = make.feed(connections, [ping], time=2 * LINGER)
    assert (closed in ended, closed.finished, len(ended)) == (True, True, 2)
    (idle,) = (one for one in ended if one is not closed)
    later = feed(make, connections, TALK, 3 * LINGER)
    assert [(one.epoch, one.finished) for one in later] == [(2, False)]
    swept = feed(make, connections, [(0, 111, b"y", "A")], 2 * LINGER + IDLE + 9)
    assert (swept[0], idle in swept, idle.finished) == (later[0], True, True)


def test_the_idlest_are_ended_when_there_are_too_many(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_UNKNOWN", 10)
    connections = Connections()
    found = make.feed(connections, [make.ip4(make.tcp(b"x", sport=port)) for port in range(1, 13)])
    ended = [one.ends[0][1] for one in found if one.finished]
    assert sorted(set(ended)) == list(range(1, 7))
    assert (connections.given_up, len(list(connections.finish()))) == (6, 6)


def test_the_idlest_that_are_not_known_are_ended_before_others(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_UNKNOWN", 10)
    connections = Connections()
    for port in range(1, 9):
        (one,) = make.feed(connections, [make.ip4(make.tcp(b"x", sport=port))])
        one.known = True
    ended = [
        one.ends[0][1]
        for port in range(9, 30)
        for one in make.feed(connections, [make.ip4(make.tcp(b"x", sport=port))])
        if one.finished
    ]
    assert sorted(ended) == list(range(9, 9 + len(ended)))
    left = [one.ends[0][1] for one in connections.finish()]
    assert set(range(1, 9)) < set(left)
    assert len(left) <= 8 + 10 + 1


def test_only_so_many_epochs_are_remembered(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENDPOINTS", 5)
    connections = Connections()
    for port in range(1, 20):
        make.feed(connections, [make.ip4(make.tcp(b"x", sport=port))])
        list(connections.finish())
    assert len(connections._epochs) <= 5


def test_segments_cut_to_nothing_wait_within_the_bound(make: Any) -> None:
    connections = Connections(held=1000)
    feed(make, connections, OPENING)
    packets = [make.segment(0, 200 + at, b"x") for at in range(5000)]
    (found,) = make.feed(connections, packets, snaplen=40)
    assert found.streams[0].held_cost <= cost_of(1000) < 5000 * 600
    assert found.streams[0].missing > 0
