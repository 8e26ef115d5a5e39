"""What travelled inside one direction of TLS, as pieces of a stream of its own, and where each record of it lies."""

from __future__ import annotations

from kwire.capture.streams import Piece
from kwire.capture.tls.facts import ApplicationRecord
from kwire.capture.tls.header import HEADER
from kwire.capture.tls.records import decrypted

MOST_NOTED = 1_000_000  # records of which the place is remembered


class Inside:
    """position: of what comes next, among all that travelled inside. ledger: where each record lies, if it is kept."""

    def __init__(self) -> None:
        self.out: list[Piece] = []
        self.position = 0
        self.ledger: list[ApplicationRecord] | None = None

    def take(self) -> list[Piece]:
        """The pieces since the last call."""
        out, self.out = self.out, []
        return out

    def add(
        self, piece: Piece, heads: list[int], sizes: list[int], content: bytes, lead: int, end: int, first: int
    ) -> None:
        """Contents of records of application data, of these sizes, in a row. heads: where the records begin in the
        piece's data; end: where the last one ends there; lead: bytes before what is encrypted; first: the number of
        the first record, from 1."""
        made = decrypted(piece, heads, sizes, content, lead, self.position)
        if self.ledger is not None and len(self.ledger) < MOST_NOTED:
            position = self.position
            for at, size in enumerate(sizes):
                length = (heads[at + 1] if at + 1 < len(heads) else end) - heads[at] - HEADER
                self.ledger.append(ApplicationRecord(position, size, first + at, length))
                position += size
        if made.data:
            self.out.append(made)
            self.position += len(made.data)

    def miss(self, length: int, piece: Piece) -> None:
        """The number of decrypted bytes that are missing before the piece's first byte."""
        if length > 0:
            self.position += length
            self.out.append(
                Piece(self.position, b"", [self.position], piece.times[:1], piece.numbers[:1], length, piece.cut)
            )
