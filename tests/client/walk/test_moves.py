"""A coordinator that moves while a walk goes on: it is found again at every step, and the group is left at the end."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.consumer import ClassicMember
from kwire.client.walk.settings import WalkSettings
from kwire.client.walk.step import Step
from kwire.client.walk.walk import Walk
from kwire.testing import Broker

Told = list[tuple[int, str, int | None]]
START: Told = [(1, "ok", None), (2, "ok", None), (3, "ok", None), (4, "ok", None)]


def _walk(broker: Broker, **settings: Any) -> tuple[Walk, list[Step], list[float]]:
    slept: list[float] = []
    walk = Walk(WalkSettings([Address.parse(broker.address)], "g", "t", interval_ms=0, **settings), slept.append)
    return walk, list(walk.steps()), slept


def _told(steps: list[Step]) -> Told:
    return [(step.number, step.verdict, step.error) for step in steps]


MOVES: list[tuple[str, Told]] = [
    ("Heartbeat:move", [(5, "note", 16), (2, "ok", None), (5, "ok", None), (6, "ok", None), (7, "note", None),
                        (5, "ok", None), (8, "ok", None)]),
    ("Heartbeat:move,after=1", [(5, "ok", None), (6, "ok", None), (7, "note", None), (5, "note", 16), (2, "ok", None),
                                (5, "ok", None), (8, "ok", None)]),
    ("OffsetFetch:move", [(5, "ok", None), (6, "note", 16), (2, "ok", None), (6, "ok", None), (7, "note", None),
                          (5, "ok", None), (8, "ok", None)]),
    ("LeaveGroup:move", [(5, "ok", None), (6, "ok", None), (7, "note", None), (5, "ok", None), (8, "note", 16),
                         (2, "ok", None), (8, "ok", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "told"), MOVES)
def test_what_is_refused_is_asked_of_the_next_coordinator(fault: str, told: Told) -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=[fault]) as broker:
        walk, steps, _ = _walk(broker)
        assert _told(steps) == START + told
        assert not walk.failed
        assert not broker.server.state.groups.coordinator.groups["g"].members
    found = [step.text for step in steps if step.number == 2]
    assert found[0].split()[1] != found[1].split()[1]
    assert found[1].endswith(", anew")


def test_a_sync_that_is_refused_joins_again() -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=["SyncGroup:move"]) as broker:
        walk, steps, _ = _walk(broker, beats=1)
        assert _told(steps)[3:7] == [(4, "note", 16), (2, "ok", None), (3, "ok", None), (4, "ok", None)]
        assert _told(steps)[-1] == (8, "ok", None)
        assert not walk.failed


def test_a_join_that_is_refused_says_so() -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=["JoinGroup:move,after=1"]) as broker:
        _, steps, _ = _walk(broker, beats=1)
        assert _told(steps)[:4] == START
        assert steps[2].details[0].text.startswith("not at once: 16 NOT_COORDINATOR; joined at ")


@pytest.mark.parametrize("code", [25, 22])
def test_a_member_that_the_next_coordinator_does_not_know_joins_anew(code: int) -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=["Heartbeat:move"]) as broker:
        broker.fault(f"Heartbeat:error={code},after=1,times=1")
        walk, steps, _ = _walk(broker, beats=1)
        assert _told(steps)[4:9] == [(5, "note", 16), (2, "ok", None), (5, "note", code), (3, "ok", None),
                                     (4, "ok", None)]  # fmt: skip
        assert _told(steps)[-1] == (8, "ok", None)
        assert steps[6].advice == "The new coordinator does not know this member: so it joins anew, as clients do."
        assert not walk.failed


def test_a_coordinator_that_is_loading_is_waited_for() -> None:
    with Broker(topics={"t": 1}, faults=["OffsetFetch:error=COORDINATOR_LOAD_IN_PROGRESS,times=2"]) as broker:
        walk, steps, slept = _walk(broker, beats=1)
        assert _told(steps)[5:8] == [(6, "note", 14), (6, "note", 14), (6, "ok", None)]
        assert slept == [0.25, 0.5]
        assert not walk.failed


def test_a_broker_that_never_is_the_coordinator() -> None:
    with Broker(topics={"t": 1}, faults=["Heartbeat:error=NOT_COORDINATOR"]) as broker:
        walk, steps, slept = _walk(broker, beats=1)
        assert _told(steps)[4:] == [(5, "note", 16), (2, "ok", None)] * 4 + [(5, "error", 16)]
        assert steps[5].text.endswith(", the same as before")
        assert slept == [0.25, 0.5, 1.0, 2.0]
        assert (walk.failed, walk.left) == (True, True)


def test_breaking_off_leaves_a_group_that_has_moved() -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=["LeaveGroup:move"]) as broker:
        walk = Walk(WalkSettings([Address.parse(broker.address)], "g", "t"))
        steps = walk.steps()
        for _ in range(4):
            next(steps)
        steps.close()
        assert walk.left
        assert not broker.server.state.groups.coordinator.groups["g"].members


@pytest.mark.parametrize(
    ("after", "part"),
    [
        (0, [(3, "note", 16), (2, "ok", None), (3, "ok", None)]),
        (1, [(3, "ok", None), (4, "note", 16), (2, "ok", None), (4, "ok", None)]),
        (2, [(7, "note", None), (5, "note", 16), (2, "ok", None), (5, "ok", None)]),
        (4, [(5, "ok", None), (8, "note", 16), (2, "ok", None), (8, "ok", None)]),
    ],
)
def test_the_consumer_protocol_moves_too(after: int, part: Told) -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=[f"ConsumerGroupHeartbeat:move,after={after}"]) as broker:
        walk, steps, _ = _walk(broker, protocol="consumer", beats=2)
        told = _told(steps)
        assert part in [told[at : at + len(part)] for at in range(len(told))]
        assert told[-1] == (8, "ok", None)
        assert not walk.failed


@pytest.mark.parametrize("code", [25, 110])
def test_the_consumer_protocol_joins_anew(code: int) -> None:
    with Broker(nodes=3, topics={"t": 1}, faults=["ConsumerGroupHeartbeat:move,after=2"]) as broker:
        broker.fault(f"ConsumerGroupHeartbeat:error={code},after=3,times=1")
        walk, steps, _ = _walk(broker, protocol="consumer", beats=2)
        assert _told(steps)[6:11] == [(5, "note", 16), (2, "ok", None), (5, "note", code), (3, "ok", None),
                                      (4, "ok", None)]  # fmt: skip
        assert _told(steps)[-1] == (8, "ok", None)
        assert not walk.failed


def test_a_member_joins_with_an_empty_id_where_its_own_is_not_known() -> None:
    with Broker(topics={"t": 1}) as broker, ClassicMember(broker.address, "g", "t") as member:
        member.find()
        member.member = "nobody"
        joined = member.join()
        assert (joined.passed, joined.asked, joined.generation) == ((25,), 3, 1)
        assert joined.member != "nobody"
