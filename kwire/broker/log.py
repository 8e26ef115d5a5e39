"""A partition's log in memory: record batches as they came, each with its offsets assigned (Kafka's UnifiedLog).

A batch is never taken apart on its way: base offset and leader epoch are set in front of its checksum's range, and only
looking for a timestamp opens the one batch that holds it. All batches are of magic 2; legacy.py converts at the edge.
Rules for producers and their transactions are in producers.py; stable is Kafka's last stable offset, where the oldest
open transaction begins. How much memory all logs take together is Room's to say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from struct import pack
from typing import NamedTuple

from kwire.broker.codes import Code, Refused
from kwire.broker.producers import Aborted, Producers
from kwire.errors import KwireError
from kwire.records import Record, build, read_records
from kwire.records.batch import CRC_START, HEADER, LOG_OVERHEAD, MAGIC_AT, SIZE, Header, crc32c

EARLIEST_LOCAL, MAX_TIMESTAMP, EARLIEST, LATEST = -4, -3, -2, -1
LOG_APPEND_TIME = 8


class Entry(NamedTuple):
    """A batch in the log. last: offset of its last record; time: its greatest timestamp, ms."""

    base: int
    last: int
    time: int
    epoch: int
    data: bytes


class Found(NamedTuple):
    """A record that was looked for by its timestamp; offset -1 when there is none."""

    offset: int
    timestamp: int
    epoch: int


NOTHING = Found(-1, -1, -1)


class Room:
    """The bytes that all logs may take together: the oldest batch of all goes first."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._order: deque[tuple[Log, int]] = deque()

    def took(self, log: Log, base: int, size: int) -> None:
        self.used += size
        self._order.append((log, base))
        while self.used > self.limit and len(self._order) > 1:
            oldest, offset = self._order.popleft()
            oldest.drop(offset)

    def gave(self, size: int) -> None:
        self.used -= size


class Log:
    """One partition. start is the first offset that is still there, end the next one to be given out."""

    def __init__(self, room: Room, producers: int = 10_000) -> None:
        self.start = self.end = self.size = 0
        self.producers = Producers(producers)
        self.waiting: dict[int, Callable[[], None]] = {}  # fetches that wait for more, by a number of theirs
        self._room = room
        self._entries: list[Entry] = []
        self._bases: list[int] = []
        self._first = 0  # entries before this one are gone; cut off when they are many

    def __len__(self) -> int:
        return len(self._bases) - self._first

    # ------------------------------------------------------------ writing

    def append(
        self,
        data: bytes,
        epoch: int,
        now_ms: int,
        append_time: bool = False,
        header: Header | None = None,
        bumps: bool = False,
    ) -> tuple[int, int]:
        """Adds one batch of magic 2; gives its base offset and the append time (-1: the records' own). Raises Refused.

        A batch that an idempotent producer sends again is not written again: its first offset is given. header: what
        checked() made of data; bumps: the producer's epoch rises with each transaction.
        """
        header = header or checked(data)
        again = self.producers.check(header, bumps)
        if again is not None:
            return again.base, again.time
        base = self.end
        time = now_ms if append_time else header.max_timestamp
        if append_time:
            data = _stamped(data, header, now_ms)
        written = b"".join((pack(">q", base), data[8:12], pack(">i", epoch), data[MAGIC_AT:]))
        last = base + header.last_offset_delta
        self.producers.wrote(header, base, now_ms)
        self._add(Entry(base, last, time, epoch, written))
        return base, now_ms if append_time else -1

    def mark(
        self, producer: int, producer_epoch: int, commit: bool, coordinator_epoch: int, level: int,
        epoch: int, now_ms: int,
    ) -> int:  # fmt: skip
        """Writes the control record that ends the producer's transaction here; gives its offset. level: the
        transaction.version of its transaction. Raises Refused."""
        self.producers.check_marker(producer, producer_epoch, coordinator_epoch, level)
        base = self.end
        record = Record(base, now_ms, pack(">hh", 0, int(commit)), pack(">hi", 0, coordinator_epoch), [])
        data = build(
            [record], producer_id=producer, producer_epoch=producer_epoch, is_transactional=True, is_control=True,
            partition_leader_epoch=epoch,
        )  # fmt: skip
        self.producers.marked(producer, producer_epoch, commit, coordinator_epoch, base, now_ms)
        self._add(Entry(base, base, now_ms, epoch, data))
        return base

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._bases.append(entry.base)
        self.end = entry.last + 1
        self.size += len(entry.data)
        self._room.took(self, entry.base, len(entry.data))
        for wake in list(self.waiting.values()):
            wake()

    @property
    def stable(self) -> int:
        """The last stable offset: what comes before is decided, committed or aborted."""
        first = self.producers.first_open
        return self.end if first is None else max(first, self.start)

    # ------------------------------------------------------------ forgetting

    def drop(self, base: int) -> None:
        """The room is needed: the first batch goes, when it is the one at base."""
        if len(self) and self._bases[self._first] == base:
            self._forget_first()
            self.start = max(self.start, self._bases[self._first] if len(self) else self.end)

    def delete_before(self, offset: int) -> None:
        """Records below offset are gone for readers; whole batches of them for good (DeleteRecords, retention)."""
        self.start = max(self.start, min(offset, self.end))
        while len(self) and self._entries[self._first].last < self.start:
            self._forget_first()

    def keep_bytes(self, limit: int) -> None:
        """retention.bytes: whole batches from the front, while those behind them still hold limit bytes."""
        while len(self) > 1 and self.size - len(self._entries[self._first].data) >= limit:
            self.delete_before(self._entries[self._first].last + 1)

    def keep_since(self, time_ms: int) -> None:
        """retention.ms: whole batches from the front whose newest record is older."""
        while len(self) and 0 <= self._entries[self._first].time < time_ms:
            self.delete_before(self._entries[self._first].last + 1)

    def close(self) -> None:
        """The topic is gone: its bytes are free, and who waits for more is woken."""
        while len(self):
            self._forget_first()
        for wake in list(self.waiting.values()):
            wake()

    def _forget_first(self) -> None:
        self.producers.forget_before(self._entries[self._first].last + 1)
        size = len(self._entries[self._first].data)
        self._entries[self._first] = Entry(0, 0, 0, 0, b"")
        self._first += 1
        self.size -= size
        self._room.gave(size)
        if self._first > 64 and self._first * 2 > len(self._bases):
            del self._bases[: self._first]
            del self._entries[: self._first]
            self._first = 0

    # ------------------------------------------------------------ reading

    def aborted(self, start: int, batches: list[bytes]) -> list[Aborted]:
        """The aborted transactions that a reader of these batches, from start on, has to leave out."""
        if not batches:
            return []
        last = Header(*HEADER.unpack_from(batches[-1]))
        return self.producers.aborted_between(start, last.base_offset + last.last_offset_delta + 1)

    def read(self, offset: int, limit: int, whole_first: bool, until: int | None = None) -> list[bytes]:
        """Batches from the one that holds offset on, up to limit bytes and to offsets below until (the end).

        With whole_first the first comes even when it is larger than limit. The caller has checked offset.
        """
        stop = self.end if until is None else until
        at = max(bisect_right(self._bases, offset) - 1, self._first)
        if at < len(self._bases) and self._entries[at].last < offset:
            at += 1
        out: list[bytes] = []
        room = limit
        while at < len(self._bases):
            entry = self._entries[at]
            if entry.last >= stop or (len(entry.data) > room and not (whole_first and not out)):
                break
            out.append(entry.data)
            room -= len(entry.data)
            at += 1
        return out

    def first_after(self, timestamp: int) -> Found:
        """The first record whose timestamp is at or after this one, ms."""
        for at in range(self._first, len(self._entries)):
            entry = self._entries[at]
            if entry.time >= timestamp:
                for offset, time in _times(entry):
                    if time >= timestamp and offset >= self.start:
                        return Found(offset, time, entry.epoch)
        return NOTHING

    def latest_time(self) -> Found:
        """The record with the greatest timestamp, the first of them (KIP-734)."""
        entries = [self._entries[at] for at in range(self._first, len(self._entries))]
        if not entries:
            return NOTHING
        entry = max(entries, key=lambda entry: entry.time)
        offset = next((offset for offset, time in _times(entry) if time == entry.time), entry.last)
        return Found(offset, entry.time, entry.epoch)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The greatest epoch up to this one and the offset where it ends (OffsetForLeaderEpoch); (-1, -1): none."""
        found, end = -1, -1
        for at in range(self._first, len(self._entries)):
            entry = self._entries[at]
            if entry.epoch <= epoch:
                found, end = entry.epoch, entry.last + 1
        return found, end


def checked(data: bytes) -> Header:
    """The header of the one batch in data. Raises Refused (Kafka's LogValidator)."""
    if len(data) < SIZE:
        raise Refused(Code.CORRUPT_MESSAGE, f"a batch of {len(data)} bytes, the least is {SIZE}")
    header = Header(*HEADER.unpack_from(data))
    if header.batch_length != len(data) - LOG_OVERHEAD:
        if header.batch_length < len(data) - LOG_OVERHEAD:
            raise Refused(Code.INVALID_RECORD, "more than one batch for a partition")
        raise Refused(Code.CORRUPT_MESSAGE, f"a length of {header.batch_length}, there are {len(data) - LOG_OVERHEAD}")
    if crc32c(memoryview(data)[CRC_START:]) != header.crc:
        raise Refused(Code.CORRUPT_MESSAGE, "the checksum is wrong")
    if header.is_control:
        raise Refused(Code.INVALID_RECORD, "clients may not write control batches")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        why = f"{header.record_count} records, but the last one's offset delta is {header.last_offset_delta}"
        raise Refused(Code.INVALID_RECORD, why)
    return header


def _stamped(data: bytes, header: Header, now_ms: int) -> bytes:
    """The batch with the broker's time, which is inside the checksum's range."""
    covered = bytearray(data[CRC_START:])
    covered[0:2] = pack(">h", header.attributes | LOG_APPEND_TIME)
    covered[14:22] = pack(">q", now_ms)
    return data[: CRC_START - 4] + pack(">I", crc32c(bytes(covered))) + covered


def _times(entry: Entry) -> list[tuple[int, int]]:
    """Offsets and timestamps of a batch's records; of one that cannot be opened, its first offset and its time."""
    try:
        batches = read_records(entry.data)
    except KwireError:
        return [(entry.base, entry.time)]
    found = [(r.offset, r.timestamp if r.timestamp is not None else -1) for b in batches for r in b.records]
    return found or [(entry.base, entry.time)]
