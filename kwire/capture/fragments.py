"""IP fragments put together again: each is copied once to its place in its datagram.

An integer with a bit for every eight bytes, the unit of fragments (RFC 791 section 3.1, RFC 8200 section 4.5), says
which parts of a datagram are there, so a fragment costs the same whatever came before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

UNIT = 8
MAX_DATAGRAM = 1 << 16
MAX_PENDING = 1024  # datagrams of which some fragments are there
LIFETIME = 30_000_000_000  # ns that fragments wait, as in Linux; later their identification means another datagram


class Fragment(NamedTuple):
    """A fragment of the packet with this number and time: key says of which datagram, header is what the datagram is to
    begin with; size: of its payload on the wire, data: what was captured of it."""

    key: bytes
    number: int
    time: int
    header: bytes
    offset: int
    more: bool
    size: int
    data: memoryview


class Datagram(NamedTuple):
    """A datagram that is whole. number, time: of the packet that completed it."""

    number: int
    time: int
    data: bytes


@dataclass(slots=True)
class _Parts:
    """covered: the units that are there; total: bytes, when the last fragment was seen; since: when the first came."""

    since: int
    data: bytearray = field(default_factory=bytearray)
    covered: int = 0
    total: int | None = None

    @property
    def whole(self) -> bool:
        if self.total is None:
            return False
        wanted = (1 << -(-self.total // UNIT)) - 1
        return self.covered & wanted == wanted


class Fragments:
    """add() takes fragments in any order, take() gives the datagrams that became whole."""

    def __init__(self) -> None:
        self.pending: dict[bytes, _Parts] = {}
        self._whole: list[Datagram] = []

    def add(self, piece: Fragment) -> None:
        """Where fragments overlap, the later one counts."""
        offset, data = piece.offset, piece.data
        if offset + len(data) > MAX_DATAGRAM:
            return
        parts = self.pending.get(piece.key)
        if parts is None or piece.time - parts.since > LIFETIME:
            self.pending.pop(piece.key, None)
            parts = self.pending[piece.key] = _Parts(piece.time)
            if len(self.pending) > MAX_PENDING:
                del self.pending[next(iter(self.pending))]
        if len(parts.data) < offset:
            parts.data.extend(bytes(offset - len(parts.data)))
        parts.data[offset : offset + len(data)] = data
        units = len(data) // UNIT
        if not piece.more:
            parts.total = offset + piece.size
            units += len(data) == piece.size and len(data) % UNIT > 0
        parts.covered |= ((1 << units) - 1) << offset // UNIT
        if parts.whole:
            del self.pending[piece.key]
            self._finish(piece, bytes(parts.data[: parts.total]))

    def _finish(self, last: Fragment, payload: bytes) -> None:
        """Puts a header before the payload that says its length and no longer speaks of fragments."""
        header = last.header
        four = header[0] >> 4 == 4
        length = len(payload) + (len(header) if four else 0)
        if length > 0xFFFF:  # the ping of death
            return
        written = length.to_bytes(2, "big")
        fixed = header[:2] + written + header[4:6] + b"\0\0" + header[8:] if four else header[:4] + written + header[6:]
        self._whole.append(Datagram(last.number, last.time, fixed + payload))

    def take(self) -> list[Datagram]:
        """The datagrams that became whole since the last call."""
        whole, self._whole = self._whole, []
        return whole
