"""Groups made by hand: why their requests were refused, in exact words with exact times and frames."""

from __future__ import annotations

from typing import Any

import pytest

Life = Any


def test_a_commit_of_an_old_generation(life: Life) -> None:
    life.pair()
    life.join("c3", 6.0, 2, took=1.0, leader="c1-id")
    life.join("c2", 6.2, 2, took=0.8, asks="c2-id", leader="c1-id")
    life.join("c1", 6.5, 2, members=("c1-id", "c2-id", "c3-id"), took=0.5, asks="c1-id")
    life.commit("c2", 8.0, 1, 22)
    assert life.said()[0] == (
        "error: c2: ILLEGAL_GENERATION at 8.001 (OffsetCommit, check 8: generation): it says generation 1; the group "
        "is at 2 since 7.000 (JoinGroup answer, frame 10); offsets of 1 partition of orders were not stored"
    )


def test_a_commit_within_a_rebalance_that_succeeds_later_is_a_note(life: Life) -> None:
    life.pair()
    life.join("c3", 6.0, 2, took=1.0, leader="c1-id")
    life.commit("c2", 6.1, 1, 27)
    life.join("c2", 6.2, 2, took=0.8, asks="c2-id", leader="c1-id")
    life.join("c1", 6.5, 2, members=("c1-id", "c2-id", "c3-id"), took=0.5, asks="c1-id")
    life.sync("c2", 7.1, 2)
    life.sync("c1", 7.2, 2, given=("c1-id", "c2-id", "c3-id"))
    life.commit("c2", 8.0, 2)
    found = [one.what for one in life.findings() if "REBALANCE_IN_PROGRESS" in one.what]
    assert found == [
        "c2: REBALANCE_IN_PROGRESS at 6.101 (OffsetCommit): the group rebalances since 6.000: c3 joined at 6.000; a "
        "commit succeeded at 8.001; offsets of 1 partition of orders were not stored"
    ]


def test_a_refusal_that_nothing_explains(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    life.beat("c2", 6.0, 1, 25)
    assert life.said(notes=True) == [
        "error: c2: UNKNOWN_MEMBER_ID at 6.001 (Heartbeat): its last heartbeat was 1.0 s before (frame 9), within its "
        "session timeout 6,000 ms (JoinGroup, frame 3): the coordinator lost the group, or it was deleted",
        "note: c2: Heartbeat at 6.000 was answered UNKNOWN_MEMBER_ID; by Kafka's rules no error: generation 1 stands; "
        "last heard of 1,000 ms ago, session timeout 6,000 ms",
    ]


def test_what_came_after_a_refusal_is_not_its_cause(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1)
    life.beat("c2", 6.0, 1, 25)
    life.join("c2", 6.1, 2, member="c2-new", took=5.9, leader="c1-id")
    life.beat("c1", 6.2, 1, 27)
    life.join("c1", 6.3, 2, members=("c1-id", "c2-new"), asks="c1-id", took=5.7)
    found = life.findings()
    assert [(one.what, one.advice) for one in found if one.severity == "error"] == [
        (
            "c2: UNKNOWN_MEMBER_ID at 6.001 (Heartbeat): its last heartbeat was 1.0 s before (frame 9), within its "
            "session timeout 6,000 ms (JoinGroup, frame 3): the coordinator lost the group, or it was deleted",
            "Look in the coordinator's log for the member id.",
        )
    ]


def test_a_refused_generation_that_is_the_right_one(life: Life) -> None:
    life.pair()
    life.beat("c2", 5.0, 1, 22)
    assert life.said() == [
        "warning: c2: ILLEGAL_GENERATION at 5.001 (Heartbeat): it says generation 1, as the group does since 4.000 "
        "(JoinGroup answer, frame 2)"
    ]


@pytest.mark.parametrize(
    ("error", "joined", "said"),
    [
        (
            26,
            {"session": 1000},
            "error: c1: INVALID_SESSION_TIMEOUT at 1.001 (JoinGroup): it asks for a session timeout of 1,000 ms; the "
            "broker allows group.min.session.timeout.ms (6,000 by default) to group.max.session.timeout.ms (1,800,000)",
        ),
        (
            23,
            {"protocol": "sticky"},
            "error: c1: INCONSISTENT_GROUP_PROTOCOL at 1.001 (JoinGroup): it offers consumer sticky",
        ),
    ],
)
def test_joins_that_are_refused(life: Life, error: int, joined: dict[str, Any], said: str) -> None:
    life.join("c1", 1.0, -1, error=error, member="", **joined)
    assert life.said() == [said]


def test_an_id_that_is_handed_out_is_no_error(life: Life) -> None:
    life.join("c1", 1.0, -1, error=79)
    life.join("c1", 1.1, 1, members=("c1-id",), asks="c1-id", took=3.0)
    assert life.said(notes=True) == []


def test_a_coordinator_that_starts_is_a_note_one_that_never_comes_an_error(life: Life) -> None:
    for at in (1.0, 3.0, 7.0):
        life.call("FindCoordinator", at, {"Key": "billing"}, {}, client="c1", error=15)
    assert life.said() == [
        "error: c1: COORDINATOR_NOT_AVAILABLE at 1.001 (FindCoordinator) and 2 times more until 7.001: there was no "
        "coordinator yet, and no FindCoordinator went well after it"
    ]
    life.call("FindCoordinator", 8.0, {"Key": "billing"}, {}, client="c1")
    assert [one.severity for one in life.findings()] == ["note"]


def test_a_capture_that_ends_while_the_coordinator_starts_proves_nothing(life: Life) -> None:
    life.call("FindCoordinator", 1.0, {"Key": "billing"}, {}, client="c1", error=15)
    assert life.said(until=3.001, notes=True) == [
        "note: c1: COORDINATOR_NOT_AVAILABLE at 1.001 (FindCoordinator): there was no coordinator yet, and no "
        "FindCoordinator went well after it; the capture ends 2.0 s later"
    ]


def test_a_broker_that_does_not_coordinate_says_nothing_of_another_one(life: Life) -> None:
    life.join("c1", 1.0, 0, error=16)
    life.join("c1", 2.0, 1, members=("c1-id",))
    (said,) = [one for one in life.said(9.0, notes=True) if "NOT_COORDINATOR" in one]
    assert said.startswith("note: c1: NOT_COORDINATOR at 1.001 (JoinGroup): that broker did not coordinate it then")
    assert "another" not in said
