"""Timers: one deadline per key, popped in order, however often it moved."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.timers import Key, Timers

A, B, C = (Key("heartbeat", "g", name) for name in "abc")


def drain(timers: Timers, now: int) -> list[tuple[Key, int]]:
    found = []
    while (one := timers.pop(now)) is not None:
        found.append(one)
    return found


def test_pops_in_order_of_deadlines() -> None:
    timers = Timers()
    for key, deadline in ((A, 30), (B, 10), (C, 20)):
        assert not timers.set(key, deadline)
    assert timers.due == 10
    assert drain(timers, 25) == [(B, 10), (C, 20)]
    assert (len(timers), timers.due, A in timers, B in timers) == (1, 30, True, False)


def test_a_moved_deadline_replaces_the_old_one() -> None:
    timers = Timers()
    timers.set(A, 10)
    assert timers.set(A, 50)
    assert timers.get(A) == 50
    assert drain(timers, 49) == []
    assert timers.due == 50
    assert timers.set(A, 20)
    assert drain(timers, 60) == [(A, 20)]


def test_forgotten_keys_never_come() -> None:
    timers = Timers()
    timers.set(A, 10)
    assert timers.discard(A)
    assert not timers.discard(A)
    assert (timers.due, timers.get(A), drain(timers, 99)) == (None, None, [])


def test_a_key_that_comes_back_to_an_old_time_comes_once() -> None:
    timers = Timers()
    for deadline in (10, 5, 10):
        timers.set(A, deadline)
    assert drain(timers, 5) == []
    assert drain(timers, 10) == [(A, 10)]
    timers.set(A, 10)
    assert drain(timers, 10) == [(A, 10)]


def test_entries_that_nobody_wants_are_swept_out() -> None:
    timers = Timers()
    for number in range(10_000):
        timers.set(A, 20_000 - number)
    assert len(timers._heap) < 200
    for number in range(10_000):
        key = Key("heartbeat", "g", str(number))
        timers.set(key, number)
        timers.discard(key)
    assert len(timers._heap) < 200


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 50)), st.booleans())))
def test_agrees_with_a_plain_dict(steps: list[tuple[str, int | None, bool]]) -> None:
    model: dict[Any, Any] = {}
    timers, now = Timers(), 0
    for name, delay, look in steps:
        key = Key("k", name)
        if delay is None:
            assert timers.discard(key) == (model.pop(key, None) is not None)
        else:
            timers.set(key, now + delay)
            model[key] = now + delay
        if look:
            now += 20
            due = {key: time for key, time in model.items() if time <= now}
            assert dict(drain(timers, now)) == due
            model = {key: time for key, time in model.items() if time > now}
        assert set(timers) == set(model)
        assert (timers.due is None) == (not model)
        if timers.due is not None:
            assert timers.due <= min(model.values())
