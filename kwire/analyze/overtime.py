"""What a capture held over time, in columns: exchanges, bytes, errors, and how long answers took as a density.

Time is cut into slots of equal length, at most SLOTS of them: when they do not reach far enough, two become one. So any
capture takes the same room. Latencies fall into bins a tenth wide; requests that a broker may hold on
purpose (work.HELD) are counted apart from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kwire.analyze.work import HELD
from kwire.session.record import error_name
from kwire.wire.columns import Ints, tally

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch

SLOTS = 512
FINEST = 100_000  # ns, the shortest slot
SHORTEST, DECADE, BINS = 10_000, 24, 193  # of latencies: ns up to which is the first bin; bins in a decade; all bins
MOST_ERRORS = 64  # kinds of errors over time; the rest together
OTHERS = "(others)"
NO_ANSWER = "no answer"


class OverTime:
    """add(batch) in the order of time; then used slots are read. start: of the first slot, ns; length: of a slot, ns.

    exchanges, sent, got: of each slot; errors: the same by name; prompt and held: slots × bins, answers by how long
    they took, of requests that are answered at once and of those that a broker may hold."""

    def __init__(self) -> None:
        self.start: int | None = None
        self.length = FINEST
        self.exchanges, self.sent, self.got = (np.zeros(SLOTS, np.int64) for _ in range(3))
        self.errors: dict[str, Ints] = {}
        self.prompt, self.held = (np.zeros((SLOTS, BINS), np.int64) for _ in range(2))
        self._last = 0

    @property
    def used(self) -> int:
        """How many slots there are from the first exchange to the last."""
        return 0 if self.start is None else (self._last - self.start) // self.length + 1

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        if not len(batch):
            return
        time = batch.time
        if self.start is None:
            self.start = int(time.min())
        self._last = max(self._last, int(time.max()))
        while (self._last - self.start) // self.length >= SLOTS:
            self._fold()
        slot = np.maximum(time - self.start, 0) // self.length
        request, response = batch.request, batch.response
        asked, answered = request.there, response.there
        self.exchanges += tally(slot, size=SLOTS)
        self.sent += _summed(slot[asked], request.size[asked] + 4)
        self.got += _summed(slot[answered], response.size[answered] + 4)
        self._add_errors(batch, slot)
        paired = asked & answered & ~batch.token
        held = np.array([kind is not None and kind.key in HELD for kind in batch.kinds], bool)[batch.kind]
        place = slot * BINS + bins_of(batch.latency)
        for density, rows in ((self.prompt, paired & ~held), (self.held, paired & held)):
            density += tally(place[rows], size=SLOTS * BINS).reshape(SLOTS, BINS)

    def _add_errors(self, batch: ExchangeBatch, slot: Ints) -> None:
        code = np.where(batch.errors > 0, batch.first_error, 0)
        for one in np.unique(code[code != 0]).tolist():
            self._of(error_name(one) or str(one))[:] += tally(slot[code == one], size=SLOTS)
        silent = ~batch.response.there & ~batch.silent
        if silent.any():
            self._of(NO_ANSWER)[:] += tally(slot[silent], size=SLOTS)

    def _of(self, name: str) -> Ints:
        if name not in self.errors and len(self.errors) >= MOST_ERRORS:
            name = OTHERS
        return self.errors.setdefault(name, np.zeros(SLOTS, np.int64))

    def _fold(self) -> None:
        """Merges pairs of slots."""
        self.length *= 2
        self.exchanges, self.sent, self.got = map(_folded, (self.exchanges, self.sent, self.got))
        self.errors = {name: _folded(counts) for name, counts in self.errors.items()}
        self.prompt, self.held = _folded(self.prompt), _folded(self.held)

    def grouped(self, most: int) -> TimeSlots:
        """The same with at most so many slots, each merged from several, as plain numbers."""
        factor = max(-(-self.used // most), 1)
        count = -(-self.used // factor)

        def joined(values: NDArray[np.int64]) -> list[Any]:
            padded = np.zeros((count * factor, *values.shape[1:]), np.int64)
            kept = values[: count * factor]
            padded[: len(kept)] = kept
            summed: list[Any] = padded.reshape(count, factor, *values.shape[1:]).sum(axis=1).tolist()
            return summed

        errors = {name: joined(counts) for name, counts in self.errors.items()}
        exchanges, sent, got, prompt, held = map(
            joined, (self.exchanges, self.sent, self.got, self.prompt, self.held)
        )  # fmt: skip
        return TimeSlots(count, self.start or 0, self.length * factor, exchanges, sent, got, errors, prompt, held)


@dataclass(frozen=True, slots=True)
class TimeSlots:
    """count time slots of length ns each, from start (ns since the epoch) on; the other fields as in OverTime."""

    count: int
    start: int
    length: int
    exchanges: list[int]
    sent: list[int]
    got: list[int]
    errors: dict[str, list[int]]
    prompt: list[list[int]]
    held: list[list[int]]

    @property
    def wrong(self) -> list[int]:
        """All errors of each slot."""
        return [sum(counts) for counts in zip(*self.errors.values(), strict=True)] if self.errors else [0] * self.count


def bins_of(latency: Ints) -> Ints:
    """The bins of latencies, ns; negative ones are in the first."""
    place = np.ceil(np.log10(np.maximum(latency, SHORTEST) / SHORTEST) * DECADE).astype(np.int64)
    bins: Ints = np.minimum(place, BINS - 1)
    return bins


def edge(bin_number: int) -> int:
    """Up to how long, ns, a latency is in that bin."""
    return round(SHORTEST * 10 ** (bin_number / DECADE))


def percentile(counts: Sequence[int], share: float) -> int | None:
    """The upper edge of the bin in which that share (0 to 1) of the latencies is reached, ns; None of none."""
    total, seen = sum(counts), 0
    for at, count in enumerate(counts):
        seen += count
        if count and seen >= share * total:
            return edge(at)
    return None


def _summed(slot: Ints, values: Ints) -> Ints:
    return tally(slot, values, SLOTS).astype(np.int64)


def _folded(values: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros_like(values)
    out[: SLOTS // 2] = values[0::2] + values[1::2]
    return out
