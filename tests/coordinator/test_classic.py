"""Rebalances and deadlines of classic groups: who is waited for, who is removed, and why."""

from collections.abc import Callable
from typing import Any

import pytest

from kwire.coordinator.types import MS

Make = Callable[..., Any]


def test_the_first_rebalance_is_held_back(lab: Make) -> None:
    made = lab(group_initial_rebalance_delay_ms=3_000)
    first = made.join(version=3)
    made.wait(2_999)
    assert made.answer(first) is None
    assert made.group.state == "PreparingRebalance"
    made.wait(1)
    assert made.body(first)["GenerationId"] == 1


@pytest.mark.parametrize(
    ("rebalance_ms", "joins_at", "ends_at"),
    [
        (20_000, [0], 3_000),
        (20_000, [0, 1_000], 6_000),
        (20_000, [0, 1_000, 4_000], 9_000),
        (20_000, [0, 1_000, 4_000, 7_000, 10_000, 13_000, 16_000], 20_000),
        (5_000, [0, 1_000, 4_000], 5_000),
        (2_000, [0, 1_000], 3_000),  # the delay itself is never cut short
    ],
)
def test_joins_extend_the_delay_up_to_the_rebalance_timeout(
    lab: Make, rebalance_ms: int, joins_at: list[int], ends_at: int
) -> None:
    made = lab(group_initial_rebalance_delay_ms=3_000)
    for time in joins_at:
        made.wait(time - made.now)
        made.join(version=3, RebalanceTimeoutMs=rebalance_ms)
    made.wait(30_000)
    (event,) = made.events("generation")
    assert event.time == ends_at * MS
    assert len(event.facts["members"]) == len(joins_at)


@pytest.mark.parametrize(("era", "ends_at"), [((4, 3), 9_000), ((3, 9), 6_000)])
def test_a_group_that_was_empty_is_held_back_longer_from_4_0_on(lab: Make, era: tuple[int, int], ends_at: int) -> None:
    made = lab(era=era, group_initial_rebalance_delay_ms=3_000)
    made.join(version=3)
    made.wait(3_000)
    made.leave(("a-1", None))
    made.join(version=3)
    made.wait(1_000)
    made.join(version=3)
    made.wait(20_000)
    assert [event.time // MS for event in made.events("generation")] == [3_000, ends_at]


def test_before_0_11_nothing_is_held_back(lab: Make) -> None:
    made = lab(era=(0, 10), group_initial_rebalance_delay_ms=3_000)
    assert made.body(made.join(version=0))["GenerationId"] == 1


def test_a_rebalance_waits_for_all_and_drops_the_late(lab: Make) -> None:
    made = lab()
    a, b = made.stable("ab", SessionTimeoutMs=30_000)
    third = made.join(version=3, client="c")
    again = made.join(a)
    made.wait(19_999)
    assert (made.answer(third), made.answer(again)) == (None, None)
    made.wait(1)
    assert made.pick(third, "GenerationId", "Leader") == made.pick(again, "GenerationId", "Leader") == [3, a]
    assert list(made.group.members) == [a, "c-3"]
    (event,) = made.events("evicted")
    assert (event.member, event.facts["cause"], event.facts["silent_ms"]) == (b, "rebalance", 20_000)
    assert event.why == "did not rejoin in 20,000 ms; rebalance timeout 20,000 ms"


def test_the_longest_rebalance_timeout_counts(lab: Make) -> None:
    made = lab()
    made.stable("a", SessionTimeoutMs=300_000, RebalanceTimeoutMs=60_000)
    third = made.join(version=3, RebalanceTimeoutMs=1_000)
    made.wait(59_999)
    assert made.answer(third) is None
    made.wait(1)
    assert made.body(third)["Leader"] == "a-2"


def test_a_static_member_that_is_late_stays(lab: Make) -> None:
    made = lab()
    a = made.stable("a", GroupInstanceId="i", SessionTimeoutMs=60_000)[0]
    other = made.join(version=3, client="b")
    made.wait(20_000)
    assert made.body(other)["Leader"] == "b-2"  # the leader did not come, so another leads
    assert set(made.group.members) == {a, "b-2"}


def test_nobody_rejoins_and_the_group_waits_again(lab: Make) -> None:
    made = lab()
    made.stable("a", GroupInstanceId="i", SessionTimeoutMs=60_000)
    made.join(version=3, client="b")
    made.leave(("b-2", None))
    made.wait(45_000)
    assert (made.group.state, made.group.generation) == ("PreparingRebalance", 1)
    made.wait(15_000)
    assert (made.group.state, made.group.generation, len(made.group.members)) == ("Empty", 2, 0)


@pytest.mark.parametrize("timeout", [0, -1, -(2**31)])
def test_a_rebalance_timeout_of_nothing_ends(lab: Make, timeout: int) -> None:
    made = lab()
    made.stable("a", GroupInstanceId="i", RebalanceTimeoutMs=timeout, SessionTimeoutMs=1_800_000)
    made.join(version=3, client="b", RebalanceTimeoutMs=timeout)
    made.wait(7_200_000)
    assert made.events()[-1].kind == "dead"
    assert made.coordinator.groups == {}


# sessions


@pytest.mark.parametrize("state", ["CompletingRebalance", "Stable"])
def test_an_eviction_rebalances_a_running_group(lab: Make, state: str) -> None:
    made = lab()
    a, b = made.stable("ab")
    if state == "CompletingRebalance":
        made.join(a)
        made.join(b)
        made.wait(0)
    assert made.group.state == state
    made.wait(9_000)
    made.beat(b, made.group.generation)
    made.wait(1_000)
    (event,) = made.events("evicted")
    assert (event.member, event.time, event.facts["cause"]) == (a, 10_000 * MS, "session")
    assert event.facts["session_timeout_ms"] == 10_000
    assert event.facts["last_heartbeat"] == 0
    assert made.group.state == "PreparingRebalance"
    assert made.events("rebalance")[-1].facts["trigger"] == "evicted"
    assert made.beat(a, made.group.generation).body["ErrorCode"] == 25


def test_the_reason_of_an_eviction_has_its_figures(lab: Make) -> None:
    made = lab()
    made.stable("a", SessionTimeoutMs=6_000)
    made.wait(2_000)
    made.beat("a-1", 1)
    made.wait(6_000)
    (event,) = made.events("evicted")
    assert event.why == "not heard of for 6,000 ms (last: Heartbeat); session timeout 6,000 ms"
    assert event.facts["heard"] == "Heartbeat"


def test_an_eviction_may_complete_a_rebalance(lab: Make) -> None:
    made = lab()
    made.stable("ab", RebalanceTimeoutMs=60_000)
    again = made.join("a-1", RebalanceTimeoutMs=60_000)
    made.wait(9_999)
    assert made.answer(again) is None
    made.wait(1)
    assert made.body(again)["Members"] == [{"MemberId": "a-1", "GroupInstanceId": None, "Metadata": b"r"}]


def test_who_waits_for_its_join_needs_no_heartbeat(lab: Make) -> None:
    made = lab()
    made.stable("ab", SessionTimeoutMs=300_000, RebalanceTimeoutMs=100_000)
    again = made.join("a-1", SessionTimeoutMs=6_000, RebalanceTimeoutMs=100_000)
    made.wait(99_999)
    assert "a-1" in made.group.members
    made.wait(1)
    assert made.body(again)["ErrorCode"] == 0


def test_who_waits_for_its_sync_needs_no_heartbeat(lab: Make) -> None:
    made = lab()
    a, b = made.joined("ab", RebalanceTimeoutMs=100_000)
    waiting = made.sync(b, 2)
    for _ in range(5):
        made.wait(9_000)
        made.beat(a, 2)
    assert made.answer(waiting) is None
    assert set(made.group.members) == {a, b}


@pytest.mark.parametrize(("era", "evicted"), [((4, 3), True), ((2, 2), True), ((2, 1), False)])
def test_a_new_member_may_wait_five_minutes(lab: Make, era: tuple[int, int], evicted: bool) -> None:
    made = lab(era=era)
    a = made.stable("a", SessionTimeoutMs=600_000, RebalanceTimeoutMs=1_000_000)[0]
    fresh = made.join(version=3, client="b")
    made.wait(300_000)
    assert ("b-2" not in made.group.members) == evicted
    if evicted:
        assert made.pick(fresh, "ErrorCode", "MemberId") == [25, ""]
        assert made.events("evicted")[-1].why == "its first join waited 300,000 ms; a new member may wait 300,000 ms"
    assert a in made.group.members


def test_an_id_that_is_never_used_expires(lab: Make) -> None:
    made = lab()
    made.join(version=9)
    assert made.group.pending == {"a-1": 10_000}
    made.wait(10_000)
    assert made.group.pending == {}
    (event,) = made.events("evicted")
    assert (event.member, event.facts["cause"]) == ("a-1", "pending")


@pytest.mark.parametrize(("era", "ends_at"), [((4, 3), 6_000), ((3, 9), 9_000)])
def test_an_expired_id_no_longer_holds_the_first_rebalance(lab: Make, era: tuple[int, int], ends_at: int) -> None:
    made = lab(era=era, group_initial_rebalance_delay_ms=9_000)
    made.join(version=9, client="b", SessionTimeoutMs=6_000)
    made.join(version=3)
    made.wait(20_000)
    assert made.events("generation")[0].time == ends_at * MS


@pytest.mark.parametrize(("era", "kept"), [((4, 3), ["a-1"]), ((3, 0), ["a-1"]), ((2, 8), ["a-1", "b-2"])])
def test_who_never_syncs_is_out_after_the_rebalance_timeout(lab: Make, era: tuple[int, int], kept: list[str]) -> None:
    made = lab(era=era)
    a, b = made.joined("ab", RebalanceTimeoutMs=20_000)
    made.sync(a, 2, {a: b"x"})
    for _ in range(4):
        made.wait(5_000)
        made.beat(a, 2)
        made.beat(b, 2)
    assert list(made.group.members) == kept
    if len(kept) == 1:
        event = made.events("evicted")[-1]
        assert (event.member, event.facts["cause"]) == (b, "sync")
        assert made.group.state == "PreparingRebalance"


# groups end


def test_an_empty_group_without_offsets_is_forgotten(lab: Make) -> None:
    made = lab()
    made.stable("a")
    made.leave(("a-1", None))
    made.wait(599_999)
    assert made.group.state == "Empty"
    made.wait(1)
    assert made.coordinator.groups == {}
    assert made.events()[-1].why == "empty for 600,000 ms and without offsets"
    assert made.coordinator.due is None


def test_offsets_keep_an_empty_group(lab: Make) -> None:
    made = lab()
    made.commit(*made.stable("a"), 1)
    made.leave(("a-1", None))
    made.wait(3_600_000)
    assert made.group.state == "Empty"


def test_forget_answers_all_who_wait(lab: Make) -> None:
    made = lab()
    a, b = made.joined("ab")
    waiting = made.sync(b, 2)
    assert made.coordinator.forget("g")
    assert made.body(waiting)["ErrorCode"] == 16
    assert made.beat(a, 2).body["ErrorCode"] == 25
    assert not made.coordinator.forget("g")
    assert (made.coordinator.waiting, made.coordinator.due) == (0, None)


def test_expire_ends_a_session(lab: Make) -> None:
    made = lab()
    made.stable("ab")
    assert made.coordinator.expire("g", "b-2", made.now)
    assert not made.coordinator.expire("g", "b-2", made.now)
    assert not made.coordinator.expire("h", "b-2", made.now)
    assert made.events("evicted")[0].facts["cause"] == "order"
    assert made.beat("a-1", made.group.generation).body["ErrorCode"] == 27


def test_in_0_9_a_group_that_is_empty_is_dead_and_removed(lab: Make) -> None:
    made = lab(era=(0, 9))
    made.stable("a")
    made.wait(20_000)
    assert made.events()[-1].kind == "dead"
    assert "g" not in made.coordinator.groups
    answer = made.beat("a-1", 1)
    assert (answer.body["ErrorCode"], answer.check.name) == (25, "group")
    made.stable("b")
    assert made.group.generation == 1
