"""Shares: who holds too much for the longest time ends; a place for one goes from one to the next."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.broker.budgets import Pool, TurnQueue


@dataclass(eq=False)
class SomeHolder:
    """A connection, as far as pools know it."""

    pool: list[Pool[SomeHolder]]
    size: int = 0
    since: float = 0.0
    why: str = ""
    ending: bool = False

    def give_up(self, why: str) -> None:
        self.why, self.ending = why, True
        self.pool[0].took(-self.size)
        self.size = 0

    def take(self, size: int) -> None:
        self.size += size
        self.pool[0].took(size)


def holders(limit: int, count: int) -> list[SomeHolder]:
    pools: list[Pool[SomeHolder]] = []
    made = [SomeHolder(pools, since=float(number)) for number in range(count)]
    pools.append(Pool(limit, lambda: made, lambda each: (each.size, each.since), "lie about"))
    return made


def test_the_oldest_of_those_with_more_than_their_share_ends() -> None:
    small, *large = holders(100, 4)
    small.take(5)
    for each in large:
        each.take(33)
    assert [each.ending for each in (small, *large)] == [False, True, False, False]
    assert large[0].why == "33 bytes lie about; all connections together may hold 100"
    assert small.pool[0].used == 71


def test_many_with_little_hold_no_more_than_there_is() -> None:
    found = holders(100, 50)
    for each in found:
        each.take(3)
    assert found[0].pool[0].used <= 100
    assert sum(each.ending for each in found) == 17


def test_a_place_for_one() -> None:
    called: list[str] = []
    lane = TurnQueue(called.append)
    a, b, c = "abc"
    assert lane.enter(a)
    assert [lane.enter(who) for who in (b, c, b, a)] == [False, False, False, True]
    lane.leave(b)
    lane.leave(a)
    assert called == ["c"]
    assert lane.has(c)
    lane.leave(c)
    assert lane.enter(b)
