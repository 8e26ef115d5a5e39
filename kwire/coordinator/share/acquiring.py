"""How records come into a member's hands: which of those that were read it gets, in what pieces, and how many.

Rules: the acquire methods of Kafka's SharePartition. A member asks for so many records; in mode BATCH_OPTIMIZED it may
get more, so that batches of the log stay whole (KIP-1206). Records that were delivered often already are handed out a
few at a time, the last delivery alone, so that one bad record does not take its neighbours with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from kwire.coordinator.share.inflight import NOBODY, Acquired, InFlight, InFlightBatch, RecordState

if TYPE_CHECKING:
    from kwire.coordinator.share.partition import SharePartition

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
LEAST_THROTTLED: Final = 2  # a record is never throttled before its second delivery has failed
Range = tuple[int, int]


class Ask(NamedTuple):
    """most: records; pieces: how large the ranges of the answer should be; mode: BATCH_OPTIMIZED or RECORD_LIMIT."""

    member: str
    most: int
    pieces: int = 1 << 31
    mode: int = BATCH_OPTIMIZED


def acquire(
    share: SharePartition,
    ask: Ask,
    fetch_offset: int,
    batches: Sequence[Range],
    now: int,
    aborted: Sequence[Range] = (),
) -> list[Acquired]:
    """What the member holds from now on. batches: (first, last) of what was read from fetch_offset on; aborted: those
    of them that belong to aborted transactions, which nobody gets."""
    if ask.most <= 0 or not batches or batches[-1][1] < share.start:
        return []
    most, last = _room(share, ask.most, fetch_offset, batches[-1][1])
    if most <= 0:
        return []
    first = batches[0][0]
    if share.window and fetch_offset < first:  # compacted away in the meantime
        share.archive(fetch_offset, first - 1, RecordState.AVAILABLE)
    work = _Acquisition(share, ask, batches, now, most, last)
    work.run()
    found = work.found
    if found and share.gap is not None:
        share.gap = (share.gap[0], max(share.gap[1], found[-1].last + 1))
    for low, high in aborted:
        share.archive(low, high, RecordState.ACQUIRED)
        found = [rest for each in found for rest in _without(each, low, high)]
    return found


def _room(share: SharePartition, most: int, fetch_offset: int, last: int) -> tuple[int, int]:
    """How many records may be acquired and up to which offset; of a full window only what it holds already."""
    room = min(most, share.rules().partition_max_record_locks - share.in_flight)
    if room <= 0 and fetch_offset <= share.end:
        return min(most, share.end - fetch_offset + 1), min(last, share.end)
    return room, last


def _without(acquired: Acquired, low: int, high: int) -> list[Acquired]:
    if acquired.last < low or acquired.first > high:
        return [acquired]
    left = [acquired._replace(last=low - 1)] if acquired.first < low else []
    return left + ([acquired._replace(first=high + 1)] if acquired.last > high else [])


class _Acquisition:
    """One member's acquisition. most: records left to be acquired; last: the last offset that may be."""

    def __init__(
        self, share: SharePartition, ask: Ask, batches: Sequence[Range], now: int, most: int, last: int
    ) -> None:
        self.share, self.ask, self.batches, self.now = share, ask, batches, now
        self.most, self.last, self.first = most, last, batches[0][0]
        self.strict = ask.mode == RECORD_LIMIT
        self.limit = share.rules().delivery_count_limit
        self.throttled = max(LEAST_THROTTLED, ceil(self.limit / 2))
        self.found: list[Acquired] = []

    def run(self) -> None:
        base = self.first
        floor = self.share.window.floor(base)
        if floor is None:
            base = max(base, self.share.start)
        elif floor.last >= base:
            base = floor.first
        known = self.share.window.between(min(self.first, base), self.last)
        if not known:
            self.fresh(base, self.last)
            return
        gap = base
        for batch in known:
            if self.most <= 0:
                break
            if self.share.gap_start is not None:
                if gap < batch.first:
                    self.fresh(gap, batch.first - 1)
                gap = batch.last + 1
                if self.most <= 0:
                    break
            if not self.again(batch):
                return
        if self.most > 0 and known[-1].last < self.last:
            self.fresh(known[-1].last + 1, self.last)

    # Records that were in flight before

    def again(self, batch: InFlightBatch) -> bool:
        """Acquires what is available of a batch; False when nothing may follow it."""
        throttle = self.is_throttled(batch)
        if throttle and self.found:
            return False
        whole = batch.whole
        partly = not batch.lies_in(self.first, self.last) or (self.strict and len(batch) > self.most)
        if whole is None or partly or throttle:
            if whole is not None and not whole.available:
                return True
            batch.split()
            taken = self.one_by_one(batch)
            self.most -= taken
            return not (throttle and taken)
        if whole.available:
            whole.acquire(self.ask.member, self.share.lock(batch.first, batch.last, self.now))
            self.give(batch.first, batch.last, whole.deliveries)
            self.most -= len(batch)
        return True

    def is_throttled(self, batch: InFlightBatch) -> bool:
        pieces = [(0, batch.whole)] if batch.whole else batch.within(self.first, self.last)
        return any(one.available and one.deliveries >= self.throttled for _, one in pieces)

    def one_by_one(self, batch: InFlightBatch) -> int:
        """Acquires offsets of a split batch; how many."""
        taken, few = 0, -1
        rows: list[tuple[int, int]] = []
        for offset, one in batch.within(self.first, self.last):
            if not one.available:
                continue
            if self.limit > 2 and one.deliveries == self.limit - 1 and taken:
                break
            if one.deliveries >= self.throttled and few < 0:
                few = max(1, len(batch) >> (one.deliveries - self.throttled + 1))
            one.acquire(self.ask.member, self.share.lock(offset, offset, self.now))
            rows.append((offset, one.deliveries))
            taken += 1
            last_delivery = one.deliveries == self.limit and self.limit > 2
            if last_delivery or (self.strict and taken == self.most) or taken == few:
                break
        self.give_rows(rows)
        return taken

    def give_rows(self, rows: list[tuple[int, int]]) -> None:
        """Offsets with their counts; neighbours alike become one range."""
        begun = 0
        for at in range(1, len(rows) + 1):
            if at == len(rows) or rows[at] != (rows[at - 1][0] + 1, rows[begun][1]):
                self.give(rows[begun][0], rows[at - 1][0], rows[begun][1])
                begun = at

    # Records that nobody had yet

    def fresh(self, first: int, last: int) -> None:
        """Acquires what lies from first to last, as much of it as is wanted."""
        share = self.share
        if not share.window and share.end > first:
            first = share.end
        if self.most < last - first + 1:
            end = self.whole_batch(first + self.most - 1)
            last = min(end, last) if share.gap_start is not None else end
        pieces = [(first, last)] if self.strict else self.in_pieces(first, last)
        cut = self.strict and last - first + 1 > self.most
        for low, high in pieces:
            deadline = share.lock(low, high, self.now)
            batch = InFlightBatch(low, high, InFlight(RecordState.ACQUIRED, 1, self.ask.member, deadline))
            share.window.put(batch)
            if cut:
                batch.split()
                high = low + self.most - 1
                for _, one in batch.within(high + 1, batch.last):
                    one.state, one.deliveries, one.member, one.lock = RecordState.AVAILABLE, 0, NOBODY, None
                share.again = True
            self.give(low, high, 1)
        if share.window.first.first == first:
            share.start = first
        share.end = max(share.end, last)
        taken_to = self.found[-1].last if self.strict else last
        if share.gap is not None:
            share.gap = (share.gap[0], max(share.gap[1], taken_to + 1))
        self.most -= taken_to - first + 1

    def whole_batch(self, offset: int) -> int:
        """The last offset of the log's batch that holds offset."""
        holds = next((batch for batch in reversed(self.batches) if batch[0] <= offset), None)
        return holds[1] if holds is not None and offset <= holds[1] else offset

    def in_pieces(self, first: int, last: int) -> list[Range]:
        """Ranges of about the size asked for, cut where batches of the log begin."""
        cuts = []
        if last - first + 1 > self.ask.pieces:
            begun = first
            for base, _ in self.batches:
                if base > last:
                    break
                if base - begun >= self.ask.pieces:
                    cuts.append(base)
                    begun = base
        return [(low, high - 1) for low, high in zip([first, *cuts], [*cuts, last + 1], strict=True)]

    def give(self, first: int, last: int, count: int) -> None:
        self.found.append(Acquired(first, last, count))
