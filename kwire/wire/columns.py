"""Reads big-endian numbers at many places of a buffer at once, with numpy.

An overlapping view has an element at every offset, so that indexing it with offsets reads them all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = bytes | memoryview


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
