"""Splits: ranges of capture files that are read separately, and their packets.

A packet belongs to the split in which it ends. In a split that begins inside the file, the first packet is found by a
chain of plausible headers. This guess is checked against where the split before ended; if it was wrong, plan.py has the
split read again from there. Compressed files, damaged files and those whose interfaces change are one split.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from struct import Struct, unpack_from
from typing import Any

from kwire.capture import pcap, pcapng, source
from kwire.capture.files import Capture
from kwire.capture.packets import Packets
from kwire.capture.record_starts import RECORD
from kwire.capture.source import Source
from kwire.errors import CaptureError
from kwire.pipeline.stores import Stores, mapped, opened, size_of

SIZE = 128 << 20  # bytes of a split
CHAIN = 12  # consecutive plausible packets that make a guess
SEARCHED = 1 << 24  # bytes in which they are searched
HEAD = 1 << 20  # bytes of a pcapng file that must hold its interface descriptions
BACK = 1 << 18  # bytes before the split in which the search begins


@dataclass(frozen=True, slots=True)
class Split:
    """Bytes start to end of a file of size bytes; number counts the splits of the file. at: where the first packet
    begins, if known. why: why the file cannot be split. store: its file system (stores.py)."""

    path: str
    start: int
    end: int
    size: int
    number: int = 0
    at: int | None = None
    why: str | None = None
    store: Any = field(default=None, compare=False, repr=False)

    @property
    def whole(self) -> bool:
        """Whether it is all of the file."""
        return self.start == 0 and self.end >= self.size


@dataclass(slots=True)
class SplitReader:
    """Reads a split. blocks() gives its packets, numbered from 1, with the number of their window.

    begin, reached: file offsets of its first packet and of the first one behind it. odd: why the file cannot be split
    after all. base: file offset of the block's buffer, None if not known.
    """

    split: Split
    window: int = field(default_factory=lambda: source.WINDOW)
    begin: int = 0
    reached: int = 0
    odd: str | None = None
    notes: list[str] = field(default_factory=list)
    base: int | None = None
    drops: dict[int, int] = field(default_factory=dict)
    dropped: int = 0
    packets: int = 0

    @property
    def aligned(self) -> bool:
        """Whether its blocks are the same as when the file is read from the beginning."""
        split = self.split
        return split.whole or (
            split.start % self.window == 0 and (split.end % self.window == 0 or split.end == split.size)
        )

    def blocks(self) -> Iterator[tuple[int, Packets]]:
        """(window number, packets). Raises OSError, CaptureError."""
        yield from self._whole() if self.split.whole else self._part()

    def _whole(self) -> Iterator[tuple[int, Packets]]:
        """Reads the whole file; every block counts as a window."""
        capture = Capture(self._source())
        for number, packets in enumerate(capture.blocks()):
            self.packets += len(packets)
            self.base = capture.source.behind(0) if self.split.why is None else None
            yield number, packets
        self.notes, self.dropped, self.reached = capture.notes, capture.dropped, self.split.end

    def _source(self) -> Source:
        split = self.split
        if split.store is None:
            return Source(split.path, window=self.window)
        if split.why is None:  # no larger than a split
            view = mapped(split.path, split.store, split.size, [(0, split.size)])
            return Source(split.path, window=self.window, content=view)
        return Source(split.path, window=self.window, content=opened(split.path, split.store))

    def _part(self) -> Iterator[tuple[int, Packets]]:
        split = self.split
        low = split.start if split.at is None else split.at
        searched = split.start + SEARCHED if split.at is None else 0
        view = mapped(split.path, split.store, split.size, [(0, HEAD), (max(low - BACK, 0), max(split.end, searched))])
        if len(view) < split.end:
            raise CaptureError(Path(split.path).name, f"had {split.size:,} bytes, has {len(view):,}")
        reader, pos = _reader(view, split)
        self.begin, number = pos, split.start // self.window
        while pos < split.end:
            number += 1
            stop = min(number * self.window, split.end)
            if stop <= pos:
                continue
            self.base = pos
            found, used = reader.read(view[pos:stop], stop == split.size)
            for packets in found:
                self.packets += len(packets)
                yield number, packets
            pos += used
            if stop == split.end:
                break
        self.reached = pos
        self.notes = reader.notes
        if reader.notes:
            self.odd = "it is damaged"
        if isinstance(reader, pcapng.PcapngReader):
            self.drops = reader.drops
            self.odd = self.odd or (None if reader.plain else "its interfaces change")


def plan(
    paths: Sequence[str | Path], size: int = SIZE, window: int | None = None, stores: Stores | None = None
) -> list[Split]:  # fmt: skip
    """The splits of these files, in order. size: bytes, rounded up to whole windows; smaller ones do not cross the end
    of a window. Raises OSError."""
    found = stores or Stores()
    return [split for path in paths for split in _of_file(str(path), size, window or source.WINDOW, found)]


def whole(split: Split, why: str) -> Split:
    """A split of the whole file. why: why it cannot be split."""
    return replace(split, start=0, end=split.size, number=0, at=None, why=why)


def expand(paths: Sequence[str | Path]) -> list[str]:
    """Replaces folders by their files, sorted, without hidden ones. Raises OSError."""
    out: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
            out += [full for name in names if os.path.isfile(full := os.path.join(path, name))]
        else:
            os.stat(path)
            out.append(str(path))
    return out


def _of_file(path: str, size: int, window: int, stores: Stores) -> list[Split]:
    store = stores.of(path)
    length = stores.sizes.get(path, size + 1)
    if length <= size:  # not opened here, which saves a request
        return [Split(path, 0, length, length, store=store)]
    with opened(path, store) as file:
        length, head = size_of(file), file.read(4)
    if source.is_compressed(head):
        return [Split(path, 0, length, length, why="it is compressed", store=store)]
    if head not in pcap.MAGICS and head != pcapng.MAGIC:
        return [Split(path, 0, length, length, why="it is no capture", store=store)]
    if size >= window:
        size = (size + window - 1) // window * window
    ends = sorted({*range(size, length, size), *(range(window, length, window) if size < window else ()), length})
    return [Split(path, low, high, length, at, store=store) for at, (low, high) in enumerate(pairwise([0, *ends]))]


def _reader(view: memoryview, split: Split) -> tuple[pcap.PcapReader | pcapng.PcapngReader, int]:
    """A reader that has read the file's head, and where the first packet in the split may begin."""
    name = Path(split.path).name
    reader: pcap.PcapReader | pcapng.PcapngReader
    if bytes(view[:4]) in pcap.MAGICS:
        reader, head = pcap.PcapReader(bytes(view[: pcap.HEADER]), name), pcap.HEADER
    else:
        reader, head = pcapng.PcapngReader(name), _packets_begin(view)
        if split.start == 0:
            return reader, 0
        reader.read(view[:head], False)
    begin = split.at
    if begin is None:
        begin = _begin(view, max(split.start, head), head, reader)
    reader.go_to(begin)
    return reader, begin


def _begin(view: memoryview, start: int, head: int, reader: pcap.PcapReader | pcapng.PcapngReader) -> int:
    """The offset of the first packet that ends behind start; the end of the searched bytes when none is found.

    The search begins before start, as that packet may.
    """
    low, ahead = max(start - BACK, head), view[: start + SEARCHED]
    if isinstance(reader, pcap.PcapReader):
        word, place, extra = Struct(reader.order + "I").unpack_from, 8, RECORD
        found = low if low == head else pcap.find_record(ahead, low, reader.order, 0, CHAIN)
    else:
        word, place, extra = Struct(reader.order + "I").unpack_from, 4, 0
        chains = (at for at in range(low + -low % 4, min(start + pcap.AHEAD, len(view)), 4) if _chain(ahead, at, word))
        found = low if low == head else next(chains, None)
    if found is None:
        return len(ahead)
    while found + 12 <= len(view):
        following: int = found + extra + word(view, found + place)[0]
        if following > start or following <= found:
            break
        found = following
    return found


def _packets_begin(view: memoryview) -> int:
    """The offset of the first packet of a pcapng file."""
    pos, end = 0, min(len(view), HEAD)
    order = "<" if len(view) > 12 and bytes(view[8:12]) == pcapng.BYTE_ORDER.to_bytes(4, "little") else ">"
    while pos + 12 <= end:
        kind, length = unpack_from(order + "II", view, pos)
        if kind in (pcapng.PACKET, pcapng.SIMPLE, pcapng.OLD_PACKET) or length < 12 or length % 4:
            break
        pos += length
    return min(pos, end)


def _chain(view: memoryview, at: int, word: Callable[[memoryview, int], tuple[int]]) -> bool:
    """Whether consecutive blocks begin there, each with its length at both ends."""
    for _ in range(CHAIN):
        if at + 12 > len(view):
            return True
        (length,) = word(view, at + 4)
        if length < 12 or length % 4 or length > pcapng.MAX_BLOCK:
            return False
        if at + length > len(view):
            return True
        if word(view, at + length - 4)[0] != length:
            return False
        at += length
    return True
