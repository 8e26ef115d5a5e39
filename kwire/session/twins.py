"""Finds connections that were recorded twice: before and after address translation (NAT, a Kubernetes service), or in
two captures at two points of the network.

Translation changes addresses and ports but neither sequence numbers nor bytes. Two connections with the same first
bytes at the same random sequence number at about the same time are one. Captures that are read together share a Twins;
a connection in two of them at exactly the same ns comes from a copied file and is read twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.capture.ip import endpoint

if TYPE_CHECKING:
    from kwire.capture.connection import Connection
    from kwire.capture.streams import Piece

LEAST, LOOKED_AT = 12, 64  # first bytes that are needed, and that are compared
TOGETHER = 2_000_000_000  # ns that may lie between the two
MOST = 50_000
RANDOM = 1 << 20  # least sequence number taken for random; tools write low ones

Endpoint = tuple[str, int]
Head = tuple[bytes, int]
NOTHING: Head = b"", 0
Opening = tuple[int, bytes]
Whose = tuple[tuple[Endpoint, Endpoint], int, int]  # ends, opener's side, epoch
Seen = tuple[int, str, Whose, int | None]  # time, capture, connection, the peer's first sequence number


class Twins:
    """of(connection, pieces) gives the connection of which this is a second recording; found: how many there were."""

    def __init__(self) -> None:
        self._known: dict[Opening, Seen] = {}
        self.found = 0

    def of(self, connection: Connection, pieces: tuple[list[Piece], list[Piece]], capture: str = "") -> str:
        """The other connection's name, as "10.0.0.7:51522>10.0.0.2:9092#1", opener first; "" if there is none."""
        heads: list[Head] = []
        for side in (0, 1):
            piece = next(iter(pieces[side]), None)
            begins = piece is not None and not piece.position and not piece.missing
            heads.append((bytes(piece.data[:LOOKED_AT]), piece.times[0]) if piece is not None and begins else NOTHING)
        return self.of_heads(connection, heads, capture)

    def of_heads(self, connection: Connection, heads: Sequence[Head], capture: str = "") -> str:
        """As of(). heads: for each side at most LOOKED_AT bytes and the time of their packet (ns)."""
        whose = connection.ends, connection.opener or 0, connection.epoch
        found: Whose | None = None
        for side, (stream, (head, begun)) in enumerate(zip(connection.streams, heads, strict=True)):
            if len(head) < LEAST or stream.first is None or stream.first < RANDOM:
                continue
            peer = connection.streams[1 - side].first
            opening = stream.first, head
            time, where, other, answered = self._known.get(opening, (0, capture, whose, None))
            alike = peer is None or answered is None or peer == answered
            apart = other != whose or (where != capture and begun != time)
            if apart and alike and abs(begun - time) <= TOGETHER:
                found = found or other
            else:
                if len(self._known) >= MOST:
                    self._known.clear()
                self._known[opening] = begun, capture, whose, peer
        self.found += found is not None
        return _name(*found) if found is not None else ""


def _name(ends: tuple[Endpoint, Endpoint], side: int, epoch: int) -> str:
    first, second = (endpoint(*end) for end in ends)
    return f"{first}>{second}#{epoch}" if not side else f"{second}>{first}#{epoch}"
