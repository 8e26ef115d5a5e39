"""What connections may hold together: bytes, each its share, and places for large requests, one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar


class BytesHolder(Protocol):
    """A connection, as a pool knows it. give_up(): it ends at once and gives back what it holds."""

    @property
    def ending(self) -> bool: ...

    def give_up(self, why: str) -> None: ...


Holder = TypeVar("Holder", bound=BytesHolder)
Connection = TypeVar("Connection")


class Pool(Generic[Holder]):
    """Bytes that connections hold. When they are too many in all, the connection that has held more than its share for
    the longest time ends; the share is the same for all that hold some, so nobody with little is ever in question."""

    def __init__(
        self, limit: int, holders: Callable[[], Iterable[Holder]],
        held: Callable[[Holder], tuple[int, float]], why: str,
    ) -> None:  # fmt: skip
        """held: how many bytes, and since when."""
        self.limit, self.used = limit, 0
        self._holders, self._held, self._why = holders, held, why

    def took(self, size: int) -> None:
        """So many more, or fewer. Who is ended for it gives back at once what it holds."""
        self.used += size
        while size > 0 and self.used > self.limit:
            found = [(self._held(each), each) for each in self._holders()]
            there = [(size, since, each) for (size, since), each in found if size and not each.ending]
            share = self.limit // max(len(there), 1)
            over = [(since, size, each) for size, since, each in there if size > share]
            if not over:
                return
            _, held, oldest = min(over, key=lambda one: one[:2])
            oldest.give_up(f"{held:,} bytes {self._why}; all connections together may hold {self.limit:,}")


class TurnQueue(Generic[Connection]):
    """A place for one; the others come after each other. called: when the place is theirs."""

    def __init__(self, called: Callable[[Connection], None]) -> None:
        self._called = called
        self._line: deque[Connection] = deque()
        self._holder: Connection | None = None

    def has(self, who: Connection) -> bool:
        return self._holder is who

    def enter(self, who: Connection) -> bool:
        """Whether the place is free, or is who's already; else who is in line for it."""
        if self._holder is None:
            self._holder = who
        elif self._holder is not who and who not in self._line:
            self._line.append(who)
        return self._holder is who

    def leave(self, who: Connection) -> None:
        """Who needs it no more."""
        if self._holder is not who:
            if who in self._line:
                self._line.remove(who)
            return
        self._holder = self._line.popleft() if self._line else None
        if self._holder is not None:
            self._called(self._holder)
