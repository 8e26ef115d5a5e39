"""Connections that open within a block of packets and of which nothing is missing or out of order: their bytes stay
where they are, so that those of thousands of connections become columns at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kwire.capture.packets import Ints
from kwire.capture.streams import Piece
from kwire.wire.columns import repeat

if TYPE_CHECKING:
    from kwire.capture.connection import Connection
    from kwire.capture.flows import Flows


@dataclass(slots=True, eq=False)
class StreamColumns:
    """Bytes of many streams in one buffer: where each stream begins in it, how many bytes it has there, the position of
    the first one in the stream, and where in the buffer each packet begins, with its time (ns) and number."""

    buffer: bytes
    base: Ints
    length: Ints
    position: Ints
    mark_at: Ints
    mark_time: Ints
    mark_packet: Ints


class OpenedConnections:
    """The connections, in the order of their first packets, and of each its two flows in the block, the opener's first.

    Whoever takes their bytes uses columns(), and settle() for those that are to be read as all others are."""

    def __init__(self, block: Flows) -> None:
        self.connections: list[Connection] = []
        self.flows: list[int] = []  # two of each
        self._block = block

    def add(self, connection: Connection, flows: Sequence[int]) -> None:
        self.connections.append(connection)
        self.flows += flows

    def open(self) -> Iterator[int]:
        """The connections begin as the block says. Gives the places of those whose ends are still to be added."""
        flows = self._block.openings(self.flows)
        for at, (connection, ask, answer) in enumerate(zip(self.connections, flows, flows, strict=True)):
            if not connection.open_whole(ask, answer):
                yield at

    def columns(self) -> StreamColumns:
        """All their bytes, two streams of each connection."""
        block = self._block
        low, counts = block.data_at(np.array(self.flows, np.intp))
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        rows = repeat(low - (ends - counts), counts) + np.arange(total)
        sizes = np.concatenate(([0], np.cumsum(block.lengths[rows])))
        base = sizes[ends - counts]
        return StreamColumns(
            block.bytes_of(rows), base, sizes[ends] - base, np.zeros(len(base), np.int64),
            sizes[:-1], block.time[rows], block.number[rows],
        )  # fmt: skip

    def settle(self, at: int) -> None:
        """The bytes of a connection become pieces of its streams."""
        for stream, flow in zip(self.connections[at].streams, self.flows[2 * at : 2 * at + 2], strict=True):
            low, high = self._block.data[flow], self._block.bounds[flow + 1]
            stream.pieces.append(Piece(0, *self._block.joined(low, high, 0)))

    def settle_all(self) -> None:
        for at in range(len(self.connections)):
            self.settle(at)
