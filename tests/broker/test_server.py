"""Sockets: what hostile and careless clients do ends their own connection and no other."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack, unpack
from typing import Any, cast

import pytest

import kwire
from kwire.broker.configs import BROKER, DELETE, SET
from kwire.broker.context import BrokerLimits, BrokerSettings
from kwire.broker.handle import Broker
from kwire.errors import KwireError
from kwire.records import build

METADATA = pack(">hhih", 3, 1, 7, -1) + pack(">i", 0)
LATE = 60.0  # seconds until a test gives up
LIMIT = "the limit is 104,857,600"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


def connected(broker: Broker) -> socket.socket:
    host, _, port = broker.address.rpartition(":")
    return socket.create_connection((host, int(port)), LATE)


def encrypted(broker: Broker) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connected(broker))


def exactly(sock: socket.socket, count: int) -> bytes:
    out = b""
    while len(out) < count:
        got = sock.recv(count - len(out))
        if not got:
            break
        out += got
    return out


def asks(sock: socket.socket) -> bool:
    """Whether Metadata is answered."""
    sock.sendall(pack(">i", len(METADATA)) + METADATA)
    head = exactly(sock, 8)
    return len(head) == 8 and exactly(sock, unpack(">ii", head)[0] - 4) != b""


def ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def until(broker: Broker, kind: str, wanted: Callable[[list[str]], bool]) -> list[str]:
    end = time.monotonic() + LATE
    while not wanted(texts := [event.text for event in broker.events(kind)]) and time.monotonic() < end:
        time.sleep(0.01)
    return texts


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", f"a request of 1,195,725,856 bytes, {LIMIT}; this is HTTP (GET), not Kafka"),
        (b"\x16\x03\x01\x00\xa5\x01\x00", f"a request of 369,295,616 bytes, {LIMIT}; this is TLS, not Kafka"),
        (b"\x7f\xff\xff\xff", f"a request of 2,147,483,647 bytes, {LIMIT}"),
        (b"\xff\xff\xff\xff", f"a request of -1 bytes, {LIMIT}"),
        (bytes(4), "a frame of 0 bytes is no request"),
        (pack(">ihhi", 8, 52, 0, 1), "API key 52 (Vote) is not served"),
        (pack(">ihhi", 8, 3, 99, 1), "Metadata v99 is not served, 0-13 are"),
    ],
)  # fmt: skip
def test_what_is_no_request_ends_its_connection_alone(broker: Broker, data: bytes, why: str) -> None:
    with connected(broker) as good, connected(broker) as bad:
        assert asks(good)
        bad.sendall(data)
        assert ended(bad)
        assert asks(good)
    assert why in until(broker, "closed", lambda texts: why in texts)


def test_random_bytes_hurt_nobody(broker: Broker) -> None:
    source = random.Random(3)
    with connected(broker) as good:
        for _ in range(60):
            with connected(broker) as bad, contextlib.suppress(OSError):
                size = source.randrange(60)
                head = pack(">i", size) if source.random() < 0.7 else source.randbytes(4)
                bad.sendall(head + pack(">hh", source.randrange(80), source.randrange(12)) + source.randbytes(size))
        assert asks(good)
    assert not broker.events("bug")


def test_half_a_frame_and_a_slow_one(broker: Broker) -> None:
    with connected(broker) as half, connected(broker) as slow:
        half.sendall(pack(">i", 1000) + b"x" * 10)
        for byte in pack(">i", len(METADATA)) + METADATA:
            slow.sendall(bytes((byte,)))
        assert unpack(">i", exactly(slow, 4))[0] > 4


def test_answers_come_in_the_order_of_their_requests(broker: Broker) -> None:
    broker.fault("Metadata:delay=100ms,times=1")
    with connected(broker) as sock:
        frames = [pack(">hhih", 3, 1, number, -1) + pack(">i", 0) for number in (1, 2, 3)]
        sock.sendall(b"".join(pack(">i", len(frame)) + frame for frame in frames))
        found = []
        for _ in frames:
            size, correlation = unpack(">ii", exactly(sock, 8))
            exactly(sock, size - 4)
            found.append(correlation)
    assert found == [1, 2, 3]


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


def test_a_capture_of_all_that_was_said(tmp_path: Path) -> None:
    path = tmp_path / "said.pcapng"
    with Broker(capture=path, topics={"t": 1}) as broker:
        with connected(broker) as sock:
            assert asks(sock)
            assert asks(sock)
        until(broker, "closed", bool)
    found = list(kwire.read(path))
    assert [(e.request is not None, e.response is not None and e.response.quality) for e in found] == [(True, "ok")] * 2


def test_tls_with_a_certificate_made_on_the_spot() -> None:
    pytest.importorskip("cryptography")
    with Broker(tls=True) as broker:
        context = ssl.create_default_context(cadata=broker.certificate)
        assert Path(broker.certificate_file).read_text() == broker.certificate
        with connected(broker) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            assert asks(sock)
        with connected(broker) as plain:
            plain.sendall(pack(">i", len(METADATA)) + METADATA)
            plain.shutdown(socket.SHUT_WR)
            while plain.recv(100):
                pass
        with connected(broker) as plain, context.wrap_socket(plain, server_hostname="localhost") as sock:
            assert asks(sock)


def test_a_port_that_is_taken_is_an_error(broker: Broker) -> None:
    port = int(broker.address.rpartition(":")[2])
    with pytest.raises(OSError, match=f"127.0.0.1:{port} is taken by another program") as error:
        Broker(port=port).start()
    assert error.value.errno == errno.EADDRINUSE


def test_a_host_that_is_not_ours_is_an_error() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:0: "):
        Broker(settings=BrokerSettings(host="192.0.2.1")).start()


def test_ports_beyond_the_last_are_an_error() -> None:
    with pytest.raises(KwireError, match="no port 65536 for node 2"):
        Broker(nodes=2, port=65535).start()


def test_nodes_have_ports_of_their_own() -> None:
    with Broker(nodes=3) as broker:
        assert len(set(broker.addresses)) == 3
        for address in broker.addresses:
            with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), LATE) as sock:
                assert asks(sock)


def test_ipv6(tmp_path: Path) -> None:
    path = tmp_path / "six.pcapng"
    try:
        broker = Broker(settings=BrokerSettings(host="::1"), capture=path).start()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with broker:
        assert broker.address.startswith("[::1]:")
        with socket.create_connection(("::1", int(broker.address.rpartition(":")[2])), LATE) as sock:
            assert asks(sock)
    (exchange,) = kwire.read(path)
    assert (exchange.api, exchange.error) == ("Metadata", None)


def test_a_failure_outside_of_a_request_is_told(broker: Broker) -> None:
    def broken() -> None:
        raise RuntimeError("in a timer")

    broker.server.loop.call_soon_threadsafe(broken)
    assert until(broker, "bug", bool) == ["RuntimeError: in a timer"]
    with connected(broker) as sock:
        assert asks(sock)


def test_a_bug_ends_one_connection_and_is_told(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("on purpose")

    with connected(broker) as sock:
        assert asks(sock)
        monkeypatch.setattr(broker.server.service, "serve", broken)
        sock.sendall(pack(">i", len(METADATA)) + METADATA)
        assert ended(sock)
        monkeypatch.undo()
    with connected(broker) as sock:
        assert asks(sock)
    assert [event.text for event in broker.events("bug")] == ["RuntimeError: on purpose"]


@pytest.mark.parametrize("how", ["plain", "TLS", "TLS that says so"])
@pytest.mark.parametrize("count", [1, 1_000])
def test_what_a_client_sends_before_it_goes_is_served(count: int, how: str) -> None:
    """Produce that wants no answer, and a close right behind it: as Kafka's Selector, which ends a connection when what
    came of it is done."""
    with Broker(topics={"t": 1}, tls=how != "plain") as broker:
        body: dict[str, Any] = {"TransactionalId": None, "Acks": 0, "TimeoutMs": 1000}
        body["TopicData"] = [{"Name": "t", "PartitionData": [{"Index": 0, "Records": build([(None, b"x")])}]}]
        frame = pack(">hhih", 0, 7, 7, -1) + kwire.encode("ProduceRequest", 7, body)
        with connected(broker) if how == "plain" else encrypted(broker) as sock:
            sock.sendall((pack(">i", len(frame)) + frame) * count)
            if how == "TLS that says so":
                with contextlib.suppress(OSError):
                    cast(ssl.SSLSocket, sock).unwrap()
            else:
                sock.shutdown(socket.SHUT_WR)
            until(broker, "closed", bool)
        assert broker.thread.call(lambda: broker.server.state.cluster.topics["t"].partitions[0].log.end) == count
        assert broker.events("closed")[0].text == "by the client"


def test_a_client_that_goes_while_its_answer_waits_ends_at_once() -> None:
    with Broker(topics={"t": 1}) as broker:
        part = {"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1 << 20}
        body: dict[str, Any] = {"MaxWaitMs": 2_000_000_000, "MinBytes": 1, "MaxBytes": 1 << 20}
        body |= {"Topics": [{"Topic": "t", "Partitions": [part]}]}
        fetch = pack(">hhih", 1, 4, 7, -1) + kwire.encode("FetchRequest", 4, body)
        with connected(broker) as sock:
            sock.sendall((pack(">i", len(fetch)) + fetch) * 2)
            while not broker.requests("Fetch"):
                time.sleep(0.01)
        assert until(broker, "closed", bool) == ["by the client"]
