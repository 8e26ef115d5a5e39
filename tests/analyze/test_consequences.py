"""Events of the cluster and what follows from them: the same broker, at about that time, the same partition."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.analyze.consequences import MOST, families, with_causes
from kwire.analyze.findings import SECOND, Finding, RootEvent

AT = 1000 * SECOND
NODE = frozenset({"c/3"})
GONE = Finding("error", "gone", detector="broker-gone", time=AT, last=AT + 8 * SECOND, about={"broker": "b:1"},
               brokers=frozenset({"b:1", "c/3"}))  # fmt: skip


def finding(detector: str, after: float = 1, **given: Any) -> Finding:
    return Finding(
        **{
            "severity": "note",
            "what": detector,
            "detector": detector,
            "time": AT + int(after * SECOND),
            "brokers": NODE,
            **given,
        }
    )


def told(*found: Finding) -> list[tuple[str, list[str]]]:
    return [
        (head.detector, [one.detector for one in others]) for head, others in families(with_causes(found))
    ]  # fmt: skip


def test_what_names_the_same_broker_follows() -> None:
    assert told(finding("leader-moved"), GONE) == [("broker-gone", ["leader-moved"])]
    other = finding("leader-moved", brokers=frozenset({"c/2"}))
    assert told(GONE, other) == [("broker-gone", []), ("leader-moved", [])]
    assert told(GONE, finding("offset-reset", brokers=frozenset())) == [("broker-gone", []), ("offset-reset", [])]


@pytest.mark.parametrize(("after", "follows"), [(-11, False), (-9, True), (67, True), (69, False)])
def test_only_about_that_time(after: float, follows: bool) -> None:
    found = with_causes([GONE, finding("leader-moved", after)])
    assert (found[1].cause == RootEvent("broker-gone", AT, "b:1")) == follows


def test_what_follows_from_what_follows_stands_under_the_root() -> None:
    moved, stale = finding("leader-moved"), finding("stale-leader", 2)
    assert told(stale, moved) == [("leader-moved", ["stale-leader"])]
    assert told(stale, moved, GONE) == [("broker-gone", ["stale-leader", "leader-moved"])]


def test_of_another_partition_it_does_not() -> None:
    one, same, other = ({"topic": "t", "partition": number} for number in (0, 0, 1))
    moved = finding("leader-moved", about=one)
    assert told(moved, finding("stale-leader", about=same)) == [("leader-moved", ["stale-leader"])]
    assert told(moved, finding("stale-leader", about=other)) == [("leader-moved", []), ("stale-leader", [])]


def test_equal_events_do_not_follow_from_each_other() -> None:
    """Unless a broker has two addresses."""
    assert told(finding("leader-moved"), finding("leader-moved", 20)) == [("leader-moved", []), ("leader-moved", [])]
    groups = [finding("coordinator-moved", at, about={"group": f"g{at}"}) for at in (1, 2)]
    assert told(*groups) == [("coordinator-moved", []), ("coordinator-moved", [])]
    other = finding("broker-gone", about={"broker": "b:2"}, brokers=frozenset({"b:2", "c/3"}))
    assert told(GONE, other) == [("broker-gone", ["broker-gone"])]


def test_the_family_with_the_worst_finding_comes_first() -> None:
    moved, stale = finding("leader-moved"), finding("stale-leader", severity="error")
    other = Finding("warning", "slow", detector="slow-client", time=AT)
    assert told(other, moved, stale) == [("leader-moved", ["stale-leader"]), ("slow-client", [])]


def test_many_events_of_a_broker_are_not_compared_with_each_other() -> None:
    every = [finding("coordinator-moved", about={"group": f"g{at}"}) for at in range(3 * MOST)]
    assert told(*every, finding("leader-moved")) == [("leader-moved", ["coordinator-moved"] * 3 * MOST)]


def test_one_whose_event_is_not_there_stands_alone() -> None:
    alone = finding("leader-moved", cause=RootEvent("broker-gone", AT, "b:1"))
    assert families([alone]) == [(alone, [])]
