"""A block of packets as columns, and reading big-endian numbers at many places of it at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = bytes | memoryview
UNKNOWN_LINK = 0xFFFF


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """Packets that lie in one buffer.

    number counts from 1 over the whole capture; time is ns since the Unix epoch; start and captured say where the bytes
    are; length is how long the packet was on the wire; link is the link type (LINKTYPE_ of the pcap registry).
    """

    buffer: memoryview
    number: Ints
    time: Ints
    start: Ints
    captured: Ints
    length: Ints
    link: Ints

    def __len__(self) -> int:
        return len(self.number)

    def at(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Packets:
        """Only the packets that the mask or the indices choose."""
        return Packets(
            self.buffer, self.number[chosen], self.time[chosen], self.start[chosen], self.captured[chosen],
            self.length[chosen], self.link[chosen],
        )  # fmt: skip


class Columns:
    """Numbers at any offsets of a buffer, all at once. Offsets beyond the end read whatever stands at the end: whoever
    asks checks the bounds first or masks afterwards."""

    def __init__(self, buffer: Bytes) -> None:
        self.size = len(buffer)
        if self.size < 8:
            buffer = bytes(buffer) + bytes(8 - self.size)
        self._buffer = buffer
        self._views = {
            width: np.ndarray((len(buffer) - width + 1,), f">u{width}", buffer, strides=(1,)) for width in (1, 2, 4, 8)
        }

    def _read(self, width: int, offsets: Ints) -> Ints:
        view = self._views[width]
        found = view[np.minimum(offsets, len(view) - 1)]
        return found.astype(np.int64)

    def u8(self, offsets: Ints) -> Ints:
        return self._read(1, offsets)

    def u16(self, offsets: Ints) -> Ints:
        return self._read(2, offsets)

    def u32(self, offsets: Ints) -> Ints:
        return self._read(4, offsets)

    def u64(self, offsets: Ints) -> NDArray[np.uint64]:
        view = self._views[8]
        return view[np.minimum(offsets, len(view) - 1)].astype(np.uint64)
