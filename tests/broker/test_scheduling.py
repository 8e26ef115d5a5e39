"""Turns: who has used the least goes first, and nobody works for long without a look at the sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.broker.context import MS
from kwire.broker.scheduling import BREATH, CREDIT, LONG, Turns, Waiter


class Line:
    """Turns whose steps take what they say, and a loop that is run by hand."""

    def __init__(self) -> None:
        self.time, self.rounds = 0, 0
        self.soon: list[Callable[[], Any]] = []
        self.done: list[str] = []
        self.turns = Turns(lambda: self.time, self.soon.append)

    def who(self, name: str, cost: int, steps: int = 1) -> Waiter:
        left = [steps]

        def step() -> bool:
            self.time += cost
            self.done.append(name)
            left[0] -= 1
            return left[0] > 0

        return self.turns.newcomer(step)

    def run(self, rounds: int = 1_000) -> None:
        while self.soon and rounds:
            calls, self.soon[:] = list(self.soon), []
            for call in calls:
                call()
            rounds -= 1
            self.rounds += 1


def test_all_have_their_turns_in_the_order_of_what_they_used() -> None:
    line = Line()
    dear, cheap = line.who("dear", 4 * MS, 3), line.who("cheap", MS, 3)
    line.turns.want(dear)
    line.turns.want(cheap)
    line.run()
    assert line.done == ["dear", "cheap", "cheap", "cheap", "dear", "dear"]


def test_who_asks_for_little_goes_ahead_of_a_hundred_who_ask_for_much() -> None:
    line = Line()
    good = line.who("good", MS // 10)
    line.turns.want(good)
    line.run()
    greedy = [line.who("greedy", 100 * MS, 1_000) for _ in range(100)]
    for who in greedy:
        line.turns.want(who)
    for _ in range(50):
        line.run(1)
        line.done.clear()
        line.turns.want(good)
        line.run(2)
        assert "good" in line.done  # at once, or behind the one that has waited longest


def test_newcomers_stand_behind_who_was_there() -> None:
    line = Line()
    good = line.who("good", MS)
    line.turns.want(good)
    line.run()
    line.done.clear()
    for _ in range(10):
        line.turns.want(line.who("new", MS))
    line.turns.want(good)
    line.run()
    assert line.done[0] == "good"


def test_time_is_not_saved_up_for_ever() -> None:
    line = Line()
    silent = line.who("silent", MS, 5_000)
    line.turns.want(line.who("busy", 10 * CREDIT, 2))
    line.run()
    line.turns.want(silent)
    assert silent.used >= 10 * CREDIT - CREDIT


def test_the_sockets_are_looked_at_after_a_breath() -> None:
    line = Line()
    line.turns.want(line.who("a", BREATH // 5, 20))
    line.run()
    assert line.rounds == 4


def test_in_line_only_once() -> None:
    line = Line()
    who = line.who("a", MS)
    line.turns.want(who)
    line.turns.want(who)
    line.run()
    assert line.done == ["a"]


def test_many_who_have_used_little_do_not_keep_a_newcomer_waiting() -> None:
    line = Line()
    many = [line.who("many", 10 * MS, 1_000) for _ in range(50)]
    line.turns.want(line.who("busy", CREDIT, 3))
    line.run()
    line.turns.want(line.who("new", MS))  # behind the busy one, and each of the many has a second of credit
    for who in many:
        line.turns.want(who)
    line.done.clear()
    line.run(50)
    before = line.done.index("new")
    assert 10 * before * MS <= LONG + 10 * MS


def test_who_has_waited_long_takes_every_other_step() -> None:
    line = Line()
    good = line.who("good", MS // 10)
    line.turns.want(good)
    line.run()
    for _ in range(50):
        line.turns.want(line.who("new", 10 * MS))
    line.run(20)  # the others have waited for long
    line.turns.want(good)
    line.done.clear()
    line.run(2)
    assert "good" in line.done[:2]


def test_places_of_those_who_had_their_turn_are_not_kept() -> None:
    line = Line()
    little = line.who("little", MS, 1_000_000)
    line.turns.want(little)
    line.run(5)
    much = [line.who("much", LONG, 1_000_000) for _ in range(3)]
    for who in much:
        line.turns.want(who)
    for _ in range(2_000):
        little.used = 0
        line.run(1)
    assert line.done.count("much") > 1_000
    assert len(line.turns._line) < 300


def test_short_steps_are_taken_at_once_where_nobody_is_in_line() -> None:
    line = Line()
    short, long, other = line.who("short", MS // 10, 2), line.who("long", MS), line.who("other", MS)
    for who in (short, long):
        line.turns.now_or_want(who)
        assert line.done == []  # how long their steps are is not known yet
        line.run()
        line.done.clear()
        line.turns.now_or_want(who)
        assert line.done == (["short"] if who is short else [])
        line.run()
        line.done.clear()
    line.turns.want(other)
    line.turns.now_or_want(short)
    assert line.done == []
    line.run()
    assert sorted(line.done) == ["other", "short"]


def test_what_is_taken_at_once_counts() -> None:
    line = Line()
    short = line.who("short", MS // 10)
    line.turns.want(short)
    line.run()
    used = short.used
    line.turns.now_or_want(short)
    assert short.used == used + MS // 10
