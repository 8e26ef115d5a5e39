"""Where in the middle of a connection a split begins to read it: at the first request of which the answer is there too.

What comes before belongs to requests and responses that began in an earlier split. Which place that is, and which side
is the client's, is a guess from the bytes alone; connection_parts.follows tells whether it was right.
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

SEARCHED = 1 << 20  # bytes of a direction; what has no beginning in them has none
IDS = 1000  # requests among which the first answered one is looked for

size_at, id_at = Struct(">i").unpack_from, Struct(">i").unpack_from


class Half:
    """Collects what comes until the place is known. Streams are [0], what the connection's first end sends, and [1]."""

    def __init__(self) -> None:
        self.pieces: tuple[list[Piece], list[Piece]] = [], []
        self._tried = 0

    def add(self, connection: Connection) -> None:
        """Takes what the connection got."""
        for mine, stream in zip(self.pieces, connection.streams, strict=True):
            mine += stream.pieces
            stream.pieces = []

    @property
    def hopeless(self) -> bool:
        """Whether enough was searched."""
        return any(sum(len(piece.data) for piece in pieces) > SEARCHED for pieces in self.pieces)

    def begin(self, connection: Connection, known: Brokers, kinds: Kinds) -> Begun | None:
        """The place, when it can be told by now."""
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
    """The client's side; of the client's stream and the broker's, what lies before the place and behind."""

    def __init__(self, client: int, heads: tuple[Piece | None, Piece | None], left: tuple[Piece, Piece]) -> None:
        self.client, self.heads, self.left = client, heads, left


def _offsets(piece: Piece) -> list[int]:
    return [start - piece.position for start in piece.starts if start >= piece.position]


def _answer(data: bytes, pos: int, ids: dict[int, int]) -> int | None:
    """The first response from there on that answers one of the requests: those before belong to earlier ones."""
    while pos + 8 <= len(data):
        size, ident = size_at(data, pos)[0], id_at(data, pos + 4)[0]
        if ident in ids:
            return pos
        if not 4 <= size <= MAX_SIZE:
            return None
        pos += 4 + size
    return None


def _ids(data: bytes, pos: int) -> dict[int, int]:
    """The correlation ids of the requests from there on, with where they begin."""
    out: dict[int, int] = {}
    while pos + 12 <= len(data) and len(out) < IDS:
        (size,) = size_at(data, pos)
        if not 8 <= size <= MAX_SIZE:
            break
        out.setdefault(id_at(data, pos + 8)[0], pos)
        pos += 4 + size
    return out
