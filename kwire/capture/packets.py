"""A block of packets as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kwire.wire.columns import Columns, Ints

if TYPE_CHECKING:
    from kwire.capture.cuts import Cut

__all__ = ["UNKNOWN_LINK", "Columns", "Ints", "Packets", "packets_of"]
UNKNOWN_LINK = 0xFFFF


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """Packets that lie in one buffer.

    number counts from 1 over the whole capture; time is ns since the Unix epoch; start and captured say where the bytes
    are; length is how long the packet was on the wire; link is the link type (LINKTYPE_ of the pcap registry). secrets:
    TLS key logs before or among them. cuts: in a slice, by row, what was left out around a packet.
    """

    buffer: memoryview
    number: Ints
    time: Ints
    start: Ints
    captured: Ints
    length: Ints
    link: Ints
    secrets: tuple[bytes, ...] = ()
    cuts: Mapping[int, Cut] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.number)

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Packets:
        """Only these packets: a mask or indices."""
        rows = np.arange(len(self))[chosen].tolist() if self.cuts else ()
        return Packets(
            self.buffer, self.number[chosen], self.time[chosen], self.start[chosen], self.captured[chosen],
            self.length[chosen], self.link[chosen], self.secrets,
            {new: self.cuts[old] for new, old in enumerate(rows) if old in self.cuts},
        )  # fmt: skip


def packets_of(rows: list[tuple[bytes, int, int]], number: int) -> Packets:
    """Packets from (bytes, time in ns, link type). number: of the first."""
    sizes = np.array([len(data) for data, _, _ in rows], np.int64)
    numbers = np.arange(number, number + len(rows), dtype=np.int64)
    buffer = memoryview(b"".join(data for data, _, _ in rows))
    times = np.array([moment for _, moment, _ in rows], np.int64)
    links = np.array([link for _, _, link in rows], np.int64)
    return Packets(buffer, numbers, times, np.cumsum(sizes) - sizes, sizes, sizes, links)
