"""Finds topic names that captures give later than they are needed, by searching the files' bytes.

Responses hold a topic's name right before or behind its id. So the id is searched for in the raw files, a fraction of a
second per gigabyte, and the string beside it is the name. Where a packet boundary may lie between both, or a file is
compressed, Unclear is raised: then the captures must be read.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import UUID

from kwire.capture.source import is_compressed

LONGEST = 249  # bytes; Kafka's limit for topic names
HALF = 8  # bytes of an id
WINDOW = 8 << 20  # bytes
LEGAL = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
legal = re.compile(rb"[a-zA-Z0-9._-]*").match


class Unclear(Exception):
    """The search is not conclusive."""


class TopicSearch:
    """name(id) gives a topic's name if one of the files holds it. sought: number of searches; window: bytes of a file
    in memory at a time, a multiple of a page."""

    def __init__(self, paths: Iterable[str | Path], window: int = WINDOW) -> None:
        self._paths, self._window = list(paths), window
        self._files: list[mmap.mmap] | None = None
        self.sought = 0

    def name(self, ident: UUID) -> str | None:
        """The topic's name, None when no file holds it. Raises Unclear, OSError."""
        if self._files is None:
            self._files = [_opened(path) for path in self._paths if Path(path).stat().st_size]
        self.sought += 1
        doubtful = False
        for file in self._files:
            for begin in _places(file, ident.bytes, self._window):
                if begin is None:
                    doubtful = True
                    continue
                name, unsure = _beside(file, begin)
                if name is not None:
                    return name.decode()
                doubtful |= unsure
        if doubtful:
            raise Unclear
        return None


def _opened(path: str | Path) -> mmap.mmap:
    with open(path, "rb") as file:
        if is_compressed(file.read(4)):
            raise Unclear
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _places(file: mmap.mmap, ident: bytes, window: int) -> Iterator[int | None]:
    """The offsets of the id; None for each half of it alone, whose other half may be in another packet."""
    first, second = ident[:HALF], ident[HALF:]
    for at in _finds(file, first, window):
        yield at if file[at + HALF : at + 2 * HALF] == second else None
    for at in _finds(file, second, window):
        if file[max(at - HALF, 0) : at] != first:
            yield None


def _finds(file: mmap.mmap, what: bytes, window: int) -> Iterator[int]:
    """The offsets of these bytes. Searched windows are released from memory."""
    for low in range(0, len(file), window):
        end = min(low + window + len(what) - 1, len(file))
        at = file.find(what, low, end)
        while at >= 0:
            yield at
            at = file.find(what, at + 1, end)
        if hasattr(mmap, "MADV_DONTNEED"):
            file.madvise(mmap.MADV_DONTNEED, low, min(window, len(file) - low))


def _beside(file: mmap.mmap, begin: int) -> tuple[bytes | None, bool]:
    """The name beside the id at begin (a compact string), or None; and whether a name may be cut there."""
    near = file[begin + 2 * HALF : begin + 2 * HALF + 3]
    if file[begin - 1] not in LEGAL and LEGAL.isdisjoint(near[1:]):
        return None, False
    before = file[max(begin - LONGEST - 2, 0) : begin]
    run = len(legal(before[::-1])[0])  # type: ignore[index]
    for size in range(min(run, LONGEST), 0, -1):
        if before[: len(before) - size].endswith(_length(size)):
            return before[len(before) - size :], False
    behind = file[begin + 2 * HALF : begin + 2 * HALF + LONGEST + 2]
    size, at = _size_at(behind)
    found = legal(behind, at)[0] if 0 < size <= LONGEST else b""  # type: ignore[index]
    if found and len(found) >= size:
        return found[:size], False
    return None, run > 0 or len(found) > 0


def _length(size: int) -> bytes:
    """The length prefix of a compact string of size bytes."""
    size += 1
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])


def _size_at(data: bytes) -> tuple[int, int]:
    """The size of the compact string at the beginning of data, and the offset of its text."""
    if len(data) < 2:
        return 0, 0
    return (data[0] - 1, 1) if data[0] < 128 else ((data[0] & 127) + (data[1] << 7) - 1, 2)
