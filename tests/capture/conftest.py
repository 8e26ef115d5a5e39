"""What the tests of captures build their input with: TCP, IP, Ethernet, pcap, and blocks of packets of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address
from struct import pack
from typing import Any, NamedTuple

import numpy as np
import pytest

from kwire.capture.connection import Connection
from kwire.capture.connections import Connections
from kwire.capture.ip import Network
from kwire.capture.packets import Columns, Packets
from kwire.capture.streams import Stream
from kwire.capture.tcp import ConnectionFilter, Segments, read_segments

ENDS = (("10.0.0.1", 40000), ("10.0.0.2", 9092))
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}
SECOND = 1_000_000_000


class Gap(NamedTuple):
    """A hole in a stream: the position behind it and how many bytes it took."""

    position: int
    missing: int
    cut: bool


class Make:
    """Builds packets by hand; segment() is the usual one, a whole IPv4 packet without a link layer."""

    second = SECOND
    ends = ENDS

    def tcp(
        self, data: bytes = b"", seq: int = 0, flags: str = "A", sport: int = 40000, dport: int = 9092,
        options: bytes = b"",
    ) -> bytes:  # fmt: skip
        bits = sum(FLAGS[flag] for flag in flags)
        head = pack(">HHIIBBHHH", sport, dport, seq % (1 << 32), 7, (20 + len(options)) // 4 << 4, bits, 512, 0, 0)
        return head + options + data

    def ip4(
        self, payload: bytes, source: str = "10.0.0.1", target: str = "10.0.0.2", protocol: int = 6,
        options: bytes = b"", ident: int = 1, fragment: int = 0, total: int | None = None,
    ) -> bytes:  # fmt: skip
        size = 20 + len(options)
        total = size + len(payload) if total is None else total
        head = pack(">BBHHHBBH", 0x40 | size // 4, 0, total, ident, fragment, 64, protocol, 0)
        return head + IPv4Address(source).packed + IPv4Address(target).packed + options + payload

    def ip6(
        self, payload: bytes, source: str = "fd00::1", target: str = "fd00::2", kind: int = 6, size: int | None = None
    ) -> bytes:
        head = pack(">IHBB", 6 << 28, len(payload) if size is None else size, kind, 64)
        return head + IPv6Address(source).packed + IPv6Address(target).packed + payload

    def ether(self, payload: bytes, kind: int = 0x0800) -> bytes:
        return bytes(12) + pack(">H", kind) + payload

    def segment(self, side: int, seq: int, data: bytes = b"", flags: str = "A") -> bytes:
        """From the client (side 0) or the broker (side 1), with IPv4 before it."""
        (source, sport), (target, dport) = ENDS[side], ENDS[1 - side]
        return self.ip4(self.tcp(data, seq, flags, sport, dport), source, target)

    def pcap(
        self, packets: Iterable[tuple[int, bytes]], order: str = "<", unit: int = 1000, link: int = 1,
        snaplen: int = 1 << 18,
    ) -> bytes:  # fmt: skip
        """packets: time in ns and bytes, which snaplen cuts. unit: ns for each unit of the fraction."""
        magic = 0xA1B2C3D4 if unit == 1000 else 0xA1B23C4D
        out = pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link)
        for time, data in packets:
            kept = data[:snaplen]
            out += pack(order + "IIII", time // SECOND, time % SECOND // unit, len(kept), len(data)) + kept
        return out

    def block(
        self, packets: Sequence[bytes], link: int = 101, snaplen: int = 1 << 18, first: int = 1, time: int = 0,
        step: int = 1,
    ) -> Packets:  # fmt: skip
        """A block of packets with a few bytes before, between and behind them; numbers from first, times from time."""
        kept, buffer, starts = [packet[:snaplen] for packet in packets], b"\xee" * 5, []
        for packet in kept:
            starts.append(len(buffer))
            buffer += packet + b"\xee" * 3
        count = len(packets)
        return Packets(
            memoryview(buffer), np.arange(first, first + count), time + step * np.arange(count),
            np.array(starts, np.int64), np.array([len(packet) for packet in kept], np.int64),
            np.array([len(packet) for packet in packets], np.int64), np.full(count, link, np.int64),
        )  # fmt: skip

    def segments(
        self, block: Packets, chosen: ConnectionFilter | None = None, network: Network | None = None
    ) -> Segments:
        data = Columns(block.buffer)
        return read_segments(block, (network or Network()).read(block, data), data, chosen or ConnectionFilter())

    def feed(
        self, connections: Connections, packets: Sequence[bytes], first: int = 1, time: int = 0, snaplen: int = 1 << 18
    ) -> list[Connection]:
        """Feeds a block; the connections that it gave."""
        return list(connections.feed(self.segments(self.block(packets, snaplen=snaplen, first=first, time=time))))

    def data(self, stream: Stream) -> bytes:
        """What was delivered, holes left out."""
        return b"".join(piece.data for piece in stream.pieces)

    def gaps(self, stream: Stream) -> list[Gap]:
        return [Gap(piece.position, piece.missing, piece.cut) for piece in stream.pieces if piece.missing]

    def in_order(self, stream: Stream) -> bool:
        """Whether no piece overlaps the one before it, and what lies between them is said to be missing."""
        position = 0
        for piece in stream.pieces:
            begin = piece.starts[0] if piece.cut else piece.position - piece.missing
            if begin != position or piece.starts != sorted(set(piece.starts)):
                return False
            position = begin + piece.missing + len(piece.data)
        return position == stream.position


@pytest.fixture(scope="session")
def make() -> Make:
    return Make()


TEXT = bytes(range(256)) * 4
HELLO, WORLD = b"hello kafka", b"a broker's answer"
MS = 1_000_000

Sent = tuple[int, int, bytes, str]  # side, sequence number, data, flags
OPENING: list[Sent] = [(0, 99, b"", "S"), (1, 499, b"", "SA")]
TALK: list[Sent] = [(0, 100, HELLO, "A"), (1, 500, WORLD, "A")]
CLOSING: list[Sent] = [(0, 100 + len(HELLO), b"", "FA"), (1, 500 + len(WORLD), b"", "FA")]


def feed(make: Any, connections: Connections, sent: Sequence[Sent], time: int = 0, first: int = 1) -> list[Connection]:
    found: list[Connection] = make.feed(connections, [make.segment(*one) for one in sent], first, time)
    return found


def play(make: Any, *blocks: Sequence[Sent], connections: Connections | None = None) -> list[Connection]:
    """Feeds blocks, a millisecond apart; each connection once, all of them finished."""
    connections = connections or Connections()
    seen, first = {}, 1
    for number, block in enumerate(blocks):
        seen.update({id(found): found for found in feed(make, connections, block, number * MS, first)})
        first += len(block)
    seen.update({id(found): found for found in connections.finish()})
    return list(seen.values())


def texts(make: Any, connection: Connection) -> list[bytes]:
    """What each side sent, the client first."""
    streams = connection.streams if connection.ends == make.ends else connection.streams[::-1]
    return [make.data(stream) for stream in streams]
