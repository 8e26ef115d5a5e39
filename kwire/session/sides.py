"""Which side of a connection is the broker, when no SYN tells; and what a connection is that is not Kafka."""

from __future__ import annotations

from kwire.capture.connections import Endpoint
from kwire.capture.streams import Piece
from kwire.codec.verdict import Verdict, judge
from kwire.session.kinds import Kinds
from kwire.session.resync import find_request, find_response, looks_like_request

ENOUGH = 14  # bytes that tell a request from anything else
HEAD = 4096  # bytes of each direction that are kept of what is not Kafka
ALERT = 21  # the type of a TLS record that holds one (RFC 8446 section 6)


class Brokers:
    """Endpoints that are brokers: those of the ports that were named, and those that a connection showed to be."""

    def __init__(self, ports: frozenset[int] = frozenset()) -> None:
        self.ports = ports
        self._seen: set[Endpoint] = set()

    def add(self, endpoint: Endpoint) -> None:
        if len(self._seen) < 100_000:
            self._seen.add(endpoint)

    def __contains__(self, endpoint: object) -> bool:
        return endpoint in self._seen or (isinstance(endpoint, tuple) and endpoint[1] in self.ports)


def client_of(
    ends: tuple[Endpoint, Endpoint], new: tuple[list[Piece], list[Piece]], known: Brokers, kinds: Kinds
) -> int | None:
    """The client's side; None when nothing tells."""
    brokers = [end in known for end in ends]
    if brokers[0] != brokers[1]:
        return brokers.index(False)
    data = [b"".join(piece.data for piece in pieces) for pieces in new]
    starts = [_offsets(pieces) for pieces in new]
    for side in (0, 1):
        if any(looks_like_request(data[side], at, kinds) for at in starts[side][:8]):
            return side
    for side in (0, 1):
        if find_request(data[side], starts[side], kinds) is not None:
            return side
    for side in (0, 1):  # responses alone are told by how they follow each other
        if not data[1 - side] and len(starts[side]) > 2 and find_response(data[side], starts[side], ()) is not None:
            return 1 - side
    return None


def _offsets(pieces: list[Piece]) -> list[int]:
    """Where packets begin in the pieces' bytes put together."""
    out, base = [], 0
    for piece in pieces:
        out += [base + start - piece.position for start in piece.starts if piece.data and start >= piece.position]
        base += len(piece.data)
    return out


def speaks(new: tuple[list[Piece], list[Piece]]) -> bool:
    """Whether both sides have sent something."""
    return all(any(piece.data for piece in pieces) for pieces in new)


class NotKafka:
    """What the first bytes of both directions say. client: the side that opened the connection."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.heads = [b"", b""]
        self.sizes = [0, 0]

    def more(self, new: tuple[list[Piece], list[Piece]]) -> None:
        """Adds what came; only the beginning is kept."""
        for side in (0, 1):
            for piece in new[side]:
                self.sizes[side] += len(piece.data)
                if len(self.heads[side]) < HEAD:
                    self.heads[side] += piece.data[: HEAD - len(self.heads[side])]

    @property
    def verdict(self) -> Verdict:
        """What it is, by what the client sent, else by what it got."""
        client, server = self.heads[self.client], self.heads[1 - self.client]
        found = judge(client) or judge(server)
        if found is not None:
            return found
        first = client or server
        size = int.from_bytes(first[:4], "big", signed=True) if len(first) >= 4 else None
        return Verdict("not recognized", f"begins with {first[:16].hex(' ')}" if first else "no bytes", size, "")

    @property
    def answer(self) -> str | None:
        """What the other side said to it: its own protocol, and every TLS alert that was not encrypted."""
        client, server = self.heads[self.client], self.heads[1 - self.client]
        said = []
        answered = judge(server) if judge(client) and server else None
        if answered is not None and answered.what != "TLS alert":
            said.append(f"answered by {answered.what}{f' ({answered.detail})' if answered.detail else ''}")
        for who, head in (("the client", client), ("the server", server)):
            said += [f"{who} gave up with the alert {alert}" for alert in _alerts(head)]
        return "; ".join(said) or None


def _alerts(head: bytes) -> list[str]:
    """The TLS alerts in the records of a stream that can be read; encrypted ones are longer than two bytes."""
    out, pos = [], 0
    while pos + 5 <= len(head) and 20 <= head[pos] <= 23 and head[pos + 1] == 3:
        length = int.from_bytes(head[pos + 3 : pos + 5], "big")
        if head[pos] == ALERT and length == 2:
            alert = judge(head[pos : pos + 7])
            if alert is not None:
                out.append(alert.detail)
        pos += 5 + length
    return out
