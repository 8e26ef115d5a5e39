"""Exchanges from bytes that the caller feeds: no file, no socket, no clock.

The bytes become TCP segments of a complete connection, which are read as those of a capture are.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

import numpy as np

from kwire.capture.packets import Packets
from kwire.capture.segmenter import Block
from kwire.capture.tcp import ACK, FIN, RST, SYN, Key, Segments
from kwire.session.batch import ExchangeBatch
from kwire.session.connection_info import ConnectionInfo
from kwire.session.exchange import Exchange
from kwire.session.reader import Reader, Settings

Address = tuple[str, int]  # as ("10.0.0.7", 51522)
WRAP = 1 << 32


class Session:
    """The connections between clients and brokers. Times are ns since the epoch, addresses IPv4 or IPv6. ports: the
    brokers'; without them, who sends first on a connection is the client.

    feed, close and packets give the exchanges that became complete, finish those that stay open: each once. snapshot
    saves the state, resume continues from it.

    >>> session, client, broker = Session(), ("10.0.0.7", 51522), ("10.0.0.2", 9092)
    >>> asked = bytes.fromhex("00000017 000c 0003 00000001 0001 63 0001 67 00000001 0001 6d ffff")
    >>> session.feed(0, client, broker, asked[:9]) + session.feed(1_000, client, broker, asked[9:])
    []
    >>> [exchange] = session.feed(900_000, broker, client, bytes.fromhex("0000000a 00000001 00000000 001b"))
    >>> exchange.api, exchange.api_version, exchange.client_id, exchange.latency, exchange.error
    ('Heartbeat', 3, 'c', 899000, 27)
    >>> exchange.request.body()["GroupId"], exchange.connection.name
    ('g', '10.0.0.7:51522>10.0.0.2:9092#1')
    >>> session.finish()
    []
    """

    def __init__(self, name: str = "session", *, ports: Iterable[int] = (), settings: Settings | None = None) -> None:
        self.reader = Reader(name, settings or Settings(frozenset(ports)), tracking=True, ordered=False)
        self._next: dict[Key, int] = {}  # sequence numbers of open connections, by who sends to whom
        self._packets = 0

    @property
    def connections(self) -> list[ConnectionInfo]:
        """The open connections."""
        return self.reader.open_connections

    def feed(self, time: int, source: Address, target: Address, data: bytes) -> list[Exchange]:
        """Adds bytes that source sent to target, in stream order. Raises ValueError for an invalid address."""
        key = _key(source, target)
        fresh = key not in self._next
        opened: list[Exchange] = []
        if fresh:
            client = _reverse(key) if source[1] in self.reader.settings.ports else key
            begin = self._packets * 77_777 % WRAP  # another one for each connection between the same ends
            self._next[key] = self._next[_reverse(key)] = (begin + 1) % WRAP
            opened = self._segment(time, client, SYN, b"", begin)
        seq = self._next[key]
        self._next[key] = (seq + len(data)) % WRAP
        return opened + self._segment(time, key, ACK, data, seq)

    def close(self, time: int, source: Address, target: Address, *, reset: bool = False) -> list[Exchange]:
        """Closes the connection in both directions. reset: the source reset it."""
        key = _key(source, target)
        done: list[Exchange] = []
        for one in (key,) if reset else (key, _reverse(key)):
            if one in self._next:
                done += self._segment(time, one, RST if reset else FIN, b"", self._next[one])
        self._next.pop(key, None)
        self._next.pop(_reverse(key), None)
        return done

    def packets(self, packets: Packets) -> list[Exchange]:
        """Adds packets of a capture or an interface."""
        return _all(self.reader.feed(packets))

    def finish(self) -> list[Exchange]:
        """Ends all connections; gives the open requests, without responses."""
        self._next.clear()
        return _all(self.reader.finish("the session ended"))

    def snapshot(self) -> bytes:
        """Its state, for resume. A pickle: resume only what kwire itself wrote."""
        return pickle.dumps((self.reader.snapshot(), self._next, self._packets))

    @classmethod
    def resume(cls, snapshot: bytes) -> Session:
        """A session that continues from a snapshot."""
        made = cls()
        reader, made._next, made._packets = pickle.loads(snapshot)
        made.reader = Reader.resume(reader)
        return made

    def _segment(self, time: int, key: Key, flags: int, data: bytes, seq: int) -> list[Exchange]:
        self._packets += 1
        number, at, begin, bits, size, zero = (
            np.array([value], np.int64) for value in (self._packets, time, seq, flags, len(data), 0)
        )
        segments = Segments(memoryview(data), number, at, begin, bits, zero, size, size, zero.astype(np.intp), [key])
        return _all(self.reader.add(Block(1, time, time, [segments])))


def _all(batches: Iterable[ExchangeBatch]) -> list[Exchange]:
    return [exchange for batch in batches for exchange in batch]


def _key(source: Address, target: Address) -> Key:
    return (*_address(source), *_address(target))


def _address(address: Address) -> tuple[int, int, int]:
    """High and low 64 bits of the address (IPv4 mapped into IPv6), and the port."""
    found = ip_address(address[0])
    number = int(found) if isinstance(found, IPv6Address) else 0xFFFF << 32 | int(found)
    return number >> 64, number & (1 << 64) - 1, address[1]


def _reverse(key: Key) -> Key:
    return (*key[3:], *key[:3])
