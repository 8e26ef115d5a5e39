"""A broker without sockets: requests go in as bytes and come out as values, and time is what the test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import pack, unpack_from
from typing import Any

import pytest

from kwire.broker.answers import ReplyFrame
from kwire.broker.context import BrokerSettings, Peer
from kwire.broker.faults import Faults
from kwire.broker.service import Service
from kwire.broker.state import BrokerState
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.records import build


class Clock:
    """Stands still until run() moves it."""

    def __init__(self) -> None:
        self.time = 1_700_000_000_000_000_000
        self.timers: list[tuple[int, Any]] = []

    def now(self) -> int:
        return self.time

    def after(self, ns: int, act: Callable[[], None]) -> Any:
        timer = Alarm(self, act)
        self.timers.append((self.time + ns, timer))
        return timer

    def run(self, ms: int) -> None:
        end = self.time + ms * 1_000_000
        while due := [entry for entry in self.timers if entry[0] <= end]:
            entry = min(due, key=lambda entry: entry[0])
            self.timers.remove(entry)
            self.time = max(self.time, entry[0])
            entry[1].act()
        self.time = end


@dataclass
class Alarm:
    clock: Clock
    act: Callable[[], None]

    def cancel(self) -> None:
        self.clock.timers = [entry for entry in self.clock.timers if entry[1] is not self]


@dataclass
class SocketlessBroker:
    """send() gives the list that the reply will be in; ask() the body, which must be there at once."""

    settings: BrokerSettings = field(default_factory=BrokerSettings)
    faults: Faults = field(default_factory=Faults)
    steps: int = 0  # of large requests

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.state = BrokerState(self.settings, self.clock, self.faults)
        self.service = Service(self.state)
        self.peer = Peer(1, "127.0.0.1", 40000, 1)

    def frame(self, api: str, version: int, body: dict[str, Any], client: str | None = "test") -> bytes:
        library = builtin_library()
        message = library.message(f"{api}Request")
        key = library.registry.find(api).definition.key
        assert key is not None
        header_version = request_header_version(key, version, message)
        header = {"RequestApiKey": key, "RequestApiVersion": version, "CorrelationId": 7, "ClientId": client}
        head = library.codec("RequestHeader", header_version).encode(header)
        codec = library.codec(f"{api}Request", version)
        return head + codec.encode_fitted(body)

    def raw(self, data: bytes, peer: Peer | None = None) -> list[ReplyFrame]:
        replies: list[ReplyFrame] = []
        for _ in self.service.serve(peer or self.peer, data, replies.append) or ():
            self.steps += 1
        return replies

    def send(
        self, api: str, version: int, body: dict[str, Any], node: int = 1, client: str = "test"
    ) -> list[ReplyFrame]:
        return self.raw(self.frame(api, version, body, client), Peer(2, "127.0.0.1", 40001, node))

    def ask(self, api: str, version: int, body: dict[str, Any], node: int = 1, client: str = "test") -> Any:
        replies = self.send(api, version, body, node, client)
        assert len(replies) == 1, "the answer is not there"
        return self.body(api, version, replies[0])

    def body(self, api: str, version: int, reply: ReplyFrame) -> Any:
        data = reply.data
        assert data is not None, reply.close
        size, correlation = unpack_from(">ii", data)
        assert (size, correlation) == (len(data) - 4, 7)
        library = builtin_library()
        message = library.message(f"{api}Response")
        key = library.registry.find(api).definition.key
        assert key is not None
        start = 8 + response_header_version(key, version, message)
        return library.codec(f"{api}Response", version).decode(data[start:])

    def produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 9, **how: Any) -> Any:
        """Sends values as one batch and gives the partition's row of the answer."""
        records = how.pop("records", None) or build([(None, value) for value in values], **how)
        part = {"Index": partition, "Records": records}
        topics = [{"Name": topic, "PartitionData": [part]}]
        body = {"Acks": -1, "TimeoutMs": 1000, "TopicData": topics}
        return self.ask("Produce", version, body)["Responses"][0]["PartitionResponses"][0]

    def fetch_body(self, topic: str, offset: int = 0, *, wait: int = 0, least: int = 1, most: int = 1 << 20) -> Any:
        part = {"Partition": 0, "FetchOffset": offset, "PartitionMaxBytes": most}
        topics = [{"Topic": topic, "Partitions": [part]}]
        return {"ReplicaId": -1, "MaxWaitMs": wait, "MinBytes": least, "MaxBytes": 1 << 20, "Topics": topics}

    def fetch(self, topic: str, offset: int = 0, version: int = 12, **how: Any) -> Any:
        """The partition's row of the answer."""
        answer = self.ask("Fetch", version, self.fetch_body(topic, offset, **how))
        return answer["Responses"][0]["Partitions"][0]


@pytest.fixture
def socketless() -> SocketlessBroker:
    """One node, a topic t with two partitions."""
    return SocketlessBroker(BrokerSettings(topics=(("t", 2),)))


@pytest.fixture
def make_socketless() -> type[SocketlessBroker]:
    """For other settings."""
    return SocketlessBroker


@pytest.fixture
def sized() -> Callable[[bytes], bytes]:
    """A frame with its size in front."""
    return lambda data: pack(">i", len(data)) + data
