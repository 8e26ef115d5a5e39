"""JoinGroup, SyncGroup, LeaveGroup: what is refused and why, who leads, what comes of it."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def errors(made: Any, ticket: int) -> tuple[int, str]:
    answer = made.answer(ticket)
    return answer.body["ErrorCode"], answer.check.name


# JoinGroup


@pytest.mark.parametrize(
    ("fields", "error", "name"),
    [
        ({"SessionTimeoutMs": 5_999}, 26, "session timeout"),
        ({"SessionTimeoutMs": 1_800_001}, 26, "session timeout"),
        ({"GroupId": ""}, 24, "group id"),
        ({"GroupId": "h", "member": "ghost"}, 25, "group"),
        ({"ProtocolType": "connect"}, 23, "protocol"),
        ({"protocols": {"sticky": b""}}, 23, "protocol"),
        ({"protocols": {}}, 23, "protocol"),
        ({"GroupId": "h", "protocols": {}}, 23, "protocol"),
        ({"GroupId": "h", "ProtocolType": ""}, 23, "protocol"),
        ({"member": "ghost"}, 25, "member"),
        ({"member": "ghost", "GroupInstanceId": "i"}, 25, "instance"),
        ({}, 79, "member id"),
    ],
)
def test_refused_joins(lab: Make, fields: dict[str, Any], error: int, name: str) -> None:
    made = lab()
    made.stable("a")
    assert errors(made, made.join(**fields)) == (error, name)
    assert made.group.state == "Stable"


@pytest.mark.parametrize("version", range(10))
def test_an_error_in_every_version(lab: Make, version: int) -> None:
    made = lab()
    body = made.body(made.join("ghost", version=version))
    assert (body["ErrorCode"], body["GenerationId"], body["MemberId"], body["Members"]) == (25, -1, "ghost", [])
    assert body["ProtocolName"] == ("" if version < 7 else None)
    assert ("ThrottleTimeMs" in body, "ProtocolType" in body, "SkipAssignment" in body) == (
        version >= 2,
        version >= 7,
        version >= 9,
    )


@pytest.mark.parametrize(("version", "era", "required"), [(3, (4, 3), False), (4, (4, 3), True), (4, (2, 1), False)])
def test_a_member_id_is_required_from_v4(lab: Make, version: int, era: tuple[int, int], required: bool) -> None:
    made = lab(era=era)
    body = made.body(made.join(version=version))
    assert (body["ErrorCode"] == 79) == required
    if required:
        assert made.group.state == "Empty"
        again = made.body(made.join(body["MemberId"], version=version))
        assert (again["ErrorCode"], again["Leader"], again["GenerationId"]) == (0, "a-1", 1)
        assert [event.kind for event in made.events()] == ["id handed out", "joined", "rebalance", "generation"]


def test_an_id_handed_out_is_no_static_members(lab: Make) -> None:
    made = lab()
    made.join()
    assert errors(made, made.join("a-1", GroupInstanceId="i")) == (-1, "pending member")


def test_version_0_has_one_timeout_for_both(lab: Make) -> None:
    made = lab()
    made.join(version=0, SessionTimeoutMs=7_000)
    assert made.group.members["a-1"].rebalance_timeout_ms == 7_000


def test_only_the_leader_gets_the_members(lab: Make) -> None:
    made = lab()
    first = made.join(version=3, client="a")
    assert made.body(first)["Members"] == [{"MemberId": "a-1", "Metadata": b"r"}]
    second = made.join(version=3, client="b", protocols={"range": b"s"})
    again = made.join("a-1", version=3)
    assert made.body(again)["Members"] == [{"MemberId": "a-1", "Metadata": b"r"}, {"MemberId": "b-2", "Metadata": b"s"}]
    follower = made.body(second)
    assert (follower["Leader"], follower["GenerationId"], follower["Members"]) == ("a-1", 2, [])


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        ([["range", "sticky"]], "range"),
        ([["range", "sticky"], ["sticky", "range"], ["sticky", "range"]], "sticky"),
        ([["range", "sticky"], ["sticky"]], "sticky"),
        ([["range", "range"]], "range"),
    ],
)
def test_protocols_are_voted_on(lab: Make, members: list[list[str]], chosen: str) -> None:
    made = lab(group_initial_rebalance_delay_ms=100)
    for names in members:
        listed = [{"Name": name, "Metadata": b""} for name in names]
        made.join(version=3, Protocols=listed)
    made.wait(10_000)
    assert made.group.protocol == chosen


@pytest.mark.parametrize(("era", "chosen"), [((4, 3), "sticky"), ((3, 9), "range")])
def test_a_tie_of_votes_goes_by_the_order_of_the_hash_map(lab: Make, era: tuple[int, int], chosen: str) -> None:
    made = lab(era=era, group_initial_rebalance_delay_ms=100)
    made.join(version=3, protocols={"range": b"", "sticky": b""})
    made.join(version=3, protocols={"sticky": b"", "range": b""})
    made.wait(10_000)
    assert made.group.protocol == chosen


@pytest.mark.parametrize(
    ("state", "who", "changed", "rebalances"),
    [
        ("Stable", "b-2", False, False),
        ("Stable", "b-2", True, True),
        ("Stable", "a-1", False, True),
        ("CompletingRebalance", "b-2", False, False),
        ("CompletingRebalance", "a-1", False, False),
        ("CompletingRebalance", "b-2", True, True),
    ],
)
def test_who_rejoins_and_when_that_rebalances(lab: Make, state: str, who: str, changed: bool, rebalances: bool) -> None:
    made = lab()
    (made.stable if state == "Stable" else made.joined)("ab")
    ticket = made.join(who, protocols={"range": b"new" if changed else b"r"})
    assert made.group.state == ("PreparingRebalance" if rebalances else state)
    if rebalances:
        assert made.answer(ticket) is None
        assert made.events("rejoined")[-1].member == who
    else:
        body = made.body(ticket)
        assert (body["ErrorCode"], body["GenerationId"], len(body["Members"])) == (0, 2, 2 if who == "a-1" else 0)


def test_of_two_joins_of_one_member_the_second_is_answered(lab: Make) -> None:
    made = lab()
    a, b = made.stable("ab")
    first, second = made.join(a), made.join(a)
    made.join(b)
    assert made.answer(first) is None
    assert made.body(second)["GenerationId"] == 3
    assert made.coordinator.waiting == 0
    assert made.events("rejoined")[-2].facts["superseded"] == first


@pytest.mark.parametrize(("state", "error"), [("Stable", 81), ("PreparingRebalance", 81), ("Empty", 79)])
def test_a_full_group_takes_nobody_in(lab: Make, state: str, error: int) -> None:
    made = lab(group_max_size=2)
    a, b = made.stable("ab")
    if state == "PreparingRebalance":
        made.join(a, SessionTimeoutMs=50_000, RebalanceTimeoutMs=50_000)
        made.leave((b, None))
        made.join(a)
        made.join(version=3, client="c")
        made.join(version=3, client="d")
        made.join(a)
    if state == "Empty":
        made.leave((a, None), (b, None))
    full = made.body(made.join(client="e"))
    assert full["ErrorCode"] == error


def test_the_next_leader_is_the_first_in_javas_order(lab: Make) -> None:
    made = lab()
    a, b, c = made.stable("abc")
    made.leave((a, None))
    assert made.group.leader == b
    made.join(c)
    made.wait(10_000)
    assert made.group.leader == c  # b was evicted


# static members


@pytest.mark.parametrize(
    ("version", "who", "skip", "members", "leader"),
    [(9, "leader", True, 2, "i-3"), (8, "leader", None, 0, "i-1"), (9, "follower", False, 0, "a-1")],
)
def test_a_static_member_restarts_without_a_rebalance(
    lab: Make, version: int, who: str, skip: bool | None, members: int, leader: str
) -> None:
    made = lab()
    first, second = ({"GroupInstanceId": "i"}, {}) if who == "leader" else ({}, {"GroupInstanceId": "i"})
    one = made.body(made.join(version=5, **first) if first else made.join(version=3))["MemberId"]
    other = made.join(version=5 if second else 3, client="b", **second)
    made.join(one, version=5, **first)
    both = [one, made.body(other)["MemberId"]]
    made.sync(one, 2, {each: each.encode() for each in both})
    made.sync(both[1], 2)
    made.coordinator.answers()
    old = made.group.instances["i"]
    body = made.body(made.join(version=version, GroupInstanceId="i"))
    assert (body["ErrorCode"], body["GenerationId"], body["MemberId"]) == (0, 2, "i-3")
    assert (body.get("SkipAssignment"), len(body["Members"]), body["Leader"]) == (skip, members, leader)
    assert made.group.state == "Stable"
    assert made.group.members["i-3"].assignment == old.encode()
    (event,) = made.events("fenced")
    assert (event.member, event.facts) == (old, {"by": "i-3", "instance_id": "i"})
    assert made.beat(old, 2, "i").body["ErrorCode"] == 82
    assert made.beat(old, 2).body["ErrorCode"] == 25


def test_a_static_member_that_changes_the_protocol_rebalances(lab: Make) -> None:
    made = lab()
    made.stable("a", GroupInstanceId="i", protocols={"range": b"", "sticky": b""})
    made.join(GroupInstanceId="i", protocols={"sticky": b""})
    assert (made.group.generation, made.group.protocol) == (2, "sticky")


def test_requests_of_a_replaced_member_are_fenced(lab: Make) -> None:
    made = lab()
    first = made.body(made.join(version=5, GroupInstanceId="i"))["MemberId"]
    made.join(version=3, client="b")
    made.join(first, version=5, GroupInstanceId="i")
    assert made.group.state == "CompletingRebalance"
    waiting = made.join(first, GroupInstanceId="i", protocols={"range": b"other"})
    again = made.join(GroupInstanceId="i")
    assert made.pick(waiting, "ErrorCode", "MemberId") == [82, first]
    made.join("b-2")
    body = made.body(again)
    assert (body["ErrorCode"], body["GenerationId"]) == (0, 3)


def test_a_waiting_sync_is_fenced_too(lab: Make) -> None:
    made = lab()
    leader = made.body(made.join(version=3))["MemberId"]
    other = made.join(version=5, client="b", GroupInstanceId="i")
    made.join(leader, version=3)
    waiting = made.sync(made.body(other)["MemberId"], 2)
    made.join(GroupInstanceId="i")
    assert made.body(waiting)["ErrorCode"] == 82
    assert made.group.state == "PreparingRebalance"


# SyncGroup


@pytest.mark.parametrize(
    ("fields", "error", "name"),
    [
        ({"GroupId": "h"}, 25, "group"),
        ({"GroupId": ""}, 24, "group id"),
        ({"MemberId": "ghost"}, 25, "member"),
        ({"MemberId": "ghost", "GroupInstanceId": "i"}, 25, "instance"),
        ({"GenerationId": 1}, 22, "generation"),
        ({"ProtocolType": "connect"}, 23, "protocol"),
        ({"ProtocolName": "sticky"}, 23, "protocol"),
        ({"ProtocolName": None}, 23, "protocol"),
    ],
)
def test_refused_syncs(lab: Make, fields: dict[str, Any], error: int, name: str) -> None:
    made = lab()
    a, _ = made.joined("ab")
    assert errors(made, made.sync(a, 2, **fields)) == (error, name)


def test_the_leaders_sync_answers_all(lab: Make) -> None:
    made = lab()
    a, b = made.joined("ab")
    follower = made.sync(b, 2)
    assert made.answer(follower) is None
    leader = made.sync(a, 2, {b: b"for b", "ghost": b"lost"})
    assert made.body(follower)["Assignment"] == b"for b"
    assert made.body(leader) == {
        "ThrottleTimeMs": 0,
        "ErrorCode": 0,
        "ProtocolType": "consumer",
        "ProtocolName": "range",
        "Assignment": b"",
    }
    assert made.group.state == "Stable"
    assert made.events("stable")[0].facts == {"leader": a, "took_ms": 0, "left_out": [a]}
    assert made.body(made.sync(b, 2))["Assignment"] == b"for b"


def test_a_rebalance_interrupts_waiting_syncs(lab: Make) -> None:
    made = lab()
    _, b = made.joined("ab")
    waiting = made.sync(b, 2)
    made.join(version=3, client="c")
    assert made.body(waiting)["ErrorCode"] == 27
    assert errors(made, made.sync(b, 2)) == (27, "state")


@pytest.mark.parametrize(("era", "kept"), [((4, 3), False), ((3, 9), True)])
def test_a_sync_of_a_stable_group_keeps_alive_before_4_0(lab: Make, era: tuple[int, int], kept: bool) -> None:
    made = lab(era=era)
    a = made.stable("a")[0]
    made.wait(9_000)
    made.sync(a, 1)
    made.wait(2_000)
    assert (a in made.group.members) == kept


# LeaveGroup


def test_leaving_one_by_one_and_in_a_batch(lab: Make) -> None:
    made = lab()
    a, b, c = made.stable("abc")
    body = made.leave((a, None), ("ghost", None), ("", None), ("", "i"), (b, "i"))
    assert [(each["MemberId"], each["ErrorCode"]) for each in body["Members"]] == [
        (a, 0),
        ("ghost", 25),
        ("", 25),
        ("", 25),
        (b, 25),
    ]
    assert body["ErrorCode"] == 0
    assert made.group.state == "PreparingRebalance"
    old = made.get("LeaveGroup", 2, {"GroupId": "g", "MemberId": "ghost"})
    assert old == {"ThrottleTimeMs": 0, "ErrorCode": 25}
    assert made.get("LeaveGroup", 0, {"GroupId": "g", "MemberId": c}) == {"ErrorCode": 0}
    assert [event.member for event in made.events("left")] == [a, c]


def test_an_administrator_removes_a_static_member_by_its_instance(lab: Make) -> None:
    made = lab()
    made.stable("a", GroupInstanceId="i")
    assert made.leave(("", "i"))["Members"] == [{"MemberId": "", "GroupInstanceId": "i", "ErrorCode": 0}]
    assert (made.group.state, made.group.generation, made.group.leader) == ("Empty", 2, None)


def test_a_wrong_pair_is_fenced(lab: Make) -> None:
    made = lab()
    made.stable("a", GroupInstanceId="i")
    assert made.leave(("other", "i"))["Members"][0]["ErrorCode"] == 82


def test_who_leaves_while_it_joins_gets_an_answer(lab: Make) -> None:
    made = lab()
    a, b = made.stable("ab")
    waiting = made.join(a)
    made.leave((a, None))
    assert made.body(waiting)["ErrorCode"] == 25
    assert made.group.state == "PreparingRebalance"
    assert made.group.leader == b


def test_who_leaves_while_it_syncs_gets_an_answer(lab: Make) -> None:
    made = lab()
    _, b = made.joined("ab")
    waiting = made.sync(b, 2)
    made.leave((b, None))
    assert made.body(waiting)["ErrorCode"] == 25


@pytest.mark.parametrize(("era", "state"), [((4, 3), "PreparingRebalance"), ((3, 9), "Stable")])
def test_an_id_given_back_rebalances_from_4_0_on(lab: Make, era: tuple[int, int], state: str) -> None:
    made = lab(era=era)
    made.stable("a")
    made.join(client="b")
    made.leave(("b-2", None))
    assert made.group.state == state


def test_an_id_handed_out_may_be_given_back(lab: Make) -> None:
    made = lab()
    made.join()
    assert made.leave(("a-1", None))["Members"][0]["ErrorCode"] == 0
    assert made.group.pending == {}


def test_leaving_a_group_that_is_not_there(lab: Make) -> None:
    body = lab().leave(("a-1", "i"))
    assert body == {
        "ThrottleTimeMs": 0,
        "ErrorCode": 0,
        "Members": [{"MemberId": "a-1", "GroupInstanceId": "i", "ErrorCode": 25}],
    }
