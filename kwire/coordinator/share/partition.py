"""A share partition: which records members hold, which are to be delivered again, which are done. No I/O.

    partition = SharePartition(place, stored, start, rules, states)
    partition.next_offset(); partition.has_room()       # where to read next, and whether anything may be acquired
    acquire(partition, ask, fetch_offset, batches, now)  # what the member now holds
    partition.acknowledge(member, acks, now)            # Check: all of them or none
    partition.release(member); partition.tick(now); partition.due

start: the first offset that is not decided; end: the last one that was handed out. Between them lie the records in
flight. Rules: Kafka's SharePartition. What Kafka writes to the share coordinator is written to states at once here, so
no change is ever half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from kwire.coordinator.share.inflight import NOBODY, InFlight, InFlightBatch, RecordState, SavedState, Window
from kwire.coordinator.share.states import SharePartitionKey, ShareStates, StateBatch, Stored
from kwire.coordinator.types import MS, Check
from kwire.schema.codes import INVALID_RECORD_STATE, INVALID_REQUEST, NONE

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
OUTCOMES: Final = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}
SLACK = 64  # locks that ended early are swept out when they outnumber the records in flight by so many


class ShareRules(NamedTuple):
    """The configuration that counts for a group's partitions, by its names there."""

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    renew_acknowledge_enable: bool = True


class Ack(NamedTuple):
    """types: one for the whole range, or one for each offset."""

    first: int
    last: int
    types: Sequence[int]


class SharePartition:
    """stored: what states has of it; start: where a group begins that has read nothing yet."""

    def __init__(
        self, place: SharePartitionKey, stored: Stored, start: int, rules: Callable[[], ShareRules], states: ShareStates
    ) -> None:
        self.place, self.rules, self._states = place, rules, states
        self.epoch, self.leader_epoch = stored.epoch, stored.leader_epoch
        self.window = Window()
        self.start = start if stored.start < 0 else stored.start
        self.complete = 0  # records in flight whose fate is decided
        self.looked_at = -1  # where the log was read from when somebody last looked whether there is enough
        self.again = False  # some record before end may have become available
        self._moving: list[InFlight] = []
        self.gap: tuple[int, int] | None = None  # after a restart: (end then, from where offsets may be missing)
        self._locks: list[tuple[int, int, int]] = []  # (deadline, first, last)
        self.end = self.start
        if stored.batches:
            self._load(stored.batches)

    def _load(self, batches: Iterable[StateBatch]) -> None:
        expected, gap = self.start, None
        for first, last, state, count in batches:
            if gap is None and first > expected:
                gap = expected
            expected = last + 1
            self.window.put(InFlightBatch(first, last, InFlight(state, count)))
            self.complete += (last - first + 1) * state.final
        self.again, self.end = True, expected - 1
        self.gap = None if gap is None else (self.end, gap)
        self._advance()

    # What it says of itself

    @property
    def in_flight(self) -> int:
        return self.end - self.start + 1 if self.window else 0

    @property
    def gap_start(self) -> int | None:
        """From where offsets may be missing among those loaded, while nothing newer was read."""
        return self.gap[1] if self.gap is not None and self.gap[0] == self.end else None

    def next_offset(self) -> int:
        """Where to read next: the first record that may be delivered again, or behind the end."""
        nothing = not self.window or self.start > self.window.last.last
        if nothing or not self.again:
            self.again = False
            return self.end if nothing else self.end + 1
        found = self._first_available()
        if found is None:
            self.again = False
            return self.end + 1
        return found

    def _first_available(self) -> int | None:
        gap = self.gap_start
        for batch in self.window:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for first, _, state in batch.pieces():
                if state.available:
                    return first
        return None

    def has_room(self) -> bool:
        """Whether anything may be acquired: some record again, or the window is not full."""
        return self.next_offset() != self.end + 1 or self.in_flight < self.rules().partition_max_record_locks

    def lock(self, first: int, last: int, now: int) -> int:
        """The time at which an acquisition that begins now ends by itself."""
        deadline = now + self.rules().record_lock_duration_ms * MS
        if len(self._locks) > 2 * self.in_flight + SLACK:
            held = (piece for batch in self.window for piece in batch.pieces())
            self._locks = [(state.lock, *ends) for *ends, state in held if state.lock is not None]  # type: ignore[misc]
            heapify(self._locks)
        heappush(self._locks, (deadline, first, last))
        return deadline

    # Acknowledging

    def acknowledge(self, member: str, acks: Iterable[Ack], now: int) -> Check:
        """All batches count, or none of them and the check says why. What becomes of the records shows after finish():
        Kafka has to store it first, and a fetch of the same request does not wait for that."""
        changes: list[tuple[int, int, InFlight, SavedState]] = []
        refused = None
        for ack in acks:
            if ack.last < self.start:
                continue
            refused = self._acknowledge(member, ack, now, changes)
            if refused is not None:
                break
        if refused is None:
            refused = self._write([(first, last, state) for first, last, state, _ in changes])
        if refused is not None:
            for first, last, state, saved in reversed(changes):
                if state.state.final:
                    self.complete -= max(last - max(first, self.start) + 1, 0)
                state.restore(saved)
            return refused
        for _, _, state, _ in changes:
            state.moving = True
        self._moving += [state for _, _, state, _ in changes]
        return Check(0, "acknowledged", NONE, f"{sum(last - first + 1 for first, last, _, _ in changes):,} records")

    def finish(self) -> None:
        """What was acknowledged counts: records may be delivered again, and the start moves on."""
        for state in self._moving:
            state.moving = False
            self.again |= state.available
        if self._moving:
            self._moving.clear()
            self._advance()

    def _acknowledge(
        self, member: str, ack: Ack, now: int, changes: list[tuple[int, int, InFlight, SavedState]]
    ) -> Check | None:
        if any(kind not in OUTCOMES and kind != RENEW for kind in ack.types):
            return Check(1, "type", INVALID_REQUEST, f"acknowledge types {list(ack.types)}: there are 0 to 4")
        floor = self.window.floor(ack.first)
        if floor is None and ack.first < self.start <= ack.last:
            floor = self.window.floor(self.start)
        if floor is None:
            return Check(2, "found", INVALID_RECORD_STATE, f"offset {ack.first} lies before all records in flight")
        found = self.window.between(floor.first, ack.last)
        if found[-1].last < ack.first or found[-1].last < ack.last:
            why = f"offsets {ack.first} to {ack.last}, records in flight end at {found[-1].last}"
            return Check(2, "found", INVALID_REQUEST, why)
        for batch in found:
            if batch.last < self.start:
                continue
            refused = self._acknowledge_batch(member, ack, batch, now, changes)
            if refused is not None:
                return refused
        return None

    def _acknowledge_batch(
        self,
        member: str,
        ack: Ack,
        batch: InFlightBatch,
        now: int,
        changes: list[tuple[int, int, InFlight, SavedState]],
    ) -> Check | None:
        whole = batch.whole
        if whole is not None:
            if whole.member != member:
                return not_held(batch.first, batch.last, whole, member)
            if not batch.lies_in(ack.first, ack.last) or len(ack.types) > 1 or batch.first < self.start:
                batch.split()
        pieces = batch.pieces() if batch.whole else ((at, at, one) for at, one in batch.within(ack.first, ack.last))
        for first, last, state in pieces:
            if last < self.start:
                continue
            if state.state is not RecordState.ACQUIRED or state.member != member:
                return not_held(first, last, state, member)
            kind = ack.types[first - ack.first] if len(ack.types) > 1 else ack.types[0]
            if kind == RENEW:
                if not self.rules().renew_acknowledge_enable:
                    return Check(4, "renew", INVALID_RECORD_STATE, "share.renew.acknowledge.enable is false")
                state.lock = self.lock(first, last, now)
                continue
            changes.append((first, last, state, state.save()))
            if state.settle(OUTCOMES[kind], self.rules().delivery_count_limit).final:
                self.complete += last - first + 1
        return None

    # Giving back

    def release(self, member: str) -> int:
        """Gives back all that a member holds; how many records."""
        return self._give_back([(0, 1 << 63)], lambda state: state.member == member)

    def tick(self, now: int) -> int:
        """Gives back the records whose lock has ended by now; how many."""
        over: list[tuple[int, int]] = []
        while self._locks and self._locks[0][0] <= now:
            over.append(heappop(self._locks)[1:])
        return self._give_back(over, lambda state: state.lock is not None and state.lock <= now) if over else 0

    @property
    def due(self) -> int | None:
        """When to tick next, or before."""
        return self._locks[0][0] if self._locks else None

    def _give_back(self, ranges: Iterable[tuple[int, int]], wanted: Callable[[InFlight], bool]) -> int:
        changes: list[tuple[int, int, InFlight]] = []
        limit = self.rules().delivery_count_limit
        for low, high in ranges:
            floor = self.window.floor(low)
            for batch in self.window.between(low if floor is None else floor.first, high):
                whole = batch.whole
                if whole is not None and batch.first < self.start <= batch.last and wanted(whole):
                    batch.split()
                for first, last, state in batch.pieces():
                    if state.state is not RecordState.ACQUIRED or not wanted(state):
                        continue
                    gone = last < self.start
                    if state.settle(RecordState.ARCHIVED if gone else RecordState.AVAILABLE, limit).final and not gone:
                        self.complete += last - first + 1
                    changes.append((first, last, state))
        self._write(changes)
        self.again |= any(state.available for _, _, state in changes)
        if changes:
            self._advance()
        return sum(last - first + 1 for first, last, _ in changes)

    # Keeping

    def _write(self, changes: list[tuple[int, int, InFlight]]) -> Check | None:
        """Stores what has changed; gives why it cannot be stored."""
        rows = [StateBatch(first, last, state.state, state.deliveries) for first, last, state in changes]
        return self._states.write(self.place, self.epoch, self.start, self.complete, rows) if rows else None

    def archive(self, first: int, last: int, state: RecordState, counted: bool = True) -> None:
        """The offsets from first to last that are in that state will not be delivered any more. Not stored at once."""
        floor = self.window.floor(first)
        for batch in self.window.between(first if floor is None else floor.first, last):
            if batch.whole is not None and batch.whole.state is state and not batch.lies_in(first, last):
                if batch.last < first:
                    continue
                batch.split()
            pieces = batch.pieces() if batch.whole else ((at, at, one) for at, one in batch.within(first, last))
            for low, high, piece in pieces:
                if piece.state is state:
                    piece.archive()
                    self.complete += (high - low + 1) * counted
                    self.again = True

    def log_starts_at(self, offset: int) -> None:
        """The log has lost what lies before offset."""
        if offset <= self.start:
            return
        if not self.window:
            self.start = self.end = offset
            self.complete = 0
            return
        decided = sum(
            max(min(last, offset - 1) - max(first, self.start) + 1, 0)
            for batch in self.window
            for first, last, state in batch.pieces()
            if state.state.final
        )
        self.archive(self.start, offset - 1, RecordState.AVAILABLE, counted=False)
        self.complete -= decided
        self.start, self.end = offset, max(self.end, offset)

    def _advance(self) -> None:
        """Moves the start over the decided records in front, and forgets batches that lie before it."""
        decided = self._decided_to()
        if decided is None:
            return
        if decided == self.window.last.last:
            self.start = self.end = max(decided + 1, self.start)
            self.window.clear()
            self.complete = 0
            return
        before = self.start
        holds = self.window.floor(decided)
        assert holds is not None
        self.start = max(self.window.after(decided).first if holds.last == decided else decided + 1, self.start)
        if self.gap_start is not None:
            self.start = min(self.gap_start, self.start)
        self.complete -= decided - before + 1 - self._missing(before, decided)
        self.window.forget_before(holds.last + 1 if holds.last == decided else holds.first)

    def _missing(self, first: int, last: int) -> int:
        """How many offsets from first to last are in no batch."""
        floor = self.window.floor(first)
        found = self.window.between(first if floor is None else floor.first, last)
        return last - first + 1 - sum(max(min(b.last, last) - max(b.first, first) + 1, 0) for b in found)

    def _decided_to(self) -> int | None:
        """The last offset in front whose fate, and that of all before it, is decided; None if that of the first is
        not."""
        holds = self.window.floor(self.start) if self.window else None
        if holds is None:
            return None
        state = holds.whole or holds.each[min(self.start, holds.last) - holds.first]
        if not state.state.final:
            return None
        decided, gap = None, self.gap_start
        for batch in self.window:
            if gap is not None and batch.last >= gap:
                return decided
            for _, last, piece in batch.pieces():
                if not piece.state.final:
                    return decided
                decided = last
        return decided


def not_held(first: int, last: int, state: InFlight, member: str) -> Check:
    """Why a member may not acknowledge these offsets."""
    where = f"offset {first}" if first == last else f"offsets {first} to {last}"
    if state.state is not RecordState.ACQUIRED or state.member == NOBODY:
        return Check(3, "state", INVALID_RECORD_STATE, f"{where}: {state.state.name}, not ACQUIRED")
    return Check(3, "member", INVALID_RECORD_STATE, f"{where}: held by {state.member}, not by {member}")
