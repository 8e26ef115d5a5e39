"""Sockets: what hostile and careless clients do ends their own connection and no other."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from struct import pack, unpack
from typing import Any, cast

import pytest
from rawsockets import LATE, METADATA, asks, connected, encrypted, ended, exactly, until

import kwire
from kwire.broker.context import BrokerSettings
from kwire.broker.handle import Broker
from kwire.errors import KwireError
from kwire.records import build

LIMIT = "the limit is 104,857,600"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


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
