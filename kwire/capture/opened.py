"""Connections that open within a block of packets, complete and in order: the bytes of thousands of them become columns
at once."""

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
    """Many streams in one buffer. base, length: each stream's offset and bytes in it; position: of its first byte in
    the stream; mark_at, mark_time (ns), mark_packet: offset, time and number of each packet."""

    buffer: bytes
    base: Ints
    length: Ints
    position: Ints
    mark_at: Ints
    mark_time: Ints
    mark_packet: Ints


class OpenedConnections:
    """The connections in the order of their first packets, each with its two flows in the block, the opener's first.

    columns() gives their bytes; settle() turns a connection's bytes into ordinary pieces instead.
    """

    def __init__(self, block: Flows) -> None:
        self.connections: list[Connection] = []
        self.flows: list[int] = []  # two of each
        self._block = block

    def add(self, connection: Connection, flows: Sequence[int]) -> None:
        self.connections.append(connection)
        self.flows += flows

    def open(self) -> Iterator[int]:
        """Opens the connections. Returns the indexes of those whose FINs and RSTs are still to be added."""
        flows = self._block.openings(self.flows)
        for at, (connection, ask, answer) in enumerate(zip(self.connections, flows, flows, strict=True)):
            if not connection.open_whole(ask, answer):
                yield at

    def columns(self) -> StreamColumns:
        """The bytes of all connections, two streams each."""
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
        """Turns the bytes of a connection into pieces of its streams."""
        for stream, flow in zip(self.connections[at].streams, self.flows[2 * at : 2 * at + 2], strict=True):
            low, high = self._block.data[flow], self._block.bounds[flow + 1]
            stream.pieces.append(Piece(0, *self._block.joined(low, high, 0)))

    def settle_all(self) -> None:
        for at in range(len(self.connections)):
            self.settle(at)
