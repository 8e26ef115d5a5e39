"""Groups made by hand: why members went, in exact words with exact times and frames."""

from __future__ import annotations

from typing import Any

from scenes import START

from kwire.analyze.findings import TimeFormat
from kwire.analyze.verdicts import VerdictLimits, judge
from kwire.client.assign import assignment

Life = Any


def test_an_evicted_member_that_comes_back(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    for at in (5.0, 7.0, 9.0, 10.5):
        life.beat("c1", at, 1)
    life.beat("c1", 11.5, 1, 27)
    life.join("c1", 11.6, 2, members=("c1-id",), asks="c1-id")
    life.sync("c1", 11.7, 2, given=("c1-id",))
    life.beat("c2", 12.030, 1, 25)
    assert life.said() == [
        "error: c2: UNKNOWN_MEMBER_ID at 12.031 (Heartbeat, check 7: member): evicted at 11.000, 6.0 s after its last "
        "heartbeat (frame 9); session timeout 6,000 ms (JoinGroup, frame 3)"
    ]


def test_the_proof_of_an_eviction_is_the_answer_the_last_heartbeat_and_the_join(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    life.beat("c2", 12.0, 1, 25)
    (found,) = [one for one in life.findings() if one.severity == "error"]
    assert [ref.packet for ref in found.evidence] == [12, 9, 3]
    assert found.subject == "group billing"


def test_an_evicted_member_that_is_never_heard_of_again(life: Life) -> None:
    life.pair()
    for at in (5.0, 7.0, 9.0, 10.5):
        life.beat("c1", at, 1)
    life.beat("c1", 11.5, 1, 27)
    life.join("c1", 11.6, 2, members=("c1-id",), asks="c1-id")
    assert life.said() == [
        "error: c2: evicted at 10.020, 6.0 s after its last SyncGroup (SyncGroup answer, frame 6); session timeout "
        "6,000 ms (JoinGroup, frame 3)"
    ]


def test_an_eviction_that_no_frame_shows_is_a_warning(life: Life) -> None:
    life.pair()
    for at in (5.0, 8.0, 10.5):
        life.beat("c1", at, 1)
    assert life.said(until=10.6) == [
        "warning: c2: evicted at 10.020, 6.0 s after its last SyncGroup (SyncGroup answer, frame 6); session timeout "
        "6,000 ms (JoinGroup, frame 3); no frame says so, but it was silent until the end"
    ]


def test_a_commit_keeps_a_member_alive(life: Life) -> None:
    life.pair()
    for at in (5.0, 9.0, 13.0):
        life.commit("c2", at, 1)
        life.beat("c1", at, 1)
    assert life.said(until=14.0) == []


def test_a_member_that_waits_in_join_is_not_evicted(life: Life) -> None:
    life.pair()
    life.join("c3", 6.0, 2, took=20.0, leader="c1-id")
    life.join("c1", 6.5, 2, members=("c1-id", "c2-id", "c3-id"), took=19.5, asks="c1-id")
    for at in (5.0, 9.0, 13.0, 17.0, 21.0, 25.0):
        life.beat("c2", at, 1, 0 if at < 6 else 27)
    life.join("c2", 25.9, 2, took=0.1, asks="c2-id", leader="c1-id")
    assert [one for one in life.said() if "generation 2" in one] == [
        "warning: generation 2 took 20.0 s to form from 6.000: c2 joined 19.9 s after it began, though told to at "
        "9.001 (frame 16)"
    ]


def test_a_member_that_does_not_rejoin_is_dropped(life: Life) -> None:
    life.join("c1", 1.0, 1, members=("c1-id", "c2-id"), took=3.0, rebalance=5000)
    life.join("c2", 1.2, 1, took=2.8, rebalance=5000, leader="c1-id")
    life.sync("c2", 4.01, 1, took=0.01)
    life.sync("c1", 4.015, 1, given=("c1-id", "c2-id"))
    life.join("c1", 6.0, 2, members=("c1-id",), asks="c1-id", took=5.0, rebalance=5000)
    for at in (5.0, 7.0, 9.0, 10.9):
        life.beat("c2", at, 1, 0 if at < 6 else 27)
    life.beat("c2", 12.0, 1, 25)
    found = life.said()
    assert found[0] == (
        "error: c2: UNKNOWN_MEMBER_ID at 12.001 (Heartbeat, check 7: member): dropped at 11.000: it had not rejoined "
        "within its rebalance timeout of 5,000 ms (JoinGroup, frame 3)"
    )
    assert found[1] == "warning: generation 2 took 5.0 s to form from 6.000: it waited for c2 in vain"


def test_to_go_on_at_the_rebalance_timeout_is_the_rule(life: Life) -> None:
    life.join("c1", 1.0, 1, members=("c1-id", "c2-id"), took=3.0, rebalance=5000)
    life.join("c2", 1.2, 1, took=2.8, rebalance=5000, leader="c1-id")
    life.sync("c2", 4.01, 1, took=0.01)
    life.sync("c1", 4.015, 1, given=("c1-id", "c2-id"))
    life.join("c3", 6.0, 2, took=5.001, rebalance=5000, leader="c1-id")
    life.join("c1", 6.3, 2, members=("c1-id", "c3-id"), asks="c1-id", took=4.702, rebalance=5000)
    for at in (5.0, 7.0, 9.0, 10.9):
        life.beat("c2", at, 1, 0 if at < 6 else 27)
    life.beat("c2", 12.0, 1, 25)
    assert not [one for one in life.said(notes=True) if "Kafka's rules" in one]


def test_a_fenced_static_member(life: Life) -> None:
    life.join("c1", 1.0, 1, members=("c1-a",), member="c1-a", took=3.0, instance="i-1")
    life.sync("c1", 4.0, 1)
    life.beat("c1", 5.0, 1, member="c1-a", instance="i-1")
    life.join("c9", 6.0, 1, member="c9-b", instance="i-1", leader="c1-a", host="10.0.0.9")
    life.beat("c1", 7.0, 1, 82, member="c1-a", instance="i-1")
    assert life.said()[0] == (
        "error: i-1: FENCED_INSTANCE_ID at 7.001 (Heartbeat, check 7: instance): client c9 from 10.0.0.9 took over its "
        "instance id i-1 at 6.000 (JoinGroup, frame 7)"
    )


def test_a_member_that_an_administrator_removed(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    life.leave("admin-1", 6.0, whose="c2-id")
    life.beat("c2", 7.0, 1, 25)
    assert life.said() == [
        "warning: c2: UNKNOWN_MEMBER_ID at 7.001 (Heartbeat, check 7: member): client admin-1 removed it at 6.000 "
        "(LeaveGroup, frame 11)"
    ]


def test_a_member_that_left_because_it_did_not_poll(life: Life) -> None:
    life.join("c1", 1.0, 1, members=("c1-id",), took=3.0, rebalance=6000)
    life.sync("c1", 4.0, 1, given=("c1-id",))
    for at in (5.0, 6.0, 7.0, 8.0, 9.0):
        life.beat("c1", at, 1)
    life.leave("c1", 9.5)
    assert life.said(14.5) == [
        "error: c1: left by itself at 9.500 (LeaveGroup, frame 15): its application had not polled for "
        "max.poll.interval.ms, 6,000 ms (JoinGroup, frame 1): 8.5 s passed since its last join or commit"
    ]


def test_a_member_that_closes_is_no_fault(life: Life) -> None:
    life.pair()
    life.leave("c2", 6.0)
    life.leave("c1", 6.5)
    assert life.said() == []
    history = life.groups.histories["billing"]
    assert [(cause.kind, cause.label) for cause in history.current.endings] == [("left", "c2"), ("left", "c1")]
    assert history.current.emptied is not None


def test_members_that_were_told_to_join_and_did_are_no_finding(life: Life) -> None:
    life.pair()
    life.beat("c2", 6.0, 1, 27)
    life.join("c2", 6.1, 2, took=0.8, asks="c2-id", leader="c1-id")
    life.join("c1", 6.5, 2, members=("c1-id", "c2-id"), took=0.4, asks="c1-id")
    assert life.said(until=7.0) == []


def test_a_member_that_was_told_to_join_and_does_not(life: Life) -> None:
    life.pair()
    life.beat("c1", 5.0, 1)
    life.join("c3", 6.0, None)
    for at in (6.5, 8.0, 9.5):
        life.beat("c2", at, 1, 27)
    life.join("c1", 6.5, None, asks="c1-id")
    assert life.said(until=14.0) == [
        "warning: c2: told at 6.501 that the group rebalances (frame 14), and has not joined since (2 more heartbeats "
        "were told the same)"
    ]


def test_a_rebalance_that_is_not_over(life: Life) -> None:
    life.pair(session=60_000)
    life.beat("c2", 5.0, 1)
    life.join("c3", 6.0, None)
    life.join("c1", 6.5, None, asks="c1-id")
    assert life.said(until=26.0) == [
        "warning: a rebalance that began at 6.000 is not over at the end, 20.0 s later: c3 and c1 wait in JoinGroup "
        "for c2"
    ]


def test_captures_that_begin_in_the_middle(life: Life) -> None:
    life.beat("c2", 5.0, 7)
    life.beat("c1", 5.1, 7)
    life.beat("c2", 14.0, 7, 25)
    assert life.said(notes=True) == [
        "error: c2: UNKNOWN_MEMBER_ID at 14.001 (Heartbeat): its last heartbeat was 9.0 s before (frame 1); its "
        "session timeout is not known, for its JoinGroup is not in the capture",
        "note: the capture does not hold all of the group: the group was at work before (from 5.000 on it is seen)",
    ]


def test_a_member_that_the_capture_never_showed(life: Life) -> None:
    life.pair()
    life.beat("c7", 7.0, 3, 25)
    assert life.said() == [
        "error: c7: UNKNOWN_MEMBER_ID at 7.001 (Heartbeat, check 7: member): the capture does not show this member "
        "before; it knows the group from 1.000 on"
    ]


def test_heartbeats_that_come_just_in_time(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    life.beat("c2", 10.4, 1)
    for at in (5.0, 7.0, 9.0):
        life.beat("c1", at, 1)
    assert life.said(until=10.5)[0] == (
        "warning: c2: 5.4 s between two heartbeats at 10.400; session timeout 6,000 ms (JoinGroup, frame 3)"
    )


def test_from_when_on_heartbeats_are_close_may_be_set(life: Life) -> None:
    life.pair()
    for at in (5.0, 8.0):
        life.beat("c1", at, 1)
        life.beat("c2", at, 1)
    life.history(9.0)
    for near, count in ((0.7, 0), (0.3, 2)):
        ((_, _, found),) = judge(life.groups, TimeFormat(START), VerdictLimits(near=near)).groups
        assert len([one for one in found if "between two heartbeats" in one.what]) == count


def test_a_group_that_does_not_come_to_rest(life: Life) -> None:
    life.join("c1", 1.0, 1, members=("c1-id",), took=3.0)
    for number in range(2, 7):
        life.join("c1", 3.0 * number, number, members=("c1-id",), asks="c1-id")
    assert life.said(until=19.0)[0] == (
        "warning: the group does not come to rest: 5 generations within 60.0 s from 6.000, 2 to 6, though no new "
        "member joined; what began them: c1 joined again (5×)"
    )


def test_a_group_that_the_coordinator_forgot_begins_anew(life: Life) -> None:
    life.pair()
    life.join("c3", 6.0, 2, took=1.0, leader="c1-id")
    life.join("c2", 6.2, 2, took=0.8, asks="c2-id", leader="c1-id")
    life.join("c1", 6.5, 2, members=("c1-id", "c2-id", "c3-id"), took=0.5, asks="c1-id")
    life.join("c1", 20.0, 1, members=("c1-new",), member="c1-new")
    history = life.history()
    assert [(one.number, [member.label for member in one.members.values()]) for one in history.generations] == [
        (1, ["c1", "c2"]),
        (2, ["c3", "c2", "c1"]),
        (1, ["c1"]),
    ]
    assert history.current.causes[0].kind == "back"


def test_the_timeline_of_a_member_that_comes_and_goes(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    life.beat("c1", 11.5, 1, 27)
    life.join("c1", 11.6, 2, members=("c1-id",), asks="c1-id")
    seat = life.history().seats.all["c2"]
    assert [(start - 1_700_000_000_000_000_000, end - 1_700_000_000_000_000_000) for start, end in seat.spells] == [
        (4_000_000_000, 11_000_000_000)
    ]


def test_a_thousand_generations_keep_their_outline_only(life: Life) -> None:
    life.groups._budget.parts = 20
    life.join("c1", 1.0, 1, members=("c1-id", "c2-id"), took=3.0)
    for number in range(2, 60):
        life.join("c2", 3.0 * number, number, asks="c2-id", took=0.2, leader="c1-id")
        life.join("c1", 3.0 * number + 0.1, number, members=("c1-id", "c2-id"), asks="c1-id", took=0.1)
    history = life.history()
    assert history.formed == 59
    assert len(history.generations[1].members) == 2
    assert [len(one.joins) for one in list(history.generations)[40:56]] == [1] * 16


def test_an_id_that_nobody_used_and_a_group_that_was_deleted(life: Life) -> None:
    life.join("c1", 1.0, -1, error=79)
    life.call("DeleteGroups", 5.0, {"GroupsNames": ["billing"]}, {}, client="admin-1")
    assert life.said(until=20.0, notes=True) == [
        "note: a member id was handed out (MEMBER_ID_REQUIRED, 1.001) and nobody joined with it",
        "note: the group was deleted at 5.001",
    ]


def test_a_consumer_alone_that_leaves_and_comes_back_disturbs_nobody(life: Life) -> None:
    """As one that is started every few seconds: the group is empty whenever it joins."""
    for number in range(1, 13, 2):
        life.join("c1", 3.0 * number, number, members=(f"c1-{number}",), member=f"c1-{number}")
        life.leave("c1", 3.0 * number + 2, whose=f"c1-{number}")
    assert not any("come to rest" in said for said in life.said(until=60.0))


def rolled(life: Life, at: float, number: int, who: str, others: tuple[str, ...], was: str) -> None:
    """A member that leaves, and comes back under another id: two generations."""
    life.leave(who, at, whose=was)
    for generation, ids, when in ((number, others, at + 0.5), (number + 1, (*others, f"{who}-{number}"), at + 2.5)):
        if len(ids) > len(others):
            life.join(who, at + 2, generation, took=0.6, member=f"{who}-{number}", leader=others[0])
        for one in others:
            known = tuple(ids) if one == others[0] else ()
            life.beat(one[:2], when - 0.1, generation - 1, 27, member=one)
            life.join(one[:2], when, generation, members=known, asks=one, member=one, took=0.1, leader=others[0])


def test_a_rolling_restart_is_no_storm(life: Life) -> None:
    """Each of five members leaves and comes back once: ten generations in half a minute."""
    ids = [f"c{number}-id" for number in range(1, 6)]
    for one in ids:
        known = tuple(ids) if one == ids[0] else ()
        life.join(one[:2], 1.0, 1, members=known, took=3.0, leader=ids[0])
    for number in range(2, 12, 2):
        first, *others = ids
        rolled(life, 3.0 * number, number, first[:2], tuple(others), first)
        ids = [*others, f"{first[:2]}-{number}"]
    assert life.history(until=40).formed == 11
    assert not any("come to rest" in said for said in life.said(until=40.0))


def test_a_member_that_restarts_again_and_again_is_a_storm(life: Life) -> None:
    life.join("c1", 1.0, 1, members=("c1-id", "c2-id"), took=3.0)
    life.join("c2", 1.2, 1, took=2.8, leader="c1-id")
    was = "c2-id"
    for number in range(2, 14, 2):
        rolled(life, 3.0 * number, number, "c2", ("c1-id",), was)
        was = f"c2-{number}"
    (said,) = [said for said in life.said(until=60.0) if "come to rest" in said]
    assert "c2 came back (6×)" in said


def synced(life: Life, at: float, generation: int, parts: dict[str, tuple[int, ...]]) -> None:
    """The leader's SyncGroup: who gets which partitions of a topic."""
    rows = [
        {"MemberId": member, "Assignment": assignment([("orders", one) for one in numbers])}
        for member, numbers in parts.items()
    ]
    body = {"GenerationId": generation, "MemberId": "c1-id", "Assignments": rows}
    answer = {"ErrorCode": 0, "Assignment": b""}
    life.call("SyncGroup", at, body, answer, client="c1", member="c1-id", generation=generation)


def test_cooperative_members_that_join_again_for_what_was_taken_are_no_storm(life: Life) -> None:
    """Four new members, each of which makes two generations: the second hands out what the first took (KIP-429)."""
    ids: tuple[str, ...] = ("c1-id",)
    life.join("c1", 1.0, 1, members=ids)
    synced(life, 1.1, 1, {"c1-id": tuple(range(8))})
    for count in range(2, 6):
        new, at = f"c{count}-id", 5.0 * count
        for number in (2 * count - 2, 2 * count - 1):
            at += 1
            if new not in ids:
                life.join(new[:2], at, number, took=0.3, leader="c1-id")
                life.beat("c1", at + 0.05, number - 1, 27)
            for one in ids:
                known = (*ids, new) if one == "c1-id" and new not in ids else ids if one == "c1-id" else ()
                life.join(one[:2], at + 0.1, number, members=known, asks=one, took=0.2, leader="c1-id")
            held = {one: (9 - int(one[1]),) for one in ids if one != "c1-id"}
            synced(life, at + 0.4, number, {"c1-id": tuple(range(9 - count)), **held})
            ids = ids if new in ids else (*ids, new)
    assert life.history(until=60).formed == 9
    assert not any("come to rest" in said for said in life.said(until=60.0))
