"""How far apart things usually come: the median interval, which one silent stretch does not move."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

MOST = 256  # intervals that are kept


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
    def usual(self) -> int | None:
        """The median; the lower one of two."""
        return sorted(self.kept)[(len(self.kept) - 1) // 2] if self.kept else None
