"""A block of packets as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kwire.wire.columns import Columns, Ints

__all__ = ["UNKNOWN_LINK", "Columns", "Ints", "Packets"]
UNKNOWN_LINK = 0xFFFF


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """Packets that lie in one buffer.

    number counts from 1 over the whole capture; time is ns since the Unix epoch; start and captured say where the bytes
    are; length is how long the packet was on the wire; link is the link type (LINKTYPE_ of the pcap registry). secrets:
    key logs of TLS that stood before or among them.
    """

    buffer: memoryview
    number: Ints
    time: Ints
    start: Ints
    captured: Ints
    length: Ints
    link: Ints
    secrets: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return len(self.number)

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Packets:
        """Only the packets that the mask or the indices choose."""
        return Packets(
            self.buffer, self.number[chosen], self.time[chosen], self.start[chosen], self.captured[chosen],
            self.length[chosen], self.link[chosen], self.secrets,
        )  # fmt: skip
