"""What is measured of exchanges: how many, how many bytes, which errors, how long the answers took, and when.

Latencies go into a histogram whose buckets are 4% wide, so that any number of them takes the same room and percentiles
are right to two digits. A batch is measured as columns: each group of its rows once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kwire.analyze.throttling import Mutes
from kwire.analyze.work import HELD
from kwire.codec.quality import QUALITY_CODES, Quality
from kwire.session.pairing import LOST
from kwire.session.record import error_name
from kwire.wire.columns import Ints, tally

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch

STEP = math.log(1.04)
BUCKETS = 4096  # of a timeline; when they do not suffice, each becomes twice as long
FINEST = 100_000_000  # ns, the shortest bucket of a timeline
PENDING = frozenset({"the capture ended", LOST})  # why there is no answer that may well have come
CUT = [QUALITY_CODES[Quality.TRUNCATED], QUALITY_CODES[Quality.GAP]]  # an answer of which a part is missing


class Latencies:
    """ns, none of them negative."""

    __slots__ = ("buckets", "count", "highest", "lowest")

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0
        self.lowest = self.highest = 0

    def add(self, buckets: dict[int, int], lowest: int, highest: int) -> None:
        """So many in each bucket, of which these are the extremes."""
        self.lowest = min(lowest, self.lowest) if self.count else lowest
        self.highest = max(highest, self.highest)
        self.buckets.update(buckets)
        self.count += sum(buckets.values())

    def percentile(self, share: float) -> int | None:
        """The latency below which that share (0 to 1) lies, to 2%; None without any."""
        if not self.count:
            return None
        wanted, seen = share * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return max(min(round(math.exp((bucket + 0.5) * STEP)), self.highest), self.lowest)
        return self.highest


class Timeline:
    """Counts over time, in buckets of equal length, ns."""

    __slots__ = ("counts", "length")

    def __init__(self) -> None:
        self.length = FINEST
        self.counts: Counter[int] = Counter()

    def add(self, counts: dict[int, int]) -> None:
        """So many in each bucket of the finest length."""
        factor = self.length // FINEST
        for bucket, count in counts.items():
            self.counts[bucket // factor] += count
        while len(self.counts) > BUCKETS:
            self.length *= 2
            doubled: Counter[int] = Counter()
            for bucket, count in self.counts.items():
                doubled[bucket // 2] += count
            self.counts = doubled

    def over(self, start: int, end: int, parts: int) -> list[int]:
        """The counts in so many equal parts of the time from start to end."""
        out = [0] * parts
        span = max(end - start, 1)
        for bucket, count in self.counts.items():
            at = (bucket * self.length + self.length // 2 - start) * parts // span
            out[min(max(at, 0), parts - 1)] += count
        return out


@dataclass(slots=True)
class Measure:
    """Of some exchanges: how many, how many bytes in requests and responses (frames, size prefix included), which
    errors how often, how many without an answer; pending: how many whose answer may have come after the end of the
    capture, or is missing from it; unseen: of how many answers the capture cut off the outcome; backwards: how many
    stand before their requests (packets out of order, a clock that was set); how long the others took. work: of those
    that a broker does not hold (work.py names which it does), without what they waited for a quota; held: that, and how
    long it took over the others, ns in all."""

    count: int = 0
    sent: int = 0
    got: int = 0
    unanswered: int = 0
    pending: int = 0
    unseen: int = 0
    backwards: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    latencies: Latencies = field(default_factory=Latencies)
    work: Latencies = field(default_factory=Latencies)
    held: int = 0
    timeline: Timeline = field(default_factory=Timeline)

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        times = {f"p{share}_ns": self.latencies.percentile(share / 100) for share in (50, 90, 99)}
        work = {f"work_p{share}_ns": self.work.percentile(share / 100) for share in (50, 90, 99)}
        errors = {error_name(code): count for code, count in self.errors.most_common()}
        return {
            "count": self.count, "sent_bytes": self.sent, "got_bytes": self.got, "unanswered": self.unanswered,
            "pending": self.pending, "outcome_not_captured": self.unseen,
            "answered_before_asked": self.backwards,
            "errors": errors, **times, "max_ns": self.latencies.highest if self.latencies.count else None,
            **work, "work_max_ns": self.work.highest if self.work.count else None, "held_ns": self.held,
        }  # fmt: skip


class Measured:
    """What is measured of each row of a batch; mutes: of all batches in turn."""

    def __init__(self, batch: ExchangeBatch, mutes: Mutes) -> None:
        request, response = batch.request, batch.response
        asked, answered = request.there, response.there
        self.time = batch.time
        self.sent = np.where(asked, request.size + 4, 0)
        self.got = np.where(answered, response.size + 4, 0)
        open_ = np.array([text in PENDING for text in batch.texts], bool)[batch.ending]
        missing = ~answered & ~batch.silent
        self.unanswered, self.pending = missing & ~open_, missing & open_
        self.unseen = answered & (batch.errors == 0) & np.isin(response.quality, CUT)
        self.error = np.where(batch.errors > 0, batch.first_error, 0)
        self.latency = batch.latency
        self.paired = asked & answered & (self.latency >= 0)
        self.backwards = asked & answered & (self.latency < 0)
        kept = np.array([kind is not None and kind.key in HELD for kind in batch.kinds], bool)
        self.kept = self.paired & kept[batch.kind]
        waited = mutes.of(batch)
        self.held = np.where(self.kept, np.maximum(self.latency, 0), waited)
        self.work = self.latency - self.held
        self.bucket = buckets_of(self.latency)
        self.work_bucket = buckets_of(self.work) if waited.any() else self.bucket

    def of(self, rows: Ints, which: Ints, names: Sequence[str]) -> Iterator[tuple[str, Measure]]:
        """The measures of these rows by groups: which says of each row the number of its group's name."""
        size = len(names)

        def total(values: Any) -> list[int]:
            found: list[int] = tally(which, values[rows], size).astype(np.int64).tolist()
            return found

        counts = tally(which, size=size)
        sent, got, unseen = total(self.sent), total(self.got), total(self.unseen)
        unanswered, pending, backwards = total(self.unanswered), total(self.pending), total(self.backwards)
        wrong, paired = self.error[rows] != 0, self.paired[rows]
        errors = _counted(which[wrong], self.error[rows][wrong])
        times = _counted(which, self.time[rows] // FINEST)
        latencies, works = _latencies(which[paired], self.latency, self.bucket, rows[paired], size), None
        held = total(self.held)
        if self.held[rows].any():
            busy = paired & ~self.kept[rows]
            works = _latencies(which[busy], self.work, self.work_bucket, rows[busy], size)
        for number in np.flatnonzero(counts).tolist():
            made = Measure(int(counts[number]), sent[number], got[number], unanswered[number], pending[number],
                           unseen[number], backwards[number])  # fmt: skip
            made.errors.update(errors.get(number, {}))
            for into, found in ((made.latencies, latencies), (made.work, latencies if works is None else works)):
                if number in found:
                    into.add(*found[number])
            made.held = held[number]
            made.timeline.add(times[number])
            yield names[number], made


def _latencies(
    which: Ints, latency: Ints, bucket: Ints, rows: Ints, size: int
) -> dict[int, tuple[dict[int, int], int, int]]:  # fmt: skip
    """Of each group, of these rows: how many in each bucket, the shortest and the longest."""
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.zeros(size, np.int64)
    np.minimum.at(lowest, which, latency[rows])
    np.maximum.at(highest, which, latency[rows])
    buckets = _counted(which, bucket[rows])
    return {number: (found, int(lowest[number]), int(highest[number])) for number, found in buckets.items()}


def buckets_of(latency: Ints) -> Ints:
    """The histogram's buckets of latencies, ns."""
    return (np.log(np.maximum(latency, 1)) / STEP).astype(np.int64)


def _counted(which: Ints, values: Ints) -> dict[int, dict[int, int]]:
    """Of each group how often it has each value."""
    if not len(which):
        return {}
    low = int(values.min())
    span = int(values.max()) - low + 1
    pairs, counts = np.unique(which * span + (values - low), return_counts=True)
    out: dict[int, dict[int, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        group, value = divmod(pair, span)
        out.setdefault(group, {})[value + low] = count
    return out


def merge(into: Measure, other: Measure) -> None:
    """Adds what was measured of other exchanges."""
    into.count += other.count
    into.sent += other.sent
    into.got += other.got
    into.unanswered += other.unanswered
    into.pending += other.pending
    into.unseen += other.unseen
    into.backwards += other.backwards
    into.errors.update(other.errors)
    into.held += other.held
    for mine, others in ((into.latencies, other.latencies), (into.work, other.work)):
        if others.count:
            mine.add(others.buckets, others.lowest, others.highest)
    into.timeline.add(other.timeline.counts)
