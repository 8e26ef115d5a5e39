"""The proxy in front of the embedded broker: every broker behind a port, nothing goes around, hostile peers alone."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from struct import pack
from typing import Any

import pytest

import kwire
from kwire.client.address import Address
from kwire.codec.library import builtin_library
from kwire.errors import KwireError
from kwire.proxy.types import ProxyLimits, ProxySettings
from kwire.testing import Broker, Proxy

MUCH = 4_000_000  # requests, more than sockets hold
METADATA = pack(">ihhih", 14, 3, 1, 7, -1) + pack(">i", -1)


def exactly(sock: socket.socket, size: int) -> bytes:
    out = b""
    while len(out) < size:
        got = sock.recv(size - len(out))
        if not got:
            raise ConnectionError("closed")
        out += got
    return out


def ask(sock: socket.socket, frame: bytes = METADATA) -> bytes:
    sock.sendall(frame)
    size = exactly(sock, 4)
    return size + exactly(sock, int.from_bytes(size))


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 60)


def brokers(answer: bytes) -> list[str]:
    body: Any = builtin_library().codec("MetadataResponse", 1).decode(answer[8:])
    return [f"{each['Host']}:{each['Port']}" for each in body["Brokers"]]


def test_every_broker_gets_a_port_and_clients_are_told_it() -> None:
    with Broker(nodes=3) as broker, Proxy(broker.address) as proxy:
        with connect(proxy.address) as sock:
            told = brokers(ask(sock))
        assert set(told).isdisjoint(broker.addresses)
        assert proxy.brokers == dict(zip(broker.addresses, told, strict=True))
        assert told[0] == proxy.address
        for address in told:
            with connect(address) as sock:
                assert brokers(ask(sock)) == told


def test_the_capture_has_both_sides(tmp_path: Path) -> None:
    target = tmp_path / "c.pcapng"
    with Broker() as broker, Proxy(broker.address, capture=target) as proxy, connect(proxy.address) as sock:
        ask(sock)
        near, far = proxy.address, broker.address
    exchanges = list(kwire.read(target))
    assert sorted(exchange.connection.ends[1] for exchange in exchanges) == sorted([near, far])
    assert {exchange.api for exchange in exchanges} == {"Metadata"}
    assert all(exchange.response is not None for exchange in exchanges)


def test_a_hostile_client_ends_alone() -> None:
    with Broker() as broker, Proxy(broker.address) as proxy, connect(proxy.address) as good:
        ask(good)
        with connect(proxy.address) as bad:
            bad.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert bad.recv(100) == b""
        ask(good)
        (refused,) = proxy.events("refused")
        assert refused.text.endswith("this is HTTP (GET), not Kafka")


def test_a_broker_that_is_not_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Proxy(f"127.0.0.1:{port}") as proxy:
        with pytest.raises(ConnectionResetError), connect(proxy.address) as sock:
            sock.recv(1)  # franz-go would take an end in peace for a login refused
        (event,) = proxy.events("unreachable")
        assert event.text == f"127.0.0.1:{port}: Connection refused"


@pytest.mark.parametrize("said", [b"", pack(">ii", 5, 7)])
def test_a_broker_that_is_reset_resets_its_client(said: bytes) -> None:
    """As when it is killed with requests that it has not read."""
    with socket.create_server(("127.0.0.1", 0)) as killed, Proxy(f"127.0.0.1:{killed.getsockname()[1]}") as proxy:
        killed.settimeout(60)
        with connect(proxy.address) as sock:
            sock.sendall(METADATA)
            with killed.accept()[0] as there:
                assert there.recv(1)
                there.sendall(said)
                there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
            with pytest.raises(ConnectionResetError):
                exactly(sock, 100)


def test_several_upstreams_are_tried_in_their_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Broker() as broker, Proxy(f"127.0.0.1:{port},{broker.address}") as proxy, connect(proxy.address) as sock:
        assert len(brokers(ask(sock))) == 1


def test_a_silent_connection_makes_room() -> None:
    with Broker() as broker:
        settings = ProxySettings((), Address("127.0.0.1", 0), limits=ProxyLimits(connections=2))
        with (
            Proxy(broker.address, settings=settings) as proxy,
            connect(proxy.address) as asking,
            connect(proxy.address) as silent,
        ):
            ask(asking)
            with connect(proxy.address) as third:
                ask(third)
                ask(asking)
            with pytest.raises((ConnectionError, AssertionError)):
                assert silent.recv(1)


@pytest.mark.slow
def test_a_slow_reader_is_not_buffered_without_end() -> None:
    """Back-pressure: what a client does not take stays with the broker."""
    with Broker(topics={"t": 1}) as broker, Proxy(broker.address) as proxy, connect(proxy.address) as sock:
        sock.settimeout(2)
        asked = 0
        try:
            while asked < MUCH:
                sock.sendall(METADATA * 10_000)
                asked += 10_000
        except TimeoutError:
            pass
        server = proxy.server
        ends = [end for pair in server.pairs for end in (pair.client, pair.broker)]
        buffered = sum(end.transport.get_write_buffer_size() for end in ends)
        assert asked < MUCH
        assert buffered < 4 * server.limits.buffered


def test_what_is_misused_is_explained() -> None:
    with pytest.raises(KwireError, match="this proxy has not been started"):
        _ = Proxy("127.0.0.1:9").address
    with pytest.raises(KwireError, match="no broker's address"):
        Proxy("a b")
    with Proxy("127.0.0.1:9") as proxy, pytest.raises(KwireError, match="this proxy runs already"):
        proxy.start()


def test_tls_on_both_sides_and_plain_text_in_the_capture(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="certificates need it")
    import ssl

    from kwire.broker.tls import context
    from kwire.client.security import Security

    inward, pem = context("127.0.0.1")
    target = tmp_path / "c.pcapng"
    with Broker(tls=True) as broker:
        outward = Security(True, Path(broker.certificate_file)).context()
        with Proxy(broker.address, capture=target, tls=inward, upstream_tls=outward) as proxy:
            trusting = ssl.create_default_context(cadata=pem)
            with connect(proxy.address) as plain, trusting.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
                assert brokers(ask(sock)) == [proxy.address]
    assert [exchange.api for exchange in kwire.read(target)] == ["Metadata"] * 2


def test_a_broker_whose_certificate_is_not_trusted_is_said() -> None:
    pytest.importorskip("cryptography", reason="certificates need it")
    from kwire.client.security import Security

    with Broker(tls=True) as broker:
        outward = Security(True).context()
        with Proxy(broker.address, upstream_tls=outward) as proxy:
            with pytest.raises(ConnectionResetError), connect(proxy.address) as sock:
                sock.recv(1)
            (event,) = proxy.events("unreachable")
            assert "certificate not trusted" in event.text


def beat(correlation: int) -> bytes:
    frame = pack(">hhih", 12, 0, correlation, -1) + pack(">h1sih1s", 1, b"g", 1, 1, b"m")
    return pack(">i", len(frame)) + frame


def test_faults_and_requests(tmp_path: Path) -> None:
    target = tmp_path / "c.pcapng"
    with Broker() as broker, Proxy(broker.address, faults=["Heartbeat:delay=50ms"], capture=target) as proxy:
        with connect(proxy.address) as sock:
            sock.sendall(beat(1) + METADATA + beat(2))
            answers = [exactly(sock, int.from_bytes(exactly(sock, 4)))[:4] for _ in range(3)]
            assert [int.from_bytes(each) for each in answers] == [1, 7, 2]
            proxy.fault("Heartbeat:drop=after,times=1")
            sock.sendall(beat(3))
            ask(sock)
            proxy.fault("Heartbeat:error=27")
            assert ask(sock, beat(4))[8:10] == pack(">h", 27)
            proxy.faults.clear()
            with proxy.control("Metadata", lambda _: "cut"):
                sock.sendall(METADATA)
                assert sock.recv(1) == b""
        assert [seen.api for seen in proxy.requests()] == [
            "Heartbeat", "Metadata", "Heartbeat", "Heartbeat", "Metadata", "Heartbeat", "Metadata",
        ]  # fmt: skip
        assert len(proxy.requests("Heartbeat")) == 4
        assert len(broker.requests("Heartbeat")) == 3
        assert proxy.events("fault")[0].text == "Heartbeat: Heartbeat:delay=50ms"
    near = [each for each in kwire.read(target) if each.connection.ends[1] == proxy.address]
    assert [each.response is None for each in near] == [False, False, False, True, False, False, True]


def test_an_answer_that_waits_comes_though_the_broker_is_gone() -> None:
    with Broker() as broker, Proxy(broker.address, faults=["Metadata:delay=300ms"]) as proxy:
        broker.fault("Heartbeat:cut")
        with connect(proxy.address) as sock:
            sock.sendall(METADATA + beat(1))
            assert len(exactly(sock, int.from_bytes(exactly(sock, 4)))) > 20
            assert sock.recv(1) == b""


def test_a_paused_broker_is_silent_on_all_connections_until_the_rule_is_cleared() -> None:
    with Broker(nodes=2) as broker, Proxy(broker.address) as proxy, connect(proxy.address) as one:
        others = [each for each in brokers(ask(one)) if each != proxy.address]
        with connect(others[0]) as two, connect(proxy.address) as third:
            ask(two)
            proxy.fault("node=1:pause")
            for sock in (one, third):
                sock.settimeout(0.3)
                sock.sendall(METADATA)
                with pytest.raises(TimeoutError):
                    sock.recv(1)
            ask(two)
            proxy.faults.clear()
            for sock in (one, third):
                sock.settimeout(60)
                size = exactly(sock, 4)
                assert len(brokers(size + exactly(sock, int.from_bytes(size)))) == 2


def test_a_half_open_connection_stays_and_is_over_with_its_client() -> None:
    with Broker() as broker, Proxy(broker.address) as proxy:
        with connect(proxy.address) as sock:
            ask(sock)
            proxy.fault("Metadata:half-open,times=1")
            sock.settimeout(0.3)
            for _ in range(2):
                sock.sendall(METADATA)
                with pytest.raises(TimeoutError):
                    sock.recv(1)
            assert proxy.events("closed") == []
            until = time.monotonic() + 60
            while not broker.events("closed") and time.monotonic() < until:
                time.sleep(0.01)
            assert broker.events("closed")
            with connect(proxy.address) as other:
                ask(other)
        until = time.monotonic() + 60
        while len(proxy.events("closed")) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(proxy.events("closed")) == 2


def test_clients_are_sent_elsewhere() -> None:
    with Broker(nodes=2) as broker, Proxy(broker.address) as proxy, connect(proxy.address) as sock:
        first, _ = brokers(ask(sock))
        proxy.fault("node=2:advertise=nowhere.example:1")
        assert brokers(ask(sock)) == [first, "nowhere.example:1"]


@pytest.mark.slow
def test_who_does_not_read_answers_made_here_is_not_buffered_without_end() -> None:
    with (
        Broker() as broker,
        Proxy(broker.address, faults=["Metadata:error=7"]) as proxy,
        connect(proxy.address) as sock,
    ):
        sock.settimeout(2)
        with pytest.raises(TimeoutError):
            sock.sendall(METADATA * MUCH)
        server = proxy.server
        unsent = sum(pair.client.transport.get_write_buffer_size() for pair in server.pairs)
        assert unsent < 2 * server.limits.buffered


def test_its_faults_are_changed_through_a_socket(tmp_path: Path) -> None:
    from kwire.broker.control import ask as tell

    with Broker() as broker, Proxy(broker.address, control=tmp_path / "c") as proxy, connect(proxy.address) as sock:
        tell(tmp_path / "c", {"do": "add", "rule": "Heartbeat:error=27"})
        assert ask(sock, beat(1))[8:10] == pack(">h", 27)
        (rule,) = tell(tmp_path / "c", {"do": "list"})["rules"]
        assert (rule["came"], rule["met"]) == (1, 1)
        with pytest.raises(KwireError, match="only a broker can expire"):
            tell(tmp_path / "c", {"do": "add", "rule": "Heartbeat:expire"})
    assert not (tmp_path / "c").exists()
