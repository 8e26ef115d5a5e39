"""Memory shared by forked processes: one writes pieces of bytes, the others read them without a copy."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

ALIGNED = 64
AT_ONCE = 512  # pieces per pwritev call; Linux and macOS allow 1024

Place = tuple[int, int]  # begin, end
Piece = bytes | memoryview


class MemorySlot:
    """write(pieces) replaces the contents and returns the place of each piece; look(place) gives one; close() ends it.

    A nameless file in memory, which grows as needed. Raises OSError when there is no room.
    """

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("kwire")
        else:
            import tempfile

            with tempfile.TemporaryFile() as file:
                self._file = os.dup(file.fileno())
        self._seen: memoryview = memoryview(b"")

    def write(self, pieces: Sequence[Piece]) -> list[Place]:
        """Writes pieces, each aligned to 64 bytes; returns their places."""
        places: list[Place] = []
        padded: list[Piece] = []
        at = 0
        for piece in pieces:
            size = len(piece)
            places.append((at, at + size))
            padded += [piece, bytes(-size % ALIGNED)]
            at += size + -size % ALIGNED
        done = 0
        for low in range(0, len(padded), AT_ONCE):
            done = self._put(padded[low : low + AT_ONCE], done)
        return places

    def _put(self, pieces: Sequence[Piece], at: int) -> int:
        size = sum(len(piece) for piece in pieces)
        done = os.pwritev(self._file, pieces, at)
        if done < size:  # more than 2 GiB
            rest = b"".join(pieces)
            while done < size:
                done += os.pwrite(self._file, rest[done:], at + done)
        return at + size

    def look(self, place: Place) -> memoryview:
        """A view of a piece, valid until the next write."""
        low, high = place
        if high > len(self._seen):
            self._seen = memoryview(mmap.mmap(self._file, 0, access=mmap.ACCESS_READ))
        return self._seen[low:high]

    def close(self) -> None:
        """Closes the file; views stay valid."""
        os.close(self._file)
