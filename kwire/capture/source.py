"""A capture's bytes, a window at a time: a file, gzip or zstd of one, stdin, a file that still grows.

The reader says how many bytes it used; the next window begins behind them and holds more. A plain file is mapped into
memory, and its windows end at multiples of their size, so that they are the same for readers of a part of the file.
Everything else is read in pieces; a compressed file is never expanded as a whole.
"""

from __future__ import annotations

import gzip
import io
import mmap
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from kwire.errors import CaptureError

WINDOW = 8 << 20  # bytes handed out at a time
PIECE = 1 << 20  # bytes unpacked at a time, at most
POLL = 0.2  # seconds between two looks at a file that grows
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Source:
    """window(skip) drops skip bytes and gives a view of what follows. ended: the view reaches to the end of the input.

    name is the file's name, or stdin. done and size, in bytes of the file, are for a progress bar (size None: unknown).
    problem says why the bytes ended early, when they did. content: the bytes, or an open file, if it is not a file of
    this machine. pause: waits so many seconds between two looks at a file that grows, or less.
    """

    def __init__(
        self, path: str | Path, *, follow: bool = False, window: int = WINDOW,
        content: memoryview | BinaryIO | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.name = "stdin" if str(path) == "-" else Path(path).name
        self.ended = False
        self.problem: str | None = None
        self.done = 0
        self.size: int | None = None
        self._window = window
        self._follow = follow
        self._held = b""
        self._mapped: memoryview | None = None
        self._map: mmap.mmap | None = None
        self._file: io.BufferedReader[Any] | None = None
        self._pos = 0
        self._windows = 0
        self._gone = 0
        self._packed = False
        self.pause: Callable[[float], object] = time.sleep
        if content is not None:
            self._take(content)
            return
        if str(path) == "-":
            self._open_stream(sys.stdin.buffer)
            return
        file = open(path, "rb")  # noqa: SIM115
        found = os.fstat(file.fileno())
        if stat.S_ISDIR(found.st_mode):
            file.close()
            raise IsADirectoryError(21, "is a directory", str(path))
        if stat.S_ISREG(found.st_mode):
            self.size = found.st_size
        head = file.peek(4)[:4]
        if stat.S_ISREG(found.st_mode) and not follow and found.st_size and not is_compressed(head):
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._mapped = memoryview(self._map)
            file.close()
        else:
            self._open_stream(file)

    def _take(self, content: memoryview | BinaryIO) -> None:
        if not isinstance(content, memoryview):
            self.size = content.seek(0, io.SEEK_END)
            content.seek(0)
            self._open_stream(io.BufferedReader(content, self._window))  # type: ignore[type-var]
            return
        self.size = len(content)
        if is_compressed(bytes(content[:4])):
            self._open_stream(io.BytesIO(content))
        else:
            self._mapped = content

    def _open_stream(self, file: BinaryIO) -> None:
        buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)  # type: ignore[type-var]
        head = buffered.peek(4)[:4]
        if len(head) < 4 and not self._follow:  # a pipe may bring its first bytes one by one
            head = buffered.read(4)
            buffered = io.BufferedReader(_Begun(head, buffered))
        self._file = buffered
        self._pieces = self._plain()
        self._packed = is_compressed(head)
        if self._packed:
            if self._follow:
                raise CaptureError(self.name, "a compressed file cannot be followed")
            self._pieces = self._unpacked(_gunzip if head[:2] == GZIP else _unzstd)

    def close(self) -> None:
        """Ends reading. Mapped memory is released with the last view of it."""
        self._mapped = None
        if self._file is not None and self.name != "stdin":
            self._file.close()

    def behind(self, used: int) -> int | None:
        """The file offset behind so many bytes of the window; None if go_to cannot go there."""
        if self._mapped is not None:
            return self._pos + used
        return None if self.size is None or self._packed else self.done - len(self._held) + used

    def go_to(self, pos: int) -> None:
        """Lets the first window of a mapped file begin there."""
        self._pos, self._windows = pos, pos // self._window

    @property
    def follows(self) -> bool:
        """Whether the input may grow."""
        return self._follow

    def window(self, skip: int) -> memoryview:
        """The next window, behind the first skip bytes of the one before."""
        if self._mapped is not None:
            self._pos += skip
            self._windows += 1
            end = min(len(self._mapped), self._windows * self._window)
            self.ended = end == len(self._mapped)
            self.done = self._pos
            self._let_go(self._pos)
            return self._mapped[self._pos : end]
        wanted = self._window if skip else max(self._window, 2 * len(self._held))
        parts = [self._held[skip:]]
        have = len(parts[0])
        while have < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                self.ended = True
                break
            parts.append(piece)
            have += len(piece)
            if self._live:
                break
        self._held = b"".join(parts)
        return memoryview(self._held)

    def _let_go(self, pos: int) -> None:
        """Releases the memory pages before the position; they are read again if a view still needs them."""
        before = pos // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and before > self._gone and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, self._gone, before - self._gone)
            self._gone = before

    @property
    def _live(self) -> bool:
        """Whether bytes come as they are written; then a window need not be full."""
        return self._follow or self.size is None

    def _plain(self) -> Iterator[bytes]:
        while True:
            assert self._file is not None
            piece = self._file.read1(self._window)
            if piece:
                self.done += len(piece)
                yield piece
            elif self._follow:
                self.pause(POLL)
                yield b""
            else:
                return

    def _unpacked(self, unpack: Callable[[BinaryIO, int], Iterator[bytes]]) -> Iterator[bytes]:
        assert self._file is not None
        counted = _Counted(self._file, self)
        try:
            yield from unpack(counted, min(self._window, PIECE))  # type: ignore[arg-type]
        except (EOFError, zlib.error, OSError) as error:
            self.problem = f"the compressed file is damaged or cut: {str(error)[:120]}"


class _Counted(io.RawIOBase):
    """Tells the source how much of the compressed file is done."""

    def __init__(self, file: BinaryIO, source: Source) -> None:
        self.file, self.source = file, source

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        piece = self.file.read(len(into))
        into[: len(piece)] = piece
        self.source.done += len(piece)
        return len(piece)


class _Begun(io.RawIOBase):
    """A file of which the first bytes were read already."""

    def __init__(self, head: bytes, file: io.BufferedReader[Any]) -> None:
        self.head, self.file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        piece = self.head[: len(into)] or self.file.read1(len(into))
        self.head = self.head[len(piece) :]
        into[: len(piece)] = piece
        return len(piece)


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins with these four bytes is gzip or zstd."""
    return head[:2] == GZIP or head == ZSTD


def _gunzip(file: BinaryIO, most: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as plain:
        while piece := plain.read1(most):
            yield piece


def _unzstd(file: BinaryIO, most: int) -> Iterator[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    try:
        with zstd.ZstdFile(file) as plain:
            while piece := plain.read1(most):
                yield piece
    except zstd.ZstdError as error:
        raise OSError(str(error)) from error
