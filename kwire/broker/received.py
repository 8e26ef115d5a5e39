"""Bytes of a connection that came and were not taken up yet: frames, each behind its size.

They are kept in the pieces that they came in, so that a large frame is put together once, when it is whole. Small
pieces are joined, and of a piece that was mostly taken the rest is copied: what is kept takes little more memory than
its bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from struct import Struct

SIZE = Struct(">i")
SMALL = 4 << 10  # bytes of a piece that is joined to the one before it


class ReceivedBytes:
    """size: what the first frame says of its size, None while that is not there; len(): bytes in all."""

    __slots__ = ("_count", "_pieces", "_taken", "size")

    def __init__(self) -> None:
        self.size: int | None = None
        self._pieces: deque[bytes | bytearray] = deque()
        self._taken = 0  # bytes of the first piece
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, data: bytes) -> None:
        pieces = self._pieces
        self._count += len(data)
        if not pieces or len(data) >= SMALL:
            pieces.append(data)
        elif isinstance(pieces[-1], bytearray):
            pieces[-1] += data
        else:
            pieces.append(bytearray(data))
        if self.size is None:
            self._read_size()

    def head(self, count: int) -> bytes:
        """How the first frame begins, behind its size."""
        return b"".join(self._range(4, count))

    def take(self) -> bytes | bytearray:
        """The first frame without its size, which is there as a whole; it is gone from here. What was put together is
        a bytearray that nobody else has."""
        assert self.size is not None
        first, begin, end = self._pieces[0], self._taken, self._taken + 4 + self.size
        frame = bytes(first[begin + 4 : end]) if end <= len(first) else bytearray().join(self._range(4, self.size))
        self._count -= end - begin
        self._drop(end)
        self._read_size()
        return frame

    def clear(self) -> None:
        self._pieces.clear()
        self._count = self._taken = 0
        self.size = None

    def _read_size(self) -> None:
        self.size = SIZE.unpack(b"".join(self._range(0, 4)))[0] if self._count >= 4 else None

    def _range(self, skip: int, count: int) -> Iterator[memoryview]:
        """Bytes from the front, the first so many skipped."""
        begin = self._taken + skip
        for piece in self._pieces:
            if not count:
                return
            part = memoryview(piece)[begin : begin + count]
            begin = max(begin - len(piece), 0)
            count -= len(part)
            yield part

    def _drop(self, count: int) -> None:
        """The first so many bytes, those of the first piece counted that were taken."""
        pieces = self._pieces
        while pieces and count >= len(pieces[0]):
            count -= len(pieces.popleft())
        self._taken = count
        if count and (isinstance(pieces[0], bytearray) or 2 * count > len(pieces[0])):
            pieces[0] = pieces[0][count:]
            self._taken = 0
