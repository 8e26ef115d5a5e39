"""Reads big-endian numbers at many places of a buffer at once, with numpy.

An overlapping view has an element at every offset, so that indexing it with offsets reads them all.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Bytes = bytes | memoryview


def repeat(values: ArrayLike, counts: Ints) -> NDArray[Any]:
    """np.repeat, which itself refuses 64-bit counts where the machine has 32 bits, as in a browser."""
    return np.repeat(values, counts.astype(np.intp, copy=False))


def tally(places: NDArray[Any], weights: ArrayLike | None = None, size: int = 0) -> NDArray[Any]:
    """np.bincount, for the same reason: how often each of 0, 1, … size - 1 and more stands in places, or the sums of
    the weights there, as floating-point numbers."""
    return np.bincount(places.astype(np.intp, copy=False), weights, size)


def places_of(values: Ints, count: int) -> list[Ints]:
    """For each of 0, 1, … count - 1 the places where it stands in values, in ascending order. All are found together,
    in the time that a few would take one by one."""
    order = np.argsort(values.astype(np.uint16) if count <= 1 << 16 else values, kind="stable")  # 16 bits: by counting
    bounds = np.searchsorted(values[order], np.arange(count + 1)).tolist()
    return [order[low:high] for low, high in pairwise(bounds)]


class Columns:
    """Numbers at any offsets of a buffer, all at once. Offsets beyond the end read whatever stands at the end: whoever
    asks checks the bounds first or masks afterwards."""

    def __init__(self, buffer: Bytes) -> None:
        self.size = len(buffer)
        if self.size < 8:
            buffer = bytes(buffer) + bytes(8 - self.size)
        self._buffer = buffer
        self._views: dict[int, NDArray[Any]] = {
            width: np.ndarray((len(buffer) - width + 1,), f">u{width}", buffer, strides=(1,)) for width in (1, 2, 4, 8)
        }

    def _pick(self, view: NDArray[Any], offsets: Ints) -> NDArray[Any]:
        """view[offsets]; take() would first copy the whole of a view that overlaps itself."""
        if offsets.max(initial=0) >= len(view):
            offsets = np.minimum(offsets, len(view) - 1)
        return view[offsets]

    def _read(self, width: int, offsets: Ints) -> Ints:
        return self._pick(self._views[width], offsets).astype(np.int64)

    def bytes(self, offsets: Ints, shift: int = 0) -> NDArray[np.uint8]:
        """The bytes that lie shift, which is not negative, behind the offsets; as bytes, which is less to read."""
        return self._views[1][shift:].take(offsets.astype(np.intp, copy=False), mode="clip")

    def u8(self, offsets: Ints) -> Ints:
        return self.bytes(offsets).astype(np.int64)

    def u16(self, offsets: Ints) -> Ints:
        return self._read(2, offsets)

    def u32(self, offsets: Ints) -> Ints:
        return self._read(4, offsets)

    def records(self, dtype: np.dtype[Any], offsets: Ints) -> NDArray[Any]:
        """What lies at the offsets, each a record of this dtype, in the buffer's byte order; all zero where the buffer
        is shorter than one."""
        count = self.size - dtype.itemsize + 1
        if count < 1:
            return np.zeros(len(offsets), dtype)
        view: NDArray[Any] = np.ndarray((count,), f"V{dtype.itemsize}", self._buffer, strides=(1,))
        return self._pick(view, offsets).view(dtype)

    def numbers(self, dtype: str, offsets: Ints) -> NDArray[Any]:
        """Values of a big-endian dtype, as >i4, in the machine's own order."""
        kind = np.dtype(dtype)
        return self.records(kind, offsets).astype(kind.newbyteorder("="))

    def u64(self, offsets: Ints) -> NDArray[np.uint64]:
        return self._pick(self._views[8], offsets).astype(np.uint64)
