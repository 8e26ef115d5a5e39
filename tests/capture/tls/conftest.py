"""How the tests of TLS read what they make: through a session, or through connections as a capture is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest
from tlsmade import Packet, Said, frame

from kwire.capture.connections import Connections
from kwire.capture.packets import Columns, Packets
from kwire.capture.streams import Piece
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.layer import TlsLayer
from kwire.capture.tls.negotiation import Resumable
from kwire.capture.tls.session import TlsSession


class Read(NamedTuple):
    """What came out of a session: of both sides the bytes and the pieces."""

    session: TlsSession
    inside: tuple[bytes, bytes]
    pieces: tuple[list[Piece], list[Piece]]


def log_of(text: bytes, growing: bool = False) -> KeyLog:
    log = KeyLog(growing)
    log.add(text)
    return log


class Tls:
    """read() gives a session what was said; capture() reads packets as a capture."""

    def read(self, said: Said, step: int = 0, log: bytes | None = None, resumable: Resumable | None = None) -> Read:
        """step: bytes of a packet, 0: whole chunks."""
        session = TlsSession(log_of(said.log if log is None else log), resumable or Resumable(), 0)
        out: tuple[list[Piece], list[Piece]] = ([], [])
        at, number = [0, 0], 0

        def put(found: tuple[list[Piece], list[Piece]]) -> None:
            for side in (0, 1):
                out[side].extend(found[side])

        for side, data in said.chunks:
            for low in range(0, len(data), step or len(data)):
                part, number = data[low : low + (step or len(data))], number + 1
                new: tuple[list[Piece], list[Piece]] = [], []
                new[side].append(Piece(at[side], part, [at[side]], [1000 + number], [number]))
                at[side] += len(part)
                put(session.take(new))
        put(session.finish())
        inside = tuple(b"".join(piece.data for piece in pieces) for pieces in out)
        return Read(session, (inside[0], inside[1]), out)

    def capture(self, packets: Iterable[Packet], log: bytes, ledger: bool = False, blocks: int = 1000) -> Read:
        """So many packets at a time."""
        import numpy as np

        from kwire.capture.ip import Network
        from kwire.capture.tcp import ConnectionFilter, read_segments

        layer = TlsLayer(log_of(log), ledger)
        connections, network, chosen = Connections(tls=layer), Network(), ConnectionFilter()
        out: tuple[list[Piece], list[Piece]] = [], []
        session: TlsSession | None = None
        frames = [frame(packet) for packet in packets]
        for low in range(0, len(frames), blocks):
            some = frames[low : low + blocks]
            sizes = np.array([len(data) for data in some], np.int64)
            number = np.arange(low + 1, low + 1 + len(some), dtype=np.int64)
            block = Packets(
                memoryview(b"".join(some)), number, number * 1_000_000, np.cumsum(sizes) - sizes, sizes, sizes,
                np.full(len(some), 101, np.int64),
            )  # fmt: skip
            columns = Columns(block.buffer)
            touched = list(connections.feed(read_segments(block, network.read(block, columns), columns, chosen)))
            for connection in touched:
                session = connection.tls if isinstance(connection.tls, TlsSession) else session
                for side in (0, 1):
                    out[side].extend(connection.streams[side].pieces)
                    connection.streams[side].pieces = []
        for connection in connections.finish():
            session = connection.tls if isinstance(connection.tls, TlsSession) else session
            for side in (0, 1):
                out[side].extend(connection.streams[side].pieces)
        assert session is not None
        inside = tuple(b"".join(piece.data for piece in pieces) for pieces in out)
        return Read(session, (inside[0], inside[1]), out)


@pytest.fixture(scope="session")
def tls() -> Tls:
    return Tls()
