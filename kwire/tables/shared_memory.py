"""Memory that forked processes share: one writes pieces of bytes, the others look at them without a copy."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

ALIGNED = 64
AT_ONCE = 512  # pieces for one call; the least that POSIX grants is 16, what systems grant is 1024

Place = tuple[int, int]  # from, to
Piece = bytes | memoryview


class MemorySlot:
    """write(pieces) puts them in place of those before and says where each lies; look(place) gives one; close().

    It lies in memory as a file without a name, which grows. Raises OSError when there is no room."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("kwire")
        else:
            import tempfile

            with tempfile.TemporaryFile() as file:
                self._file = os.dup(file.fileno())
        self._seen: memoryview = memoryview(b"")

    def write(self, pieces: Sequence[Piece]) -> list[Place]:
        """Each piece begins at a multiple of 64 bytes."""
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
        if done < size:  # as of more than 2 GiB
            rest = b"".join(pieces)
            while done < size:
                done += os.pwrite(self._file, rest[done:], at + done)
        return at + size

    def look(self, place: Place) -> memoryview:
        """A piece, as long as nobody writes."""
        low, high = place
        if high > len(self._seen):
            self._seen = memoryview(mmap.mmap(self._file, 0, access=mmap.ACCESS_READ))
        return self._seen[low:high]

    def close(self) -> None:
        """It is not needed here any more. What was looked at stays."""
        os.close(self._file)
