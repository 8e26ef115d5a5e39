"""Finds connections that were recorded twice: before and after address translation (NAT, a Kubernetes service), or in
two captures at two points of the network.

Translation changes addresses and ports but neither sequence numbers nor bytes. Two connections with the same first
bytes at the same random sequence number at about the same time are one. Captures that are read together share a Twins;
a connection in two of them at exactly the same ns comes from a copied file and is read twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from kwire.capture.ip import endpoint

if TYPE_CHECKING:
    from kwire.capture.connection import Connection
    from kwire.capture.streams import Piece

LOOKED_AT = 12  # first bytes that are compared; few, as the end of a block may cut what follows
TOGETHER = 2_000_000_000  # ns that may lie between the two
MOST = 25_000  # streams in each of two generations; older ones are forgotten
RANDOM = 1 << 20  # least sequence number taken for random; tools write low ones

Endpoint = tuple[str, int]
Head = tuple[int, int]  # digest of a stream's first bytes, and the time of their packet (ns)
NOTHING: Head = 0, 0
NO_HEADS = NOTHING, NOTHING
Opening = tuple[int, int]  # the first byte's sequence number, the digest
Whose = tuple[tuple[Endpoint, Endpoint], int, int]  # ends, opener's side, epoch
Seen = tuple[int, str, Whose, int | None]  # time, capture, connection, the peer's first sequence number


class Twins:
    """of(connection, heads) gives the connection of which this is a second recording; meet() is for a head that comes
    later than the other side's. found: how many there were; lag: the longest time between two recordings of one, ns."""

    def __init__(self) -> None:
        self._known: dict[Opening, Seen] = {}
        self._older: dict[Opening, Seen] = {}
        self.found = self.lag = 0

    def of(self, connection: Connection, heads: tuple[Head, Head], capture: str = "") -> str:
        """The other connection's name, as "10.0.0.7:51522>10.0.0.2:9092#1", opener first; "" if there is none. heads:
        of connection.streams."""
        found = self.meet(connection, heads, capture)
        self.found += found is not None
        return _name(*found) if found is not None else ""

    def meet(self, connection: Connection, heads: tuple[Head, Head], capture: str) -> Whose | None:
        """Remembers the heads, NOTHING for those not to be looked at; returns the connection whose heads they are."""
        whose = connection.ends, connection.opener or 0, connection.epoch
        found: Whose | None = None
        for side, (stream, (digest, begun)) in enumerate(zip(connection.streams, heads, strict=True)):
            if not digest or stream.first is None or stream.first < RANDOM:
                continue
            peer = connection.streams[1 - side].first
            opening = stream.first, digest
            known = self._known.get(opening) or self._older.get(opening)
            time, where, other, answered = known or (0, capture, whose, None)
            alike = peer is None or answered is None or peer == answered
            apart = other != whose or (where != capture and begun != time)
            if apart and alike and abs(begun - time) <= TOGETHER:
                found = found or other
                self.lag = max(self.lag, abs(begun - time))
            else:
                if len(self._known) >= MOST:
                    self._older, self._known = self._known, {}
                self._known[opening] = begun, capture, whose, peer
        return found


def heads_of(pieces: tuple[list[Piece], list[Piece]]) -> tuple[Head, Head]:
    """The heads of streams that begin with these pieces."""
    first, second = (_head(side) for side in pieces)
    return first, second


def head(data: bytes, time: int) -> Head:
    """The head of a stream. data: its first LOOKED_AT bytes, if there are so many."""
    return (crc32(data) | 1 << 32, time) if len(data) == LOOKED_AT else NOTHING


def _head(pieces: list[Piece]) -> Head:
    piece = pieces[0] if pieces else None
    if piece is None or piece.position or piece.missing:
        return NOTHING
    return head(bytes(piece.data[:LOOKED_AT]), piece.times[0])


def _name(ends: tuple[Endpoint, Endpoint], side: int, epoch: int) -> str:
    first, second = (endpoint(*end) for end in ends)
    return f"{first}>{second}#{epoch}" if not side else f"{second}>{first}#{epoch}"
