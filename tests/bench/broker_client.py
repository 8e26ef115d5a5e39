"""A client that says what it is told to, and what an attack on the broker is made of."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from struct import pack, unpack_from
from typing import Any

from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.records import build

MB = 1 << 20
Body = dict[str, Any]


def frame(api: str, version: int, body: Body, client: str = "attacker", correlation: int = 7) -> bytes:
    """A request with its size in front; fields that body lacks get their defaults."""
    library = builtin_library()
    message = library.message(f"{api}Request")
    key = library.registry.find(api).definition.key
    assert key is not None
    head = {"RequestApiKey": key, "RequestApiVersion": version, "CorrelationId": correlation, "ClientId": client}
    codec = library.codec(f"{api}Request", version)
    data = library.codec("RequestHeader", request_header_version(key, version, message)).encode(head)
    data += codec.encode_fitted(body)
    return pack(">i", len(data)) + data


class Client:
    """A connection that asks and waits for the answer."""

    def __init__(self, address: str, name: str, patience: float) -> None:
        host, _, port = address.rpartition(":")
        self.name = name
        self.sock = socket.create_connection((host, int(port)), patience)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exactly(self, size: int) -> bytes:
        out = bytearray()
        while len(out) < size:
            got = self.sock.recv(min(size - len(out), MB))
            if not got:
                raise ConnectionError("the broker ended it")
            out += got
        return bytes(out)

    def answer(self) -> bytes:
        """The next answer without its size."""
        return self.exactly(unpack_from(">i", self.exactly(4))[0])

    def ask(self, api: str, version: int, body: Body) -> Any:
        self.sock.sendall(frame(api, version, body, self.name))
        data = self.answer()
        library = builtin_library()
        message = library.message(f"{api}Response")
        key = library.registry.find(api).definition.key
        assert key is not None
        return library.codec(f"{api}Response", version).decode(
            data[4 + response_header_version(key, version, message) :]
        )

    def joined(self, group: str) -> tuple[str, int]:
        """Member id and generation in a group of one."""
        body = {"GroupId": group, "SessionTimeoutMs": 60_000, "RebalanceTimeoutMs": 1_000, "MemberId": ""}
        body |= {"ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": b""}]}
        body["MemberId"] = self.ask("JoinGroup", 6, body)["MemberId"]
        generation = self.ask("JoinGroup", 6, body)["GenerationId"]
        assigned = [{"MemberId": body["MemberId"], "Assignment": b""}]
        self.ask("SyncGroup", 4, {"GroupId": group, "GenerationId": generation, "MemberId": body["MemberId"],
                                  "Assignments": assigned})  # fmt: skip
        return str(body["MemberId"]), int(generation)


@dataclass(frozen=True)
class Attack:
    """frames: what a connection sends, given its number; it ends or goes on for ever. reads: it waits for each answer,
    else it never reads. setup: done once before, by a client. many: connections that only stay open."""

    frames: Callable[[int], Iterator[bytes]]
    threads: int = 3
    reads: bool = True
    setup: Callable[[Client], None] | None = None
    capture: bool = False
    unanswered: bool = False  # what it sends has no answer

    def options(self, folder: Path) -> list[str]:
        return ["--capture", str(folder / "said.pcapng")] if self.capture else []

    def run(self, address: str, number: int, end: float, tally: Any) -> None:
        """One connection until end, opened anew when the broker ends it."""
        answers = ended = 0
        while time.monotonic() < end:
            try:
                client = Client(address, "attacker", 30)
                for data in self.frames(number):
                    if time.monotonic() >= end:
                        break
                    client.sock.sendall(data)
                    if self.reads and not self.unanswered:
                        client.answer()
                        answers += 1
                while time.monotonic() < end and not self.reads:
                    time.sleep(0.1)
                    client.sock.sendall(b"")
            except OSError:
                ended += 1
                time.sleep(0.02)
        tally["answers"] += answers
        tally["ended"] += ended


def produce_body(topic: str, records: bytes | None = None, partitions: int = 1) -> Body:
    parts = [{"Index": n, "Records": records or build([(None, b"x" * 100)])} for n in range(partitions)]
    return {"Acks": 1, "TimeoutMs": 1000, "TopicData": [{"Name": topic, "PartitionData": parts}]}


def again(api: str, version: int, body: Body, client: str = "attacker") -> Callable[[int], Iterator[bytes]]:
    """The same request over and over."""

    def frames(_: int) -> Iterator[bytes]:
        data = frame(api, version, body, client)
        while True:
            yield data

    return frames


def each(make: Callable[[int, int], bytes]) -> Callable[[int], Iterator[bytes]]:
    """make(connection, number) for number 0, 1, …"""

    def frames(connection: int) -> Iterator[bytes]:
        for number in count():
            yield make(connection, number)

    return frames


def named(text: str, number: int) -> list[str]:
    return [f"{text}{n}" for n in range(number)]
