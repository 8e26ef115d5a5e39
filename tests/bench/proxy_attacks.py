"""Attacks on the proxy, by name, for hostile_proxy.py: clients that mean harm, and a broker that does.

The hostile broker is one that the cluster itself names, so that it gets a port of the proxy like every other; its
clients only ask.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import pack

from broker_client import MB, Attack, again, frame, produce_body

from kwire.wire.varint import write_uvarint

Answer = Callable[[bytes], Iterator[bytes]]
TOKEN = b"\0ann\0hunter2"


@dataclass(frozen=True)
class ProxyAttack:
    """clients: what they do to the proxy's first port; or answer: what a hostile broker says to each request that they
    send to its own. options: of kwire proxy."""

    clients: Attack
    answer: Answer | None = None
    options: tuple[str, ...] = ()


# ---------------------------------------------------------------- clients


def claims(_: int) -> Iterator[bytes]:
    """The beginning of a frame of 100 MB that must be looked through, and then hardly anything."""
    yield pack(">ihhih", 100 * MB, 36, 1, 7, -1) + TOKEN
    for _ in range(90):
        yield bytes(MB)
    while True:
        time.sleep(0.2)
        yield b"\0"


def drips(_: int) -> Iterator[bytes]:
    """A header, byte by byte."""
    data = frame("Metadata", 9, {"Topics": None}, "x" * 30_000)
    while True:
        for byte in data:
            yield bytes([byte])
            time.sleep(0.001)


def greetings(number: int) -> Iterator[bytes]:
    yield (b"GET / HTTP/1.1\r\n\r\n", pack(">i", -1), pack(">i", (1 << 31) - 1), pack(">ih", 2, 3))[number % 4]
    time.sleep(0.01)
    raise OSError  # and anew


def sized(_: int) -> Iterator[bytes]:
    """Produce requests of 50 MB."""
    yield frame("Produce", 9, produce_body("good", bytes(50 * MB)))


def escapes(number: int) -> Iterator[bytes]:
    """Requests whose names would take over a terminal, each with other ones."""
    while True:
        for count in range(100):
            topic = f"\x1b]0;{number}.{count}\x07\x1b[2J\u202e" + "x" * 200
            yield frame("Metadata", 1, {"Topics": [{"Name": topic}]}, topic)


# ---------------------------------------------------------------- brokers


def sized_answer(correlation: bytes, body: bytes) -> bytes:
    return pack(">i", len(correlation) + len(body)) + correlation + body


def million_brokers(request: bytes) -> Iterator[bytes]:
    """Metadata v1 with a million brokers."""
    broker = pack(">ih1sih", 1, 1, b"h", 9092, -1)
    yield sized_answer(request[8:12], pack(">i", 1_000_000) + broker * 1_000_000 + bytes(10))


def claimed_brokers(request: bytes) -> Iterator[bytes]:
    yield sized_answer(request[8:12], pack(">i", (1 << 31) - 1) + bytes(1_000))


def new_names(request: bytes) -> Iterator[bytes]:
    """Brokers with names of 30,000 characters, never the same, that would take over a terminal."""
    rows = b""
    for number in range(20):
        name = f"\x1b[2J{time.monotonic_ns()}.{number}".encode().ljust(30_000, b"x")
        rows += pack(">ih", number, len(name)) + name + pack(">ih", 9092, -1)
    yield sized_answer(request[8:12], pack(">i", 20) + rows + pack(">iii", 1, 0, 0)[:10])


def large_versions(request: bytes) -> Iterator[bytes]:
    """ApiVersions v0 with seven million APIs."""
    yield sized_answer(request[8:12], pack(">hi", 0, 7_000_000) + b"\0\3\0\0\0\1" * 7_000_000)


def many_partitions(request: bytes) -> Iterator[bytes]:
    """Fetch v16 with three million partitions of which none says anything."""
    partition = pack(">ihqqq", 1, 0, 1, 1, 1) + b"\0" + pack(">i", -1) + b"\1\0"
    topic = bytes(16) + write_uvarint(3_000_001 // 2) + partition * (3_000_000 // 2) + b"\0"
    yield sized_answer(request[8:12] + b"\0", pack(">ihi", 0, 0, 0) + b"\2" + topic + b"\0")


def never_whole(request: bytes) -> Iterator[bytes]:
    """Metadata of 100 MB, of which the last byte never comes."""
    yield pack(">i", 100 * MB) + request[8:12]
    for _ in range(99):
        yield bytes(MB)
    time.sleep(600)


def not_asked(request: bytes) -> Iterator[bytes]:
    yield sized_answer(request[8:12], bytes(10)) * 1_000


def mute(_: bytes) -> Iterator[bytes]:
    """Reads no more."""
    time.sleep(600)
    yield b""


def serve(answer: Answer) -> str:
    """A broker in threads of this process that answers so; its address."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=200)

    def talk(peer: socket.socket) -> None:
        held = b""
        try:
            while data := peer.recv(65_536):
                held += data
                while len(held) >= 4 and len(held) >= 4 + int.from_bytes(held[:4]):
                    size = 4 + int.from_bytes(held[:4])
                    request, held = held[:size], held[size:]
                    for piece in answer(request):
                        peer.sendall(piece)
        except OSError:
            pass
        finally:
            peer.close()

    def accept() -> None:
        while True:
            peer, _ = listening.accept()
            threading.Thread(target=talk, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"127.0.0.1:{listening.getsockname()[1]}"


def asks(api: str, version: int, answer: Answer, threads: int = 3) -> ProxyAttack:
    """Clients that ask a hostile broker this, over and over."""
    body = {"Topics": None} if api == "Metadata" else {}
    return ProxyAttack(Attack(again(api, version, body), threads), answer)


CAPTURE = ("--capture", "said.pcapng", "--capture-limit", "64")
LARGE_FETCH = {"MaxWaitMs": 10, "MinBytes": 1, "MaxBytes": 60 * MB, "Topics": [
    {"Topic": "good", "Partitions": [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 60 * MB}]}]}  # fmt: skip
ATTACKS: dict[str, ProxyAttack] = {
    "nobody": ProxyAttack(Attack(drips, threads=0)),
    "sizes that are claimed, and a capture": ProxyAttack(Attack(claims, 60, unanswered=True), options=CAPTURE),
    "headers byte by byte on 300 connections": ProxyAttack(Attack(drips, 300, unanswered=True)),
    "what is no Kafka, 50 connections at a time": ProxyAttack(Attack(greetings, 50, unanswered=True)),
    "Produce of 50 MB on 20 connections": ProxyAttack(Attack(sized, 20)),
    "Fetch that nobody reads": ProxyAttack(Attack(again("Fetch", 4, LARGE_FETCH), 50, reads=False)),
    "ApiVersions that nobody reads": ProxyAttack(Attack(again("ApiVersions", 0, {}), 50, reads=False)),
    "names that take over terminals": ProxyAttack(Attack(escapes, 3)),
    "an error for large requests": ProxyAttack(
        Attack(sized, 20), options=("--fault", "Produce,client=attacker:error=NOT_LEADER_OR_FOLLOWER")
    ),
    "a broker that names a million brokers": asks("Metadata", 1, million_brokers),
    "a broker that claims 2^31 brokers": asks("Metadata", 1, claimed_brokers),
    "a broker that names new brokers all the time": asks("Metadata", 1, new_names),
    "a broker with seven million APIs": asks("ApiVersions", 0, large_versions),
    "a broker with 1.5 million partitions in a Fetch": asks("Fetch", 16, many_partitions),
    "a broker whose answers never end": asks("Metadata", 1, never_whole, 30),
    "a broker that answers what nobody asked": asks("Metadata", 1, not_asked),
    "a broker that does not read": ProxyAttack(Attack(sized, 20, reads=False), mute),
}
