"""Finds where a split begins to read a connection midstream: at the first request whose response is in the split too.

Bytes before it belong to frames of earlier splits. The place and the client's side are guessed from the bytes;
connection_parts.follows checks the guess.
"""

from __future__ import annotations

from struct import Struct

from kwire.capture.connection import Connection
from kwire.capture.streams import Piece
from kwire.codec.frames import MAX_SIZE
from kwire.pipeline.connection_parts import head_of
from kwire.session.api_versions import Kinds
from kwire.session.pieces import joined, rest
from kwire.session.resync import find_request, find_response
from kwire.session.roles import Brokers, client_of

SEARCHED = 1 << 20  # bytes of a direction in which a beginning is searched
IDS = 1000  # requests that are searched for the first answered one

size_at, id_at = Struct(">i").unpack_from, Struct(">i").unpack_from


class Half:
    """Collects pieces until the place is known. pieces: by index of the connection's ends."""

    def __init__(self) -> None:
        self.pieces: tuple[list[Piece], list[Piece]] = [], []
        self._tried = 0

    def add(self, connection: Connection) -> None:
        """Takes the connection's new pieces."""
        for mine, stream in zip(self.pieces, connection.streams, strict=True):
            mine += stream.pieces
            stream.pieces = []

    @property
    def hopeless(self) -> bool:
        """Whether enough was searched."""
        return any(sum(len(piece.data) for piece in pieces) > SEARCHED for pieces in self.pieces)

    def begin(self, connection: Connection, known: Brokers, kinds: Kinds) -> Begun | None:
        """The place to begin; None when it is not found yet."""
        have = sum(len(piece.data) for pieces in self.pieces for piece in pieces)
        if not all(self.pieces) or have < 2 * self._tried:
            return None
        self._tried = have
        client = client_of(connection.ends, self.pieces, known, kinds)
        if client is None:
            return None
        asked, answered = joined(self.pieces[client]), joined(self.pieces[1 - client])
        first = find_request(asked.data, _offsets(asked), kinds)
        if first is None:
            return None
        ids = _ids(asked.data, first)
        found = find_response(answered.data, _offsets(answered), ids)
        found = None if found is None else _answer(answered.data, found, ids)
        if found is None:
            return None
        place = ids[id_at(answered.data, found + 4)[0]]
        heads = head_of([asked], asked.position + place), head_of([answered], answered.position + found)
        return Begun(client, heads, (rest(*asked[:5], place), rest(*answered[:5], found)))


class Begun:
    """client: its side (0 or 1); heads, left: the bytes before and from the place on, of the client's and the broker's
    stream."""

    def __init__(self, client: int, heads: tuple[Piece | None, Piece | None], left: tuple[Piece, Piece]) -> None:
        self.client, self.heads, self.left = client, heads, left


def _offsets(piece: Piece) -> list[int]:
    return [start - piece.position for start in piece.starts if start >= piece.position]


def _answer(data: bytes, pos: int, ids: dict[int, int]) -> int | None:
    """The offset of the first response from pos on that answers one of the requests."""
    while pos + 8 <= len(data):
        size, ident = size_at(data, pos)[0], id_at(data, pos + 4)[0]
        if ident in ids:
            return pos
        if not 4 <= size <= MAX_SIZE:
            return None
        pos += 4 + size
    return None


def _ids(data: bytes, pos: int) -> dict[int, int]:
    """The correlation ids of the requests from pos on, with their offsets."""
    out: dict[int, int] = {}
    while pos + 12 <= len(data) and len(out) < IDS:
        (size,) = size_at(data, pos)
        if not 8 <= size <= MAX_SIZE:
            break
        out.setdefault(id_at(data, pos + 8)[0], pos)
        pos += 4 + size
    return out
