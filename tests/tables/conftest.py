"""Captures made by hand: frames from bodies, packets from frames, a pcap file of them. Both ways to make tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from bodyrows import expected
from tablerows import rows_of

from kwire.capture.save import PcapWriter
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.thresholds import ONE_BY_ONE, TOGETHER
from kwire.schema.registry import builtin
from kwire.session.batch import ExchangeBatch
from kwire.session.reader import Settings
from kwire.session.reading import Reading
from kwire.session.vectorized import Vectorized
from kwire.tables.build import tables_of
from kwire.tables.columns import DEFAULT

START, STEP = 1_700_000_000_000_000_000, 1_000_000  # ns
RAW = 101  # LINKTYPE_RAW: a packet begins with its IPv4 header
FIN, SYN, PUSH, ACK = 1, 2, 8, 16


def frame(kind: int, api: str, version: int, body: dict[str, Any] | bytes, ident: int, client: bytes) -> bytes:
    """kind: 0 a request, 1 a response."""
    key = builtin().find(api).definition.key
    assert key is not None
    definition = builtin_library().api_message(key, request=kind == 0)
    assert definition is not None
    if not isinstance(body, bytes):
        body = builtin_library().codec(definition.name, version).encode(body)
    if kind == 0:
        head = pack(">hhih", key, version, ident, len(client)) + client
        head += b"\0" * (request_header_version(key, version, definition) == 2)
    else:
        head = pack(">i", ident) + b"\0" * response_header_version(key, version, definition)
    return pack(">i", len(head + body)) + head + body


class Connection:
    """send and answer put a packet behind those that are there."""

    def __init__(self, traffic: Traffic, port: int) -> None:
        self.traffic, self.ports, self.seq = traffic, (port, 9092), [1000, 5000]
        self._packet(0, b"", SYN)
        self._packet(1, b"", SYN | ACK)

    def send(self, data: bytes) -> Connection:
        return self._packet(0, data, PUSH | ACK)

    def answer(self, data: bytes) -> Connection:
        return self._packet(1, data, PUSH | ACK)

    def close(self) -> None:
        self._packet(0, b"", FIN | ACK)
        self._packet(1, b"", FIN | ACK)

    def _packet(self, side: int, data: bytes, flags: int) -> Connection:
        source, target = self.ports if side == 0 else self.ports[::-1]
        tcp = pack(">HHIIHHHH", source, target, self.seq[side], 0, 5 << 12 | flags, 65535, 0, 0) + data
        self.seq[side] += len(data) + bool(flags & (SYN | FIN))
        hosts = (b"\x0a\0\0\7", b"\x0a\0\0\2")
        head = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + hosts[side] + hosts[1 - side]
        self.traffic.packets.append(head + tcp)
        return self


class Traffic:
    """request and response make frames, connection packets, save the file. folder is the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packets: list[bytes] = []

    def request(
        self, api: str, version: int, body: dict[str, Any] | bytes, ident: int = 1, client: bytes = b"c"
    ) -> bytes:
        return frame(0, api, version, body, ident, client)

    def response(self, api: str, version: int, body: dict[str, Any] | bytes, ident: int = 1) -> bytes:
        return frame(1, api, version, body, ident, b"")

    def connection(self, port: int = 51522) -> Connection:
        return Connection(self, port)

    def save(self, path: Path, step: int = STEP) -> Path:
        """step: ns from packet to packet."""
        with open(path, "wb") as file:
            writer = PcapWriter(file)
            for number, packet in enumerate(self.packets):
                writer.write(START + number * step, packet, len(packet), RAW)
        return path


@pytest.fixture
def traffic(tmp_path: Path) -> Traffic:
    return Traffic(tmp_path)


class Ways:
    """both(path) makes tables from columns and one by one, which must give the same rows. taken: exchanges of which
    columns were made at once; thresholds: from which number on."""

    def __init__(self) -> None:
        self.taken, self.thresholds = 0, TOGETHER

    def both(self, path: Path, names: Iterable[str] = DEFAULT) -> dict[str, list[dict[str, Any]]]:
        careful = Settings(careful=True, thresholds=ONE_BY_ONE)
        exact = tables_of([path], names, careful)
        exchanges = list(Reading([path], careful, tracking=True).exchanges())
        assert self.taken == 0
        quick = tables_of([path], names, Settings(thresholds=self.thresholds))
        for name, table in quick.items():
            table.validate(full=True)
            found = sorted(map(json.dumps, rows_of(table)))
            assert found == sorted(map(json.dumps, rows_of(exact[name]))), name
            if name in BODIED:
                assert found == sorted(map(json.dumps, expected(exchanges, name))), name
        return {name: rows_of(table) for name, table in quick.items()}


BODIED = ("partitions", "batches", "group_events")


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    """Columns are made of all that they can be made of, however little there is."""
    counted = Ways()

    def counting(read: Callable[..., ExchangeBatch | None]) -> Callable[..., ExchangeBatch | None]:
        def taking(*given: Any) -> ExchangeBatch | None:
            found = read(*given)
            counted.taken += len(found or ())
            return found

        return taking

    monkeypatch.setattr(Vectorized, "run", counting(Vectorized.run))
    monkeypatch.setattr(Vectorized, "named", counting(Vectorized.named))  # of connections that open
    return counted


Made = Callable[..., dict[str, list[dict[str, Any]]]]
COUNT = 40


@pytest.fixture
def made(traffic: Traffic, ways: Ways) -> Made:
    """made(api, version, *pairs): the tables of 40 exchanges of one kind, whose bodies (request, response) take turns;
    nearly all are read fast."""

    def make(api: str, version: int, *pairs: tuple[Any, Any]) -> dict[str, list[dict[str, Any]]]:
        tcp = traffic.connection()
        for ident in range(COUNT):
            asked, answer = pairs[ident % len(pairs)]
            tcp.send(traffic.request(api, version, asked, ident)).answer(traffic.response(api, version, answer, ident))
        tcp.close()
        found = ways.both(traffic.save(traffic.folder / "made.pcap"))
        assert ways.taken > COUNT - 10
        return found

    return make
