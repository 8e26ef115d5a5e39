"""Limits of connections, of what is unfinished and unread: who is over one ends alone, and makes room for others."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from struct import pack, unpack

import pytest
from rawsockets import LATE, asks, connected, ended, exactly, until

import kwire
from kwire.broker.configs import BROKER, DELETE, SET
from kwire.broker.context import BrokerLimits, BrokerSettings
from kwire.broker.handle import Broker
from kwire.records import build


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


@pytest.mark.parametrize(
    ("limits", "data", "why"),
    [
        (BrokerLimits(frame=100), pack(">i", 101), "a request of 101 bytes, the limit is 100"),
        (
            BrokerLimits(unfinished=100),
            pack(">i", 5000) + bytes(200),
            "204 bytes of requests are unfinished; all connections together may hold 100",
        ),
        (BrokerLimits(idle_ms=100), b"", "idle for 100 ms"),
    ],
)
def test_limits_of_a_connection(limits: BrokerLimits, data: bytes, why: str) -> None:
    with Broker(settings=BrokerSettings(limits=limits)) as broker, connected(broker) as sock:
        sock.sendall(data)
        assert ended(sock)
        assert until(broker, "closed", bool) == [why]


def test_one_connection_too_many() -> None:
    with Broker(settings=BrokerSettings(limits=BrokerLimits(connections=1))) as broker, connected(broker) as first:
        assert asks(first)
        with connected(broker) as second:
            assert ended(second)
        assert asks(first)
        assert until(broker, "closed", bool) == ["there are 1 connections already"]


@pytest.mark.parametrize("name", ["max.connections", "max.connections.per.ip"])
def test_how_many_connections_there_may_be_is_altered_while_it_runs(name: str) -> None:
    with Broker() as broker, connected(broker) as first:
        assert asks(first)
        configs = broker.server.state.cluster.configs
        configs.change(BROKER, "1", [(name, SET, "1")])
        with connected(broker) as second:
            assert ended(second)
        configs.change(BROKER, "1", [(name, DELETE, None)])
        with connected(broker) as third:
            assert asks(third)
            assert asks(first)


@pytest.mark.parametrize("limits", [BrokerLimits(connections=3), BrokerLimits(per_ip=3)])
def test_connections_that_never_asked_make_room(limits: BrokerLimits) -> None:
    with Broker(settings=BrokerSettings(limits=limits)) as broker, connected(broker) as good:
        assert asks(good)
        idle = [connected(broker) for _ in range(20)]
        assert asks(good)
        with connected(broker) as late:
            assert asks(late)
        assert len(broker.server.connections) <= 3
        for sock in idle:
            sock.close()
    assert "already, and this one was idle" in " ".join(event.text for event in broker.events("closed"))


def test_the_connection_that_was_silent_for_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.broker.server.SILENT", 0.0)
    limits = BrokerLimits(connections=2)
    with (
        Broker(settings=BrokerSettings(limits=limits)) as broker,
        connected(broker) as first,
        connected(broker) as second,
    ):
        assert asks(first)
        assert asks(second)
        with connected(broker) as third:
            assert asks(third)
            assert ended(first)
            assert asks(second)


def test_unfinished_requests_of_three_lock_nobody_out() -> None:
    with Broker(settings=BrokerSettings(limits=BrokerLimits(unfinished=3 << 20))) as broker:
        held, kept = [connected(broker) for _ in range(3)], (1 << 20) - 200_000
        for count, sock in enumerate(held, 1):
            sock.sendall(pack(">i", 2 << 20) + bytes(kept))
            end = time.monotonic() + LATE
            while broker.server.unfinished.used < count * (kept + 4) and time.monotonic() < end:
                time.sleep(0.01)  # each has come as a whole before the next
        with connected(broker) as good:
            good.sendall(pack(">ihhih", 1_000_000, 0, 9, 1, -1) + bytes(900_000))
            assert ended(held[0])
            assert broker.server.unfinished.used <= 3 << 20
            with connected(broker) as other:
                assert asks(other)
        for sock in held:
            sock.close()


@pytest.mark.slow
def test_answers_that_nobody_reads_have_a_limit() -> None:
    with Broker(topics={"t": 1}, settings=BrokerSettings(limits=BrokerLimits(unsent=4 << 20))) as broker:
        records = build([(None, bytes(900_000))])
        for _ in range(4):
            broker.thread.call(lambda: broker.server.state.cluster.topics["t"].partitions[0].log.append(records, 0, 0))
        part = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 24}
        body = {"MaxBytes": 1 << 24, "Topics": [{"Topic": "t", "Partitions": [part]}]}
        fetch = pack(">hhih", 1, 4, 7, -1) + kwire.encode("FetchRequest", 4, body)
        greedy = [connected(broker) for _ in range(12)]
        for sock in greedy:
            sock.sendall(pack(">i", len(fetch)) + fetch)
        why = "of answers are not read; all connections together may hold 4,194,304"
        until(broker, "closed", lambda texts: any(why in text for text in texts))
        assert broker.server.unsent.used <= 4 << 20
        with connected(broker) as good:
            assert asks(good)
        for sock in greedy:
            sock.close()


def test_before_the_login_requests_are_small() -> None:
    with Broker(users={"u": "p"}) as broker, connected(broker) as sock:
        sock.sendall(pack(">i", 1 << 20))
        assert ended(sock)
        assert until(broker, "closed", bool) == ["a request of 1,048,576 bytes, the limit is 524,288"]


def test_large_requests_are_in_work_one_after_the_other(broker: Broker) -> None:
    topics = b"".join(pack(">h", 20) + b"%020d" % n for n in range(4_000))
    frame = pack(">hhih", 3, 4, 7, -1) + pack(">i", 4_000) + topics + b"\0"
    socks = [connected(broker) for _ in range(5)]
    with connected(broker) as good:
        for sock in socks:
            sock.sendall((pack(">i", len(frame)) + frame) * 2)
        assert asks(good)
        for sock in socks:
            for _ in range(2):
                size, correlation = unpack(">ii", exactly(sock, 8))
                assert len(exactly(sock, size - 4)) == size - 4
                assert correlation == 7
            sock.close()
    assert not broker.events("bug")


@pytest.mark.slow
def test_a_large_request_whose_client_goes_frees_its_place(broker: Broker) -> None:
    frame = pack(">hhih", 15, 0, 7, -1) + pack(">i", 40_000) + pack(">hc", 1, b"g") * 40_000
    for _ in range(3):
        with connected(broker) as sock:
            sock.sendall(pack(">i", len(frame)) + frame)
    with connected(broker) as sock:
        sock.sendall(pack(">i", len(frame)) + frame)
        assert unpack(">ii", exactly(sock, 8))[1] == 7


def test_a_client_that_does_not_read_is_not_served_further(broker: Broker) -> None:
    """Its requests pile up on its side of the connection, not in the broker."""
    topics = b"".join(pack(">h", 200) + b"%0200d" % n for n in range(200))
    frame = pack(">hhih", 3, 1, 7, -1) + pack(">i", 200) + topics
    with connected(broker) as sock, connected(broker) as good:
        sock.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            for _ in range(2_000):
                sock.sendall(pack(">i", len(frame)) + frame)
        assert asks(good)
        assert broker.server.unfinished.used < 4 << 20
        assert len(broker.requests("Metadata")) < 2_000
