"""Bare sockets to the embedded broker: what a client does that speaks no better."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from struct import pack, unpack

from kwire.broker.handle import Broker

METADATA = pack(">hhih", 3, 1, 7, -1) + pack(">i", 0)
LATE = 60.0  # seconds until a test gives up


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
