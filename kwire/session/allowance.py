"""A budget of work for guessing: a base, a part for every byte looked at, and an upper bound."""

from __future__ import annotations

OF_CONNECTION = 20_000, 3, 200_000  # base, spans per byte, bound: for the orphans of a connection
OF_CAPTURE = 40_000, 3, 1_000_000  # for the orphans of a capture


class Allowance:
    """for_bytes(size) gives the budget for that many more bytes, spend() records what they used. The unit is spans
    read."""

    __slots__ = ("_base", "_each", "_looked", "_most", "_spent")

    def __init__(self, base: int, each: int, most: int) -> None:
        self._base, self._each, self._most = base, each, most
        self._looked = 0  # bytes
        self._spent = 0

    def for_bytes(self, size: int) -> int:
        """Spans that may be read in these bytes; 0 or less when nothing is left."""
        return min(self._base + self._each * (self._looked + size), self._most) - self._spent

    def spend(self, size: int, cost: int) -> None:
        """Records that size bytes were looked at for cost spans."""
        self._looked += size
        self._spent += cost
