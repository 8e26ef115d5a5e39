"""Finds which side of a connection is the broker when no SYN was captured, and recognizes connections that are not
Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kwire.capture.connection import Connection, Endpoint
from kwire.capture.streams import Piece
from kwire.capture.tls.session import TlsSession
from kwire.codec.verdict import UNKNOWN, Verdict, judge
from kwire.session.api_versions import Kinds
from kwire.session.pieces import rest
from kwire.session.resync import (
    begins_request,
    find_request,
    find_response,
    looks_like_request,
    reads_as_request,
    request_header,
)  # fmt: skip

ENOUGH = 14  # bytes needed to recognize a request
UNDECIDED = 1 << 18  # bytes that are kept until the broker's side is known
LONG = 16 << 20  # bytes of a midstream connection in which a request must begin
HEAD = 4096  # bytes kept of each direction of a connection that is not Kafka
TAIL = 1 << 16  # last bytes kept of each direction while the sides are unknown
HELLO = "TLS ClientHello"
ALERT = 21  # TLS record type (RFC 8446 section 6)

Both = tuple[list[Piece], list[Piece]]  # of the connection's two sides


class Brokers:
    """The known brokers: endpoints with one of the given ports, and those found on connections."""

    def __init__(self, ports: frozenset[int] = frozenset()) -> None:
        self.ports = ports
        self._seen: set[Endpoint] = set()

    def add(self, endpoint: Endpoint) -> None:
        if len(self._seen) < 100_000:
            self._seen.add(endpoint)

    def __contains__(self, endpoint: object) -> bool:
        return endpoint in self._seen or (isinstance(endpoint, tuple) and endpoint[1] in self.ports)


def client_of(
    ends: tuple[Endpoint, Endpoint], new: Both, known: Brokers, kinds: Kinds, again: bool = False
) -> int | None:
    """The client's side (0 or 1), None when unknown. again: no new bytes since the last call, which found nothing."""
    brokers = [end in known for end in ends]
    if brokers[0] != brokers[1]:
        return brokers.index(False)
    return None if again else _client_by_bytes(new, kinds)


def _client_by_bytes(new: Both, kinds: Kinds) -> int | None:
    runs = [list(_runs(pieces)) for pieces in new]
    for named in (True, False) if all(runs) else (True,):
        for side in (0, 1):
            if any(reads_as_request(data, at, kinds, named) for data, starts in runs[side] for at in starts[:8]):
                return side
    for side in (0, 1):
        for data, starts in runs[side]:
            at = find_request(data, starts, kinds)
            if at is not None and reads_as_request(data, at, kinds):
                return side
    for side in (0, 1):  # responses alone are recognized by their chain
        answers = [run for run in runs[side] if len(run[1]) > 2] if not runs[1 - side] else []
        if any(find_response(data, starts, ()) is not None for data, starts in answers):
            return 1 - side
    return None


def _runs(pieces: list[Piece]) -> Iterator[tuple[bytes, list[int]]]:
    """The bytes between holes, each with the offsets where packets begin."""
    holes = [at for at, piece in enumerate(pieces) if piece.missing]
    for low, high in pairwise([0, *holes, len(pieces)]):
        data = b"".join(piece.data for piece in pieces[low:high])
        if data:
            yield data, _offsets(pieces[low:high])


def _offsets(pieces: list[Piece]) -> list[int]:
    """The offsets where packets begin in the pieces' joined bytes."""
    out, base = [], 0
    for piece in pieces:
        out += [base + start - piece.position for start in piece.starts if piece.data and start >= piece.position]
        base += len(piece.data)
    return out


def is_whole_request(data: bytes) -> bool:
    """Whether the bytes begin with a complete frame whose header could be a request's of any API, and the next header,
    if there, could be one too."""
    pos = 0
    for _ in range(2):
        if len(data) - pos < ENOUGH:
            return pos > 0
        size, key, version, _, client = request_header(data, pos)
        if key < 0 or version < 0 or not -1 <= client <= size - 10 or (not pos and size > len(data) - 4):
            return False
        pos += 4 + size
    return True


def speaks(new: Both) -> bool:
    """Whether both sides have sent something."""
    return all(any(piece.data for piece in pieces) for pieces in new)


def decide(
    connection: Connection, new: Both, known: Brokers, kinds: Kinds, again: bool = False
) -> int | NotKafka | None:
    """The client's side (0 or 1), or a NotKafka, or None while it is unknown. new: all pieces so far. again: they are
    the same as at the last call."""
    opener = connection.opener
    if opener is None:
        found = client_of(connection.ends, new, known, kinds, again)
        if found is not None and isinstance(connection.tls, TlsSession) and connection.tls.encrypted:
            foreign = NotKafka.of(connection, new)
            if foreign.is_tls:  # even if the other end is a known broker
                return foreign
        if found is None and sum(len(piece.data) for pieces in new for piece in pieces) > UNDECIDED:
            foreign = NotKafka.of(connection, new)
            if foreign.verdict.known or sum(stream.position for stream in connection.streams) > LONG:
                return foreign
            for pieces in new:
                _shorten(pieces)
        return at_last(connection, new) if found is None and connection.finished else found
    both = speaks(new)
    if not new[opener]:
        return NotKafka.of(connection, new) if both or connection.finished else None
    hole = next((at for at, piece in enumerate(new[opener]) if piece.missing), None)
    first = b"".join(piece.data for piece in new[opener][:hole][:ENOUGH])
    enough = len(first) >= ENOUGH
    readable = enough or hole is None
    if not readable or looks_like_request(first, 0, kinds) or is_whole_request(first):
        return opener
    if not enough and begins_request(first, kinds):
        return opener if both or connection.finished else None
    return NotKafka.of(connection, new) if enough or connection.finished or both else None


def at_last(connection: Connection, new: Both) -> NotKafka | None:
    """What an undecided connection is at its end; None if too few bytes were captured."""
    found = NotKafka.of(connection, new)
    return found if found.verdict.known or sum(found.sizes) >= ENOUGH else None


def _shorten(pieces: list[Piece]) -> None:
    """Keeps the beginning, for a verdict, and the end, where a request may begin."""
    have = sum(len(piece.data) for piece in pieces)
    if have <= HEAD + TAIL:
        return
    first, kept = pieces[0], 0
    at = len(pieces)
    while kept < TAIL:
        at -= 1
        kept += len(pieces[at].data)
    last = rest(*pieces[at][:5], max(kept - TAIL, 0))
    head = first._replace(data=first.data[:HEAD])
    pieces[: at + 1] = [head, last._replace(missing=last.position - head.position - len(head.data))]


class NotKafka:
    """A connection that is not Kafka, judged by the first bytes of both directions. client: the opener's side."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.heads = [b"", b""]
        self.sizes = [0, 0]
        self.seen = True  # whether the capture holds packets of both sides

    @classmethod
    def of(cls, connection: Connection, new: Both) -> NotKafka:
        """Made from a connection's pieces."""
        made = cls(connection.opener or 0)
        made.more(new)
        made.sizes = [stream.position - stream.missing for stream in connection.streams]
        made.seen = all(stream.syn is not None or stream.next is not None for stream in connection.streams)
        return made

    def more(self, new: Both) -> None:
        """Adds pieces; only the first HEAD bytes of a direction are kept."""
        for side in (0, 1):
            for piece in new[side]:
                self.sizes[side] += len(piece.data)
                if len(self.heads[side]) < HEAD:
                    self.heads[side] += piece.data[: HEAD - len(self.heads[side])]

    @property
    def verdict(self) -> Verdict:
        """What protocol it is, by the client's bytes, else by the server's."""
        client, server = self.heads[self.client], self.heads[1 - self.client]
        found = judge(client) or judge(server)
        if found is not None:
            return found
        first = client or server
        size = int.from_bytes(first[:4], "big", signed=True) if len(first) >= 4 else None
        begin = first[:4]  # later bytes may be a password
        text = f'"{begin.decode()}"' if begin.isascii() and begin.decode().isprintable() else begin.hex(" ")
        shown = f"begins with {text}" if first else "no bytes"
        return Verdict(UNKNOWN, shown, size, "")

    @property
    def is_tls(self) -> bool:
        """Whether it is TLS."""
        return self.verdict.what.startswith("TLS")

    @property
    def is_refused(self) -> bool:
        """Whether a ClientHello got no ServerHello although both sides were captured: nothing is encrypted then."""
        if self.verdict.what != HELLO or not self.seen:
            return False
        server = judge(self.heads[1 - self.client])
        return server is None or server.what != "TLS ServerHello"

    @property
    def logged(self) -> str | None:
        """What the broker will have logged; None where the server speaks the client's protocol."""
        server = judge(self.heads[1 - self.client])
        understood = server is not None and server.what.split(" ")[0] == self.verdict.what.split(" ")[0]
        return None if understood else self.verdict.logged

    @property
    def advice(self) -> str | None:
        """What the user can do about it."""
        server = judge(self.heads[1 - self.client])
        if server is not None and server.what == "TLS ServerHello":
            return "Encrypted: only the keys of the session would show what is inside."
        if self.is_refused:
            if server is not None and server.what.startswith("TLS"):
                return "Not encrypted: the server speaks TLS and refused the handshake; its alert says why."
            return "Not encrypted: no ServerHello came. A listener without TLS hangs up on a ClientHello."
        return self.verdict.advice or None

    @property
    def answer(self) -> str | None:
        """The server's protocol and every unencrypted TLS alert, as text; None when there is neither."""
        client, server = self.heads[self.client], self.heads[1 - self.client]
        said = []
        answered = judge(server) if judge(client) and server else None
        if answered is not None and answered.what != "TLS alert":
            said.append(f"answered by {answered.what}{f' ({answered.detail})' if answered.detail else ''}")
        for who, head in (("the client", client), ("the server", server)):
            said += [f"{who} gave up with the alert {alert}" for alert in _alerts(head)]
        return "; ".join(said) or None


def _alerts(head: bytes) -> list[str]:
    """The unencrypted TLS alerts of a stream; encrypted ones are longer than two bytes."""
    out, pos = [], 0
    while pos + 5 <= len(head) and 20 <= head[pos] <= 23 and head[pos + 1] == 3:
        length = int.from_bytes(head[pos + 3 : pos + 5], "big")
        if head[pos] == ALERT and length == 2:
            alert = judge(head[pos : pos + 7])
            if alert is not None:
                out.append(alert.detail)
        pos += 5 + length
    return out
