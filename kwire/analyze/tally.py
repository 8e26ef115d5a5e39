"""Counters of equal things: their number, the first and the last, and a few packets that show them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kwire.analyze.findings import Reference

MOST = 10_000  # different ones
SAMPLES = 8  # packets: the first ones and the last
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Tally:
    """count, first and last (ns), samples; total and most: of a number that comes with each."""

    count: int = 0
    first: int = 0
    last: int = 0
    samples: list[Reference] = field(default_factory=list)
    total: int = 0
    most: int = 0

    def add(
        self, sample: Reference | None, time: int, number: int = 0, count: int = 1, *, last: int | None = None
    ) -> None:
        """One more, or so many; last: where they took until then."""
        self.first = time if not self.count else min(self.first, time)
        self.last = max(self.last, time if last is None else last)
        self.count += count
        self.total += number
        self.most = max(self.most, number)
        if sample is not None and sample not in self.samples:
            del self.samples[SAMPLES - 1 :]
            self.samples.append(sample)


class Tallies(Generic[K]):
    """of(key) gives the Tally of a key; None of one beyond MOST, which unkept counts."""

    def __init__(self) -> None:
        self.known: dict[K, Tally] = {}
        self.unkept = 0

    def of(self, key: K) -> Tally | None:
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= MOST:
                self.unkept += 1
                return None
            found = self.known[key] = Tally()
        return found

    def add(self, key: K, sample: Reference | None, time: int, number: int = 0) -> None:
        """One more of a key."""
        found = self.of(key)
        if found is not None:
            found.add(sample, time, number)
