"""A partition's log as files, in Kafka's own format: segments with their indexes, named by their first offset.

NNN.log holds the batches as they travel; NNN.index has an entry for every index.interval.bytes of them (last offset
less NNN, position), NNN.timeindex one beside it (greatest timestamp so far, its offset less NNN), big-endian (Kafka's
OffsetIndex, TimeIndex). leader-epoch-checkpoint tells where epochs begin. A file is open only while it is written to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import NamedTuple, Protocol
from uuid import uuid4

from kwire.errors import KwireError
from kwire.records.batch import CRC_START, HEADER, SIZE, Header, crc32c
from kwire.records.read import walk

INDEXED, TIMED = 8, 12  # bytes of an entry of the indexes
SUFFIXES = (".log", ".index", ".timeindex")
EPOCHS = "leader-epoch-checkpoint"
LONGEST = 255  # bytes of a file's name
DELETED, DELETED_LOG = ".deleted", "-delete"  # how names end of what is to go, as in Kafka


class LogEntry(NamedTuple):
    """A batch in the log. last: offset of its last record; time: its greatest timestamp, ms."""

    base: int
    last: int
    time: int
    epoch: int
    data: bytes


class SegmentRules(NamedTuple):
    """A topic's configuration of its files, bytes and ms."""

    size: int  # segment.bytes
    roll_ms: int
    index_size: int  # segment.index.bytes
    interval: int  # index.interval.bytes
    flush_messages: int
    flush_ms: int
    preallocate: bool
    delete_delay_ms: int

    @classmethod
    def of(cls, value: Callable[[str], str], roll_ms: int) -> SegmentRules:
        return cls(
            int(value("segment.bytes")), roll_ms, int(value("segment.index.bytes")), int(value("index.interval.bytes")),
            int(value("flush.messages")), int(value("flush.ms")), value("preallocate") == "true",
            int(value("file.delete.delay.ms")),
        )  # fmt: skip


class LogFolder(Protocol):
    """What the files of a partition need to know. later: calls after so many ms."""

    def rules(self) -> SegmentRules: ...

    def now_ms(self) -> int: ...

    def later(self, delay_ms: int, act: Callable[[], None]) -> None: ...


class SegmentFiles:
    """The segments in a folder."""

    __slots__ = (
        "_base", "_begun", "_entries", "_epochs", "_flushed", "_last_indexed", "_newest", "_owner", "_preallocated",
        "_size", "_waits_since", "folder",
    )  # fmt: skip

    def __init__(self, folder: Path, owner: LogFolder) -> None:
        self.folder, self._owner = folder, owner
        self._epochs: list[tuple[int, int]] = []
        self._flushed = 0  # the first offset that the disk may not have yet
        self._waits_since: int | None = None  # ms, when that was written
        self._begin(0)

    def _begin(self, base: int) -> None:
        self._base, self._size, self._last_indexed, self._newest = base, 0, 0, (-1, base)
        self._begun = -1  # the first batch's time, ms
        self._entries = 0  # of an index
        self._preallocated = False

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self._base:020d}{suffix}"

    def append(self, entry: LogEntry) -> None:
        """Raises OSError."""
        rules = self._owner.rules()
        if self._size and self._is_full(entry, rules):
            self.flush()
            self._trim()
            self._begin(entry.base)
        self._place(entry, rules)
        with os.fdopen(os.open(self._path(".log"), os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
            if rules.preallocate and not self._size:
                file.truncate(rules.size)
                self._preallocated = True
            file.seek(self._size)
            file.write(entry.data)
        self._size += len(entry.data)
        if self._waits_since is None:
            self._flushed, self._waits_since = entry.base, self._owner.now_ms()
        if entry.last + 1 - self._flushed >= rules.flush_messages:
            self.flush()

    def _is_full(self, entry: LogEntry, rules: SegmentRules) -> bool:
        """Whether the batch begins a new segment (LogSegment.shouldRoll)."""
        indexed = self._entries >= min(rules.index_size // INDEXED, rules.index_size // TIMED - 1)
        return indexed or self._size + len(entry.data) > rules.size or entry.time - self._begun > rules.roll_ms

    def _place(self, entry: LogEntry, rules: SegmentRules) -> None:
        """What stands beside the batch: its segment, its index entries, its epoch."""
        if not self._size:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not self._path(".log").exists():
                self._begin(entry.base)
            self._begun = entry.time
        if entry.time > self._newest[0]:
            self._newest = entry.time, entry.last
        if self._size - self._last_indexed > rules.interval:
            with self._path(".index").open("ab") as file:
                file.write(pack(">ii", entry.last - self._base, self._size))
            with self._path(".timeindex").open("ab") as file:
                file.write(pack(">qi", self._newest[0], self._newest[1] - self._base))
            self._last_indexed = self._size
            self._entries += 1
        if not self._epochs or self._epochs[-1][0] != entry.epoch:
            self._epochs.append((entry.epoch, entry.base))
            rows = "".join(f"{epoch} {base}\n" for epoch, base in self._epochs)
            (self.folder / EPOCHS).write_text(f"0\n{len(self._epochs)}\n{rows}", "utf-8")

    def flush(self) -> None:
        """What was written is on the disk, not only with the operating system. Raises OSError."""
        self._waits_since = None
        for path in map(self._path, SUFFIXES):
            if path.exists():
                with path.open("rb") as file:
                    os.fsync(file)

    def flush_late(self, now_ms: int) -> None:
        """What was written flush.ms ago. Raises OSError."""
        if self._waits_since is not None and now_ms - self._waits_since >= self._owner.rules().flush_ms:
            self.flush()

    def _trim(self) -> None:
        """The file ends where its batches do."""
        if self._preallocated:
            os.truncate(self._path(".log"), self._size)
            self._preallocated = False

    def close(self) -> None:
        """Raises OSError."""
        self._trim()

    def rewrite(self, entries: Iterable[LogEntry]) -> None:
        """The whole log anew, after what is no appending. Raises OSError."""
        self._clear()
        self._epochs.clear()
        self._begin(0)
        for entry in entries:
            self.append(entry)

    def drop_before(self, offset: int) -> None:
        """Segments that end before it: they get another name, and go file.delete.delay.ms later."""
        bases = sorted(int(path.stem) for path in self.folder.glob("*.log"))
        gone = []
        for base, following in pairwise(bases):
            if following <= offset:
                for path in (self.folder / f"{base:020d}{suffix}" for suffix in SUFFIXES):
                    if path.exists():
                        gone.append(path.rename(path.with_name(path.name + DELETED)))
        if gone:
            self._owner.later(self._owner.rules().delete_delay_ms, lambda: _unlink(gone))

    def delete(self) -> None:
        """The same for the folder, when its topic is deleted."""
        delay = self._owner.rules().delete_delay_ms
        if self.folder.exists():
            end = f".{uuid4().hex}{DELETED_LOG}"
            gone = self.folder.rename(self.folder.with_name(self.folder.name[: LONGEST - len(end)] + end))
            self._owner.later(delay, lambda: shutil.rmtree(gone, ignore_errors=True))

    def _clear(self) -> None:
        for suffix in SUFFIXES:
            for path in self.folder.glob(f"*{suffix}"):
                path.unlink()

    def read(self) -> Iterator[LogEntry]:
        """The batches that are there. What is cut or damaged, as after a crash, ends the log: it is cut off. Raises
        OSError."""
        _unlink(self.folder.glob(f"*{DELETED}"))
        paths = sorted(self.folder.glob("*.log"))
        for number, path in enumerate(paths):
            self._begin(int(path.stem))
            data, whole = path.read_bytes(), 0
            for start, end in _walked(data):
                entry = _entry(data[start:end])
                if entry is None:
                    break
                whole = end
                if self._begun < 0:
                    self._begun = entry.time
                if not self._epochs or self._epochs[-1][0] != entry.epoch:
                    self._epochs.append((entry.epoch, entry.base))
                yield entry
            self._size = self._last_indexed = whole
            index = self._path(".index")
            self._entries = index.stat().st_size // INDEXED if index.exists() else 0
            if whole < len(data):
                with path.open("r+b") as file:
                    file.truncate(whole)
                for later in paths[number + 1 :]:
                    later.unlink()
                return


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


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
