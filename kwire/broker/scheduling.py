"""In which order connections are served: fair queueing by the time that each has used so far.

A connection with something to do gets in line, and the one that has used the least time goes first (Linux's CPU
scheduler counts in the same way). Time that was not used is not saved up, but who was there before and asks for little
goes ahead of newcomers. Every other step goes to the connection that has waited longest, once it has waited for LONG:
so many connections that use little cannot keep one waiting that uses more. After BREATH of work the event loop looks at
its sockets again. A connection that asks for little therefore waits for its own earlier requests and for two steps of
others; any other one for at most two steps of each connection that has waited longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from kwire.broker.context import MS

BREATH = 5 * MS  # ns of work until sockets are looked at
CREDIT = 1_000 * MS  # how much a connection that asks for little may be ahead of others
BEHIND = 100 * MS  # how far behind the others a newcomer begins
LEAST = MS // 100  # what the shortest step counts
LONG = 100 * MS  # of waiting
SHORT = MS // 2  # a step below this is taken at once where nobody is in line


class Waiter:
    """Something that takes turns. step: does a little, and says whether there is more to do."""

    __slots__ = ("number", "step", "took", "used")

    def __init__(self, step: Callable[[], bool]) -> None:
        self.step = step
        self.used = 0  # ns, on a clock that never runs behind the others'
        self.number: int | None = None  # of its place in line
        self.took = SHORT  # ns of its last step; of none yet, too much to be taken at once

    @property
    def queued(self) -> bool:
        return self.number is not None


class Turns:
    """now: ns; soon: calls a function when the sockets have been looked at."""

    def __init__(self, now: Callable[[], int], soon: Callable[[Callable[[], Any]], Any]) -> None:
        self._now, self._soon = now, soon
        self._line: list[tuple[int, int, Waiter]] = []  # by what they have used
        self._longest: deque[tuple[int, int, Waiter]] = deque()  # by when they came; both with some who are gone
        self._numbers = count()
        self._floor = CREDIT  # what the last one in turn had used
        self._gone = 0  # places in the line by use whose holders had their turn for having waited
        self._coming = self._other = False

    def newcomer(self, step: Callable[[], bool]) -> Waiter:
        """Who begins now, behind those who asked for little."""
        made = Waiter(step)
        made.used = self._floor + BEHIND
        return made

    def want(self, who: Waiter) -> None:
        """Has something to do; in line at most once."""
        if not who.queued:
            who.used = max(who.used, self._floor - CREDIT)
            self._queue(who)

    def now_or_want(self, who: Waiter) -> None:
        """As want(), but its step is taken here where nobody is in line and its last one was short: not from a step."""
        if self._coming or who.took >= SHORT:
            self.want(who)
            return
        who.used = max(who.used, self._floor - CREDIT)
        self._floor = max(self._floor, who.used)
        more, _ = self._take(who, self._now())
        if more:
            self.want(who)

    def _queue(self, who: Waiter) -> None:
        number = who.number = next(self._numbers)
        heappush(self._line, (who.used, number, who))
        self._longest.append((self._now(), number, who))
        if not self._coming:
            self._coming = True
            self._soon(self._run)

    def _next(self, now: int) -> Waiter | None:
        """Who is next, no longer in line."""
        line, longest = self._line, self._longest
        while longest and longest[0][1] != longest[0][2].number:
            longest.popleft()
        self._other = not self._other
        if self._other and longest and now - longest[0][0] > LONG:
            who = longest.popleft()[2]
            self._gone += 1
            if self._gone > 100 and 2 * self._gone > len(line):
                line[:] = [each for each in line if each[1] == each[2].number and each[2] is not who]
                heapify(line)
                self._gone = 0
        else:
            while line and line[0][1] != line[0][2].number:
                heappop(line)
                self._gone = max(self._gone - 1, 0)
            if not line:
                return None
            used, _, who = heappop(line)
            self._floor = max(self._floor, used)
        who.number = None
        return who

    def _take(self, who: Waiter, begun: int) -> tuple[bool, int]:
        """A step: whether there is more to do, and what time it is."""
        more = who.step()
        now = self._now()
        who.took = now - begun
        who.used += max(who.took, LEAST)
        return more, now

    def _run(self) -> None:
        begun = now = self._now()
        try:
            while now - begun < BREATH and (who := self._next(now)) is not None:
                more, now = self._take(who, now)
                if more and not who.queued:
                    self._queue(who)
        finally:
            self._coming = bool(self._line)
            if self._line:
                self._soon(self._run)
