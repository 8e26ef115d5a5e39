"""How far apart things come: the median where they come regularly, else the stretch in which most intervals lie.

A median says "every 500 ms" of what comes every 500 ms. Of intervals of two kinds, as of fetches that wait half a
second when there is nothing and none when there is, it is a number that no interval has.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

MOST = 256  # intervals that are kept
LIKE = 1.25  # times by which the middle half of regular intervals may differ from the median


@dataclass(slots=True)
class Intervals:
    """ns. Of very many every second is kept, then every fourth, and so on: always spread over the whole time."""

    step: int = 1
    seen: int = 0
    longest: int = 0
    kept: array[int] = field(default_factory=lambda: array("q"))

    def add(self, interval: int) -> None:
        if self.seen % self.step == 0:
            self.kept.append(interval)
            if len(self.kept) > MOST:
                del self.kept[1::2]
                self.step *= 2
        self.seen += 1
        self.longest = max(self.longest, interval)

    @property
    def middle(self) -> tuple[int, int] | None:
        """Between which the middle half lies; None without any."""
        found = sorted(self.kept)
        return (found[(len(found) - 1) // 4], found[(3 * len(found) + 3) // 4 - 1]) if found else None

    @property
    def usual(self) -> int | None:
        """The median, the lower one of two; None where they are not alike."""
        if not self.kept:
            return None
        median = sorted(self.kept)[(len(self.kept) - 1) // 2]
        low, high = self.middle or (median, median)
        return median if low * LIKE >= median and high <= median * LIKE else None
