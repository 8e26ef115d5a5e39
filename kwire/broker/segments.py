"""A partition's log as files, in Kafka's own format: segments with their indexes, named by their first offset.

NNN.log holds the batches as they travel; NNN.index has an entry for every 4 KiB of them (last offset less NNN,
position), NNN.timeindex one beside it (greatest timestamp so far, its offset less NNN), big-endian (Kafka's
OffsetIndex, TimeIndex). leader-epoch-checkpoint tells where epochs begin. A file is open only while it is written to.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import NamedTuple

from kwire.errors import KwireError
from kwire.records.batch import CRC_START, HEADER, SIZE, Header, crc32c
from kwire.records.read import walk

INTERVAL = 4096  # index.interval.bytes
SUFFIXES = (".log", ".index", ".timeindex")
EPOCHS = "leader-epoch-checkpoint"


class LogEntry(NamedTuple):
    """A batch in the log. last: offset of its last record; time: its greatest timestamp, ms."""

    base: int
    last: int
    time: int
    epoch: int
    data: bytes


class SegmentFiles:
    """limit: segment.bytes."""

    __slots__ = ("_base", "_epochs", "_last_indexed", "_limit", "_newest", "_size", "folder")

    def __init__(self, folder: Path, limit: Callable[[], int]) -> None:
        self.folder, self._limit = folder, limit
        self._epochs: list[tuple[int, int]] = []
        self._begin(0)

    def _begin(self, base: int) -> None:
        self._base, self._size, self._last_indexed, self._newest = base, 0, 0, (-1, base)

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self._base:020d}{suffix}"

    def append(self, entry: LogEntry) -> None:
        """Raises OSError."""
        self._place(entry)
        with self._path(".log").open("ab") as file:
            file.write(entry.data)
        self._size += len(entry.data)

    def _place(self, entry: LogEntry) -> None:
        """What stands beside the batch: its segment, its index entries, its epoch."""
        if self._size and self._size + len(entry.data) > self._limit():
            self._begin(entry.base)
        if not self._size:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self._path(".log").exists():
                self._begin(entry.base)
        if entry.time > self._newest[0]:
            self._newest = entry.time, entry.last
        if self._size - self._last_indexed > INTERVAL:
            with self._path(".index").open("ab") as file:
                file.write(pack(">ii", entry.last - self._base, self._size))
            with self._path(".timeindex").open("ab") as file:
                file.write(pack(">qi", self._newest[0], self._newest[1] - self._base))
            self._last_indexed = self._size
        if not self._epochs or self._epochs[-1][0] != entry.epoch:
            self._epochs.append((entry.epoch, entry.base))
            rows = "".join(f"{epoch} {base}\n" for epoch, base in self._epochs)
            (self.folder / EPOCHS).write_text(f"0\n{len(self._epochs)}\n{rows}", "utf-8")

    def rewrite(self, entries: Iterable[LogEntry]) -> None:
        """The whole log anew, after what is no appending. Raises OSError."""
        self._clear()
        self._epochs.clear()
        self._begin(0)
        for entry in entries:
            self.append(entry)

    def drop_before(self, offset: int) -> None:
        """Segments that end before it."""
        bases = sorted(int(path.stem) for path in self.folder.glob("*.log"))
        for base, following in pairwise(bases):
            if following <= offset:
                for suffix in SUFFIXES:
                    (self.folder / f"{base:020d}{suffix}").unlink(missing_ok=True)

    def delete(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _clear(self) -> None:
        for suffix in SUFFIXES:
            for path in self.folder.glob(f"*{suffix}"):
                path.unlink()

    def read(self) -> Iterator[LogEntry]:
        """The batches that are there. What is cut or damaged, as after a crash, ends the log: it is cut off. Raises
        OSError."""
        paths = sorted(self.folder.glob("*.log"))
        for number, path in enumerate(paths):
            self._begin(int(path.stem))
            data, whole = path.read_bytes(), 0
            for start, end in _walked(data):
                entry = _entry(data[start:end])
                if entry is None:
                    break
                whole = end
                if not self._epochs or self._epochs[-1][0] != entry.epoch:
                    self._epochs.append((entry.epoch, entry.base))
                yield entry
            self._size = self._last_indexed = whole
            if whole < len(data):
                with path.open("r+b") as file:
                    file.truncate(whole)
                for later in paths[number + 1 :]:
                    later.unlink()
                return


def _walked(data: bytes) -> Iterator[tuple[int, int]]:
    try:
        yield from walk(data)
    except KwireError:
        return


def _entry(data: bytes) -> LogEntry | None:
    """None for what is no whole batch."""
    if len(data) < SIZE:
        return None
    header = Header(*HEADER.unpack_from(data))
    if header.magic != 2 or crc32c(data[CRC_START:]) != header.crc:
        return None
    last = header.base_offset + header.last_offset_delta
    return LogEntry(header.base_offset, last, header.max_timestamp, header.partition_leader_epoch, data)
