"""How much work may go into guessing: so much for a start, more with every byte looked at, and a bound in all."""

from __future__ import annotations

OF_CONNECTION = 20_000, 3, 200_000  # for the answers without a request of a connection
OF_CAPTURE = 40_000, 3, 1_000_000  # for those of a capture


class Allowance:
    """for_bytes(size) says what so many more bytes may cost, spend() what they did. All in spans."""

    __slots__ = ("_base", "_each", "_looked", "_most", "_spent")

    def __init__(self, base: int, each: int, most: int) -> None:
        self._base, self._each, self._most = base, each, most
        self._looked = 0  # bytes
        self._spent = 0

    def for_bytes(self, size: int) -> int:
        """Below one when nothing is left."""
        return min(self._base + self._each * (self._looked + size), self._most) - self._spent

    def spend(self, size: int, cost: int) -> None:
        """These bytes were looked at, and what it took."""
        self._looked += size
        self._spent += cost
