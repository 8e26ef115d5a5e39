"""What hostile peers cost the proxy: bounds on memory and on what is gone through, never on time."""

from __future__ import annotations

import io
import socket
import ssl
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from struct import pack

import pytest

from kwire.client.address import Address
from kwire.proxy.connection import FRAMES
from kwire.proxy.link import PendingRequest
from kwire.proxy.rewrite import edits
from kwire.proxy.types import PeerRefused, ProxyLimits, ProxySettings
from kwire.testing import Broker, Proxy
from kwire.wire.varint import write_uvarint

METADATA = pack(">ihhih", 14, 3, 1, 7, -1) + pack(">i", -1)


def sized(body: bytes) -> bytes:
    return pack(">ii", 4 + len(body), 7) + body


def brokers(count: int) -> bytes:
    return sized(pack(">i", count) + pack(">ih1sih", 1, 1, b"h", 9092, -1) * count + bytes(10))


def partitions(count: int) -> bytes:
    partition = pack(">ihqqq", 1, 0, 1, 1, 1) + b"\0" + pack(">i", -1) + b"\1\0"
    return sized(
        b"\0" + pack(">ihi", 0, 0, 0) + b"\2" + bytes(16) + write_uvarint(count + 1) + partition * count + b"\0\0"
    )


def peak(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("asked", "frame", "why"),
    [
        (PendingRequest(3, 1, 7), brokers(200_000), "too many elements up to Brokers"),
        (PendingRequest(3, 1, 7), sized(pack(">i", (1 << 31) - 1) + bytes(1_000)), "goes on beyond the end"),
        (PendingRequest(1, 16, 7), partitions(600_000), "too many elements up to NodeEndpoints"),
        (
            PendingRequest(18, 0, 7),
            sized(pack(">hi", 0, 300_000) + b"\0\3\0\0\0\1" * 300_000),
            "more than anybody needs",
        ),
        (PendingRequest(3, 1, 7), sized(b""), "cannot be read"),
        (PendingRequest(1, 16, 7), sized(b"\0" + bytes(10) + b"\1\1\0\xff\xff\xff\x0f"), "it ends too early"),
    ],
)
def test_answers_made_to_be_expensive_are_refused_without_being_decoded(
    asked: PendingRequest, frame: bytes, why: str
) -> None:
    edit = edits(lambda *_: ("here", 1)).response(asked)
    assert edit is not None

    def act() -> None:
        with pytest.raises(PeerRefused, match=why):
            edit(frame)

    act()
    assert peak(act) < 200_000


def test_only_the_addresses_of_a_large_answer_are_decoded() -> None:
    """100,000 partitions without a replica, behind one broker."""
    partition = pack(">hiiii", 0, 1, 1, 0, 0)
    topic = pack(">hh1sb", 0, 1, b"t", 0) + pack(">i", 100_000) + partition * 100_000
    frame = sized(pack(">i", 1) + pack(">ih1sih", 1, 1, b"h", 9092, -1) + pack(">ii", 1, 1) + topic)
    edit = edits(lambda *_: ("there", 1)).response(PendingRequest(3, 1, 7))
    assert edit is not None
    made: list[object] = []
    assert peak(lambda: made.append(edit(frame))) < len(frame) + 100_000
    (changed,) = made
    assert isinstance(changed, bytes)
    assert (changed[:4], changed[-len(topic) :]) == (pack(">i", len(frame)), topic)
    assert b"there" in changed


def test_frames_that_never_end_are_bounded_on_all_connections_together() -> None:
    """A broker whose answers must be held whole."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        limits = ProxyLimits(held=4 << 20)
        settings = ProxySettings(
            (Address("127.0.0.1", listening.getsockname()[1]),), Address("127.0.0.1", 0), limits=limits
        )
        with Proxy(settings=settings) as proxy:
            clients, peers = [], []
            for _ in range(8):
                clients.append(socket.create_connection(("127.0.0.1", int(proxy.address.rpartition(":")[2])), 60))
                clients[-1].sendall(METADATA)
                peers.append(listening.accept()[0])
                peers[-1].recv(100)
            for peer in peers:
                with suppress(OSError):
                    peer.sendall(pack(">ii", 100 << 20, 7) + bytes(1 << 20))
            until = time.monotonic() + 60
            while len(proxy.events("refused")) < 4 and time.monotonic() < until:
                time.sleep(0.01)
            assert len(proxy.events("refused")) >= 4
            assert sum(pair.link.held for pair in proxy.server.pairs) <= limits.held
            assert all("wait for the rest of their frame" in each.text for each in proxy.events("refused"))
            for sock in (*clients, *peers):
                sock.close()


def test_whole_answers_that_nobody_takes_are_bounded_on_all_connections_together() -> None:
    """Answers that were held to be looked at, and then lie about: the sockets take some of it."""
    limits, answer = ProxyLimits(unsent=4 << 20), brokers(1)[:-10] + bytes(12 << 20)
    answer = pack(">i", len(answer) - 4) + answer[4:]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = ProxySettings(
            (Address("127.0.0.1", listening.getsockname()[1]),), Address("127.0.0.1", 0), limits=limits
        )
        with Proxy(settings=settings) as proxy:
            clients, peers = [], []
            for _ in range(4):
                clients.append(socket.socket())
                clients[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 10)
                clients[-1].connect(("127.0.0.1", int(proxy.address.rpartition(":")[2])))
                clients[-1].sendall(METADATA)
                peers.append(listening.accept()[0])
                peers[-1].recv(100)
                with suppress(OSError):
                    peers[-1].sendall(answer)
            until = time.monotonic() + 60
            while len(proxy.events("refused")) < 4 and time.monotonic() < until:
                time.sleep(0.01)
            assert sum(pair.unsent for pair in list(proxy.server.pairs)) <= limits.unsent
            assert "bytes are not taken; all connections together may hold 4,194,304" in proxy.events("refused")[0].text
            for sock in (*clients, *peers):
                sock.close()


def test_a_flood_of_small_requests_is_gone_through_as_far_as_there_is_room() -> None:
    """A broker that reads and says nothing, and a client that asks on and on."""
    limits = ProxyLimits()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings = ProxySettings((Address("127.0.0.1", listening.getsockname()[1]),), Address("127.0.0.1", 0))
        with (
            Proxy(settings=settings) as proxy,
            socket.create_connection(("127.0.0.1", int(proxy.address.rpartition(":")[2])), 60) as client,
        ):
            peer = listening.accept()[0]
            client.sendall(METADATA * 4_000)
            got = b""
            while len(got) < limits.pipelined * len(METADATA):
                got += peer.recv(1 << 20)
            (pair,) = proxy.server.pairs
            assert len(got) < (limits.pipelined + FRAMES) * len(METADATA)
            assert len(pair.link.waiting) < limits.pipelined + FRAMES
            assert len(pair.client.came) <= 1
            peer.close()


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\xff\xff" + bytes(1_000),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x02\x28",
        bytes(500),
        METADATA,
    ],
)
def test_corrupt_tls_ends_alone(said: bytes) -> None:
    pytest.importorskip("cryptography", reason="certificates need it")
    from kwire.broker.tls import context

    inward, pem = context("127.0.0.1")
    trusting = ssl.create_default_context(cadata=pem)
    with Broker() as broker, Proxy(broker.address, tls=inward) as proxy:
        where = ("127.0.0.1", int(proxy.address.rpartition(":")[2]))
        with trusting.wrap_socket(socket.create_connection(where, 60), server_hostname="127.0.0.1") as good:
            with socket.create_connection(where, 60) as bad:
                bad.sendall(said)
                bad.shutdown(socket.SHUT_WR)
                while bad.recv(1_000):
                    pass
            good.sendall(METADATA)
            assert good.recv(10)
        assert proxy.events("bug") == []


def test_names_with_control_characters_are_not_obeyed() -> None:
    from kwire.cli.notices import Notices
    from kwire.cli.proxy import NoticePrinter
    from kwire.proxy.types import Notice

    stream = io.StringIO()
    told = NoticePrinter(Notices(stream))
    told(Notice("unreachable", "\x1b[2Jhost", "no address\x07\nforged line"))
    told.close()
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
