"""A partition's log in memory: record batches as they came, each with its offsets assigned (Kafka's UnifiedLog).

A batch is never taken apart on its way: base offset and leader epoch are set in front of its checksum's range, and only
looking for a timestamp opens the one batch that holds it. All batches are of magic 2; legacy.py converts at the edge.
Rules for producers and their transactions are in producers.py; stable is Kafka's last stable offset, where the oldest
open transaction begins. How much memory all logs take together is Room's to say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from struct import pack
from typing import NamedTuple, cast

from kwire.broker.producers import Aborted, Producers
from kwire.broker.refused import Refused
from kwire.broker.segments import LogEntry, SegmentFiles
from kwire.errors import KwireError
from kwire.records import Record, build, read_records
from kwire.records.batch import CRC_START, HEADER, LOG_APPEND_TIME, LOG_OVERHEAD, MAGIC_AT, SIZE, Header, crc32c
from kwire.schema import codes

EARLIEST_LOCAL, MAX_TIMESTAMP, EARLIEST, LATEST = -4, -3, -2, -1
MANY = 1_024
BLOCK = 256  # batches whose greatest time is kept, so that a search for a time skips them together
OPENED = 100_000  # records of a batch that is opened to find a time
INFLATED = 16 << 20  # bytes, of a batch that is opened


class FoundOffset(NamedTuple):
    """A record that was looked for by its timestamp; offset -1 when there is none."""

    offset: int
    timestamp: int
    epoch: int


NOTHING = FoundOffset(-1, -1, -1)


OVERHEAD = 300  # bytes of memory that a batch takes beside its own, roughly


class Room:
    """The memory that all logs may take together: the oldest batch of all goes first. used: bytes of batches;
    overhead: what each of them takes besides."""

    def __init__(self, limit: int, overhead: int = 0) -> None:
        self.limit, self.used = limit, 0
        self._overhead = overhead
        self._batches = 0
        self._order: deque[tuple[Log, int]] = deque()

    def took(self, log: Log, base: int, size: int) -> None:
        self.used += size
        self._batches += 1
        self._order.append((log, base))
        while self.used + self._batches * self._overhead > self.limit and len(self._order) > 1:
            oldest, offset = self._order.popleft()
            oldest.drop(offset)
        if len(self._order) > 2 * self._batches + MANY:  # most of them have gone by other ways
            self._order = deque((log, offset) for log, offset in self._order if log.has(offset))

    def gave(self, size: int) -> None:
        self.used -= size
        self._batches -= 1


class Log:
    """One partition. start is the first offset that is still there, end the next one to be given out."""

    __slots__ = (
        "_bases", "_entries", "_epochs", "_first", "_room", "_times", "cleaned", "end", "files", "producers", "size",
        "start", "waiting",
    )  # fmt: skip

    def __init__(self, room: Room, producers: int = 10_000) -> None:
        self.start = self.end = self.size = 0
        self.cleaned = 0  # compacted up to here
        self.files: SegmentFiles | None = None  # where it is kept too
        self.producers = Producers(producers)
        self.waiting: dict[int, Callable[[int], None]] = {}  # fetches that wait, by a number of theirs; see wake()
        self._room = room
        self._entries: list[LogEntry] = []
        self._bases: list[int] = []
        self._first = 0  # entries before this one are gone; cut off when they are many
        self._times: list[int] = []  # the greatest time of each BLOCK of entries, gone ones included
        self._epochs: list[tuple[int, int]] = []  # where an epoch begins: (epoch, base offset), as Kafka keeps them

    @property
    def entries(self) -> list[LogEntry]:
        """The batches that are there."""
        return self._entries[self._first :]

    def __len__(self) -> int:
        return len(self._bases) - self._first

    # ------------------------------------------------------------ writing

    def append(
        self,
        data: bytes | bytearray,
        epoch: int,
        now_ms: int,
        append_time: bool = False,
        header: Header | None = None,
        bumps: bool = False,
    ) -> tuple[int, int]:
        """Adds one batch of magic 2; gives its base offset and the append time (-1: the records' own). Raises Refused.

        A batch that an idempotent producer sends again is not written again: its first offset is given. data: a
        bytearray is the log's own from now on, and written into; header: what checked() made of it; bumps: the
        producer's epoch rises with each transaction.
        """
        header = header or checked(data)
        again = self.producers.check(header, bumps)
        if again is not None:
            return again.base, again.time
        base = self.end
        time = now_ms if append_time else header.max_timestamp
        if append_time:
            data = _stamped(data, header, now_ms)
        head = pack(">q", base) + data[8:12] + pack(">i", epoch)
        if isinstance(data, bytearray):
            data[:MAGIC_AT] = head
        else:
            data = b"".join((head, memoryview(data)[MAGIC_AT:]))
        last = base + header.last_offset_delta
        self.producers.wrote(header, base, now_ms)
        self._add(LogEntry(base, last, time, epoch, cast(bytes, data)))  # nobody writes into it any more
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
        self._add(LogEntry(base, base, now_ms, epoch, data))
        self.wake()  # what was undecided until now counts at once for those who read what is committed
        return base

    def restore(self, entry: LogEntry) -> None:
        """A batch that was written before, in its turn."""
        if not self.end:
            self.start = entry.base
        self.producers.read(Header(*HEADER.unpack_from(entry.data)), entry.data)
        self._add(entry)

    def _add(self, entry: LogEntry) -> None:
        if self.files is not None:
            self.files.append(entry)
        if len(self._entries) % BLOCK == 0:
            self._times.append(entry.time)
        elif entry.time > self._times[-1]:
            self._times[-1] = entry.time
        if not self._epochs or self._epochs[-1][0] != entry.epoch:
            self._epochs.append((entry.epoch, entry.base))
        self._entries.append(entry)
        self._bases.append(entry.base)
        self.end = entry.last + 1
        self.size += len(entry.data)
        self._room.took(self, entry.base, len(entry.data))
        self.wake(len(entry.data))

    def wake(self, size: int = 0) -> None:
        """Tells the fetches that wait: so many bytes were written, or something else has changed."""
        for written in list(self.waiting.values()):
            written(size)

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

    def replace_first(self, count: int, kept: list[LogEntry]) -> None:
        """These in place of the first so many batches, with the same offsets or some of them (compaction)."""
        old = self._entries[self._first : self._first + count]
        size = sum(len(entry.data) for entry in kept) - sum(len(entry.data) for entry in old)
        for entry in old:
            self._room.gave(len(entry.data))
        self._entries[: self._first + count] = kept
        self._bases = [entry.base for entry in self._entries]
        self._first = 0
        self.size += size
        blocks = range(0, len(self._entries), BLOCK)
        self._times = [max(entry.time for entry in self._entries[at : at + BLOCK]) for at in blocks]
        for entry in kept:
            self._room.took(self, entry.base, len(entry.data))
        if self.files is not None:
            self.files.rewrite(self.entries)

    def truncate(self, offset: int) -> None:
        """Records from offset on are lost, with the whole of the batch that holds it (an unclean election). What is
        known of producers is read anew from the batches that are left."""
        if offset >= self.end:
            return
        while len(self) and self._entries[-1].last >= offset:
            entry = self._entries.pop()
            self._bases.pop()
            self.size -= len(entry.data)
            self._room.gave(len(entry.data))
            offset = min(offset, entry.base)
        self.end = max(offset, self.start)
        del self._times[-(-len(self._entries) // BLOCK) :]
        if self._times:
            last = (len(self._times) - 1) * BLOCK
            self._times[-1] = max(entry.time for entry in self._entries[last:])
        self._epochs = [each for each in self._epochs if each[1] < self.end]
        self.producers = Producers(self.producers.limit)
        for entry in self._entries[self._first :]:
            self.producers.read(Header(*HEADER.unpack_from(entry.data)), entry.data)
        if self.files is not None:
            self.files.rewrite(self.entries)
        self.wake()

    def close(self) -> None:
        """The topic is gone: its bytes are free, and who waits for more is woken."""
        if self.files is not None:
            self.files.delete()
            self.files = None
        while len(self):
            self._forget_first()
        self.wake()

    def _forget_first(self) -> None:
        self.producers.forget_before(self._entries[self._first].last + 1)
        size = len(self._entries[self._first].data)
        self._entries[self._first] = LogEntry(0, 0, 0, 0, b"")
        self._first += 1
        self.size -= size
        self._room.gave(size)
        gone = self._first - self._first % BLOCK
        if gone and gone * 2 > len(self._bases):
            del self._bases[:gone], self._entries[:gone], self._times[: gone // BLOCK]
            self._first -= gone

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

    def first_after(self, timestamp: int) -> FoundOffset:
        """The first record whose timestamp is at or after this one, ms."""
        for entry in self._later(timestamp):
            for offset, time in _times(entry):
                if time >= timestamp and offset >= self.start:
                    return FoundOffset(offset, time, entry.epoch)
        return NOTHING

    def _later(self, timestamp: int) -> Iterator[LogEntry]:
        """The batches with a time at or after this one, in their order."""
        for number in range(self._first // BLOCK, len(self._times)):
            if self._times[number] < timestamp:
                continue
            for at in range(max(number * BLOCK, self._first), min((number + 1) * BLOCK, len(self._entries))):
                if self._entries[at].time >= timestamp:
                    yield self._entries[at]

    def latest_time(self) -> FoundOffset:
        """The record with the greatest timestamp, the first of them (KIP-734)."""
        if not len(self):
            return NOTHING
        begun = min((self._first // BLOCK + 1) * BLOCK, len(self._entries))  # the block of which some may be gone
        greatest = max(self._entries[at].time for at in range(self._first, begun))
        greatest = max([greatest, *self._times[begun // BLOCK if begun % BLOCK == 0 else len(self._times) :]])
        entry = next(self._later(greatest))
        offset = next((offset for offset, time in _times(entry) if time == entry.time), entry.last)
        return FoundOffset(offset, entry.time, entry.epoch)

    def has(self, base: int) -> bool:
        """Whether the batch that began at this offset is still there."""
        return len(self) > 0 and base >= self._bases[self._first]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The greatest epoch up to this one and the offset where it ends (OffsetForLeaderEpoch); (-1, -1): none."""
        while len(self._epochs) > 1 and self._epochs[1][1] <= self.start:
            del self._epochs[0]
        at = bisect_right(self._epochs, (epoch, 1 << 63)) - 1
        if at < 0 or not len(self):
            return -1, -1
        return self._epochs[at][0], self._epochs[at + 1][1] if at + 1 < len(self._epochs) else self.end


def checked(data: bytes | bytearray) -> Header:
    """The header of the one batch in data. Raises Refused (Kafka's LogValidator)."""
    if len(data) < SIZE:
        raise Refused(codes.CORRUPT_MESSAGE, f"a batch of {len(data)} bytes, the least is {SIZE}")
    header = Header(*HEADER.unpack_from(data))
    if header.batch_length != len(data) - LOG_OVERHEAD:
        if header.batch_length < len(data) - LOG_OVERHEAD:
            raise Refused(codes.INVALID_RECORD, "more than one batch for a partition")
        raise Refused(codes.CORRUPT_MESSAGE, f"a length of {header.batch_length}, there are {len(data) - LOG_OVERHEAD}")
    if crc32c(memoryview(data)[CRC_START:]) != header.crc:
        raise Refused(codes.CORRUPT_MESSAGE, "the checksum is wrong")
    if header.is_control:
        raise Refused(codes.INVALID_RECORD, "clients may not write control batches")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        why = f"{header.record_count} records, but the last one's offset delta is {header.last_offset_delta}"
        raise Refused(codes.INVALID_RECORD, why)
    return header


def _stamped(data: bytes | bytearray, header: Header, now_ms: int) -> bytes | bytearray:
    """The batch with the broker's time, which is inside the checksum's range."""
    covered = bytearray(data[CRC_START:])
    covered[0:2] = pack(">h", header.attributes | LOG_APPEND_TIME)
    covered[14:22] = pack(">q", now_ms)
    return data[: CRC_START - 4] + pack(">I", crc32c(bytes(covered))) + covered


def _times(entry: LogEntry) -> list[tuple[int, int]]:
    """Offsets and timestamps of a batch's records; of one that cannot be opened or is too large, its first offset and
    its time, as Kafka's own index by time is not exact either."""
    near = [(entry.base, entry.time)]
    if entry.last - entry.base >= OPENED:
        return near
    try:
        batches = read_records(entry.data, INFLATED)
    except KwireError:
        return near
    found = [(r.offset, r.timestamp if r.timestamp is not None else -1) for b in batches for r in b.records]
    return found or near
