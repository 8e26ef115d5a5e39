"""Traffic made by hand: frames from bodies, packets from frames, and what kwire reads of them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

import numpy as np
import pytest

from kwire.capture.packets import Packets
from kwire.capture.save import PcapWriter
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.schema.registry import builtin
from kwire.session.connection_info import ConnectionInfo
from kwire.session.exchange import Exchange, Message
from kwire.session.framing import Skipped
from kwire.session.reader import Reader, Settings
from kwire.session.record import records

START = 1_700_000_000_000_000_000  # ns
STEP = 1_000_000  # ns from packet to packet
RAW = 101  # LINKTYPE_RAW: a packet begins with its IPv4 header
FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16


def size_prefixed(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def request(
    api: str | int, version: int, body: dict[str, Any] | bytes | None = None, ident: int = 1,
    client: str | bytes | None = "c", tags: bytes = b"\0",
) -> bytes:  # fmt: skip
    """A request's frame. api: a name, or a key with a body of bytes; tags: the header's, where it has some."""
    key = api if isinstance(api, int) else builtin().find(api).definition.key
    assert key is not None
    definition = builtin_library().api_message(key, request=True)
    form = request_header_version(key, version, definition)
    name = client.encode() if isinstance(client, str) else client
    said = b"" if form == 0 else pack(">h", -1) if name is None else pack(">h", len(name)) + name
    if not isinstance(body, bytes):
        assert definition is not None
        body = builtin_library().codec(definition.name, version).encode(body or {})
    return size_prefixed(pack(">hhi", key, version, ident) + said + (tags if form == 2 else b"") + body)


def response(
    api: str, version: int, body: dict[str, Any] | bytes | None = None, ident: int = 1, tags: bytes = b"\0"
) -> bytes:
    """A response's frame."""
    key = builtin().find(api).definition.key
    assert key is not None
    definition = builtin_library().api_message(key, request=False)
    assert definition is not None
    if not isinstance(body, bytes):
        body = builtin_library().codec(definition.name, version).encode(body or {})
    form = response_header_version(key, version, definition)
    return size_prefixed(pack(">i", ident) + (tags if form else b"") + body)


class Packet(NamedTuple):
    """A packet: its captured bytes, and how many there were on the wire."""

    time: int
    data: bytes
    length: int
    link: int = RAW


class Tcp:
    """A connection. Each call puts packets behind those that are there; lost ones only move the sequence number."""

    def __init__(self, traffic: Traffic, ends: list[tuple[str, int]], seq: tuple[int, int]) -> None:
        self.traffic, self.ends, self.seq = traffic, ends, list(seq)

    def syn(self) -> Tcp:
        self._packet(0, b"", SYN)
        self._packet(1, b"", SYN | ACK)
        return self

    def send(self, data: bytes, mss: int = 1 << 15, lost: bool = False) -> Tcp:
        """From the client."""
        return self._bytes(0, data, mss, lost)

    def answer(self, data: bytes, mss: int = 1 << 15, lost: bool = False) -> Tcp:
        """From the broker."""
        return self._bytes(1, data, mss, lost)

    def close(self, sides: Sequence[int] = (0, 1)) -> Tcp:
        for side in sides:
            self._packet(side, b"", FIN | ACK)
        return self

    def reset(self, side: int = 1) -> Tcp:
        self._packet(side, b"", RST)
        return self

    def _bytes(self, side: int, data: bytes, mss: int, lost: bool) -> Tcp:
        for at in range(0, len(data), mss):
            self._packet(side, data[at : at + mss], PUSH | ACK, lost)
        return self

    def _packet(self, side: int, data: bytes, flags: int, lost: bool = False) -> None:
        (source, target), seq = (self.ends if side == 0 else self.ends[::-1]), self.seq[side]
        self.seq[side] = (seq + len(data) + bool(flags & (SYN | FIN))) % (1 << 32)
        tcp = pack(">HHIIHHHH", source[1], target[1], seq, 0, 5 << 12 | flags, 65535, 0, 0) + data
        addresses = bytes(map(int, f"{source[0]}.{target[0]}".split(".")))
        ip = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + addresses + tcp
        if not lost:
            self.traffic.packets.append(Packet(self.traffic.now, ip, len(ip)))
        self.traffic.now += STEP


class Outcome(NamedTuple):
    """What kwire read."""

    exchanges: list[Exchange]
    over: list[ConnectionInfo]
    skipped: list[tuple[ConnectionInfo, str, Skipped]]

    @property
    def messages(self) -> list[Message]:
        return [message for exchange in self.exchanges for message, _ in records(exchange)]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for exchange in self.exchanges for _, row in records(exchange)]

    @property
    def pairs(self) -> list[tuple[Any, ...]]:
        """Of each exchange the API, the correlation id, and whether there is a request and a response."""
        return [
            (each.api, each.correlation_id, each.request is not None, each.response is not None)
            for each in self.exchanges
        ]


class Traffic:
    """Packets in the order of the capture, and the clock. request and response make frames."""

    request, response = staticmethod(request), staticmethod(response)
    size_prefixed = staticmethod(size_prefixed)
    packet = Packet

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.now = START
        self.connections = 0  # each has sequence numbers of its own

    def connection(
        self, client: str = "10.0.0.7:51522", broker: str = "10.0.0.2:9092", syn: bool = True,
        seq: tuple[int, int] | None = None,
    ) -> Tcp:  # fmt: skip
        self.connections += 1
        seq = seq or (1000 + (self.connections - 1) * 100_000, 5000 + (self.connections - 1) * 100_000)
        ends = [(address, int(port)) for address, port in (client.split(":"), broker.split(":"))]
        made = Tcp(self, ends, seq)
        return made.syn() if syn else made

    def read(
        self, packets: Sequence[Packet] | None = None, feed: int | None = None, settings: Settings | None = None,
        **given: Any,
    ) -> Outcome:  # fmt: skip
        """What a Reader makes of them. feed: how many packets it gets at a time (None: all)."""
        over: list[ConnectionInfo] = []
        reader = Reader("made.pcap", settings, ended=over.append, **given)
        packets = self.packets if packets is None else packets
        exchanges: list[Exchange] = []
        for at in range(0, len(packets), feed or len(packets) or 1):
            for batch in reader.feed(block(packets[at : at + (feed or len(packets))], at + 1)):
                exchanges += batch
        for batch in reader.finish():
            exchanges += batch
        return Outcome(exchanges, over, reader.skipped)

    @staticmethod
    def block(packets: Sequence[Packet], first: int) -> Packets:
        """Packets as a block of a capture; first is the number of the first one."""
        return block(packets, first)

    def save(self, path: Path, packets: Iterable[Packet] | None = None) -> Path:
        """Writes them as a pcap file, gzip when its name says so."""
        with gzip.open(path, "wb", 1) if path.suffix == ".gz" else open(path, "wb") as file:
            writer = PcapWriter(file)  # type: ignore[arg-type]
            for packet in self.packets if packets is None else packets:
                writer.write(packet.time, packet.data, packet.length, packet.link)
        return path


def block(packets: Sequence[Packet], first: int) -> Packets:
    """Packets as a block of a capture; first is the number of the first one."""
    captured = np.array([len(packet.data) for packet in packets], np.int64)
    return Packets(
        memoryview(b"".join(packet.data for packet in packets)), np.arange(first, first + len(packets)),
        np.array([packet.time for packet in packets], np.int64), np.cumsum(captured) - captured, captured,
        np.array([packet.length for packet in packets], np.int64),
        np.array([packet.link for packet in packets], np.int64),
    )  # fmt: skip


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture
def message(traffic: Traffic) -> Callable[..., Message]:
    """message(frame, …): the only message of that kind in a connection that sends frames and gets answers."""

    def read(*asked: bytes, answers: Sequence[bytes] = (), kind: str = "request") -> Message:
        tcp = traffic.connection()
        for frame in asked:
            tcp.send(frame)
        for frame in answers:
            tcp.answer(frame)
        return [each for each in traffic.read().messages if each.kind == kind][-1]

    return read
