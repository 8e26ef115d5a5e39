"""Heartbeat: which check decides, by era and state; what keeps a member alive."""

from collections.abc import Callable
from typing import Any

import pytest

from kwire.coordinator import heartbeat_rules, preconditions
from kwire.coordinator.types import MS

Make = Callable[..., Any]
ERAS = {"0.9": (0, 9), "0.11": (0, 11), "2.3": (2, 3), "2.7": (2, 7), "3.9": (3, 9), "4.3": (4, 3)}

# state of the group, who beats with which generation: (check number, error) by era
TABLE = {
    ("none", "a-1", 1): dict.fromkeys(ERAS, (5, 25)),
    ("Empty", "a-1", 2): {**dict.fromkeys(list(ERAS)[1:], (7, 25)), "0.11": (6, 25)},
    ("PreparingRebalance", "a-1", 1): dict.fromkeys(ERAS, (6, 27)),
    ("PreparingRebalance", "ghost", 1): {**dict.fromkeys(ERAS, (7, 25)), "0.9": (6, 27)},
    ("PreparingRebalance", "a-1", 9): {**dict.fromkeys(ERAS, (8, 22)), "0.9": (6, 27)},
    ("CompletingRebalance", "a-1", 1): {**dict.fromkeys(ERAS, (6, 27)), "2.7": (8, 0), "3.9": (8, 0), "4.3": (8, 0)},
    ("CompletingRebalance", "a-1", 9): {**dict.fromkeys(ERAS, (8, 22)), "0.9": (6, 27), "0.11": (6, 27)},
    ("CompletingRebalance", "ghost", 1): {**dict.fromkeys(ERAS, (7, 25)), "0.9": (6, 27)},
    ("Stable", "a-1", 1): dict.fromkeys(ERAS, (8, 0)),
    ("Stable", "ghost", 1): dict.fromkeys(ERAS, (7, 25)),
    ("Stable", "a-1", 0): dict.fromkeys(ERAS, (8, 22)),
    ("Stable", "", -1): dict.fromkeys(ERAS, (7, 25)),
}
CASES = [(era, *case, *expected) for case, by_era in TABLE.items() for era, expected in by_era.items()]


@pytest.mark.parametrize(("era", "state", "member", "generation", "number", "error"), CASES)
def test_which_check_decides(
    lab: Make, era: str, state: str, member: str, generation: int, number: int, error: int
) -> None:
    answer = lab(era=ERAS[era]).in_state(state).beat(member, generation)
    assert (answer.check.number, answer.check.error, answer.body["ErrorCode"]) == (number, error, error)


@pytest.mark.parametrize(
    ("state", "member", "generation", "why"),
    [
        ("none", "a-1", 1, "this coordinator knows no group g"),
        ("PreparingRebalance", "a-1", 1, "group g is PreparingRebalance, 1 of 2 members have joined"),
        ("Stable", "ghost", 1, "ghost is no member of group g"),
        ("Stable", "a-1", 7, "generation 7, the group is at 1"),
        ("Stable", "a-1", 1, "generation 1 stands; last heard of 0 ms ago, session timeout 10,000 ms"),
    ],
)
def test_the_reason_has_the_values_compared(lab: Make, state: str, member: str, generation: int, why: str) -> None:
    assert lab().in_state(state).beat(member, generation).check.why == why


@pytest.mark.parametrize(
    ("member", "instance", "era", "name", "error"),
    [
        ("i-1", "i", (4, 3), "generation", 0),
        ("other", "i", (4, 3), "instance", 82),
        ("i-1", "j", (4, 3), "instance", 25),
        ("i-1", "j", (2, 7), "generation", 0),
        ("other", None, (4, 3), "member", 25),
    ],
)
def test_static_members(
    lab: Make, member: str, instance: str | None, era: tuple[int, int], name: str, error: int
) -> None:
    made = lab(era=era)
    made.stable("a", GroupInstanceId="i")
    check = made.beat(member, 1, instance).check
    assert (check.name, check.error) == (name, error)


@pytest.mark.parametrize(
    ("state", "era", "kept"),
    [
        ("Stable", (4, 3), True),
        ("CompletingRebalance", (4, 3), True),
        ("CompletingRebalance", (2, 3), False),
        ("PreparingRebalance", (4, 3), True),
        ("PreparingRebalance", (0, 9), False),
    ],
)
def test_what_keeps_a_member_alive(lab: Make, state: str, era: tuple[int, int], kept: bool) -> None:
    made = lab(era=era).in_state(state)
    made.wait(6_000)
    made.beat("a-1", 1)
    made.wait(6_000)
    assert ("a-1" in made.group.members) == kept


@pytest.mark.parametrize(
    ("switch", "era", "number", "error"),
    [
        ("may", (4, 3), 1, 30),
        ("active", (4, 3), 2, 15),
        ("owns", (4, 3), 3, 16),
        ("loading", (4, 3), 4, 0),
        ("loading", (0, 9), 4, 0),
        ("may active owns loading", (4, 3), 1, 30),
        ("active owns loading", (4, 3), 2, 15),
        ("owns loading", (4, 3), 3, 16),
        ("owns loading", (3, 9), 4, 0),  # loading is looked at first
    ],
)
def test_gates(lab: Make, switch: str, era: tuple[int, int], number: int, error: int) -> None:
    made = lab(era=era).in_state("Stable")
    changes = {"may": lambda *_: False, "active": False, "owns": lambda _: False, "loading": {"g"}}
    for each in switch.split():
        setattr(made.coordinator, each, changes[each])
    answer = made.beat("ghost", 99)
    assert (answer.check.number, answer.body["ErrorCode"]) == (number, error)


def test_while_loading_the_answer_is_blind_and_counts_for_nothing(lab: Make) -> None:
    made = lab().in_state("Stable")
    made.coordinator.loading = {"g"}
    made.wait(5_000)
    assert made.beat("a-1", 1).check.why == "group g is being loaded: answered blindly"
    assert made.group.members["a-1"].last_heartbeat == 0


def test_an_empty_group_id_is_refused(lab: Make) -> None:
    check = lab().beat("a-1", 1, group="").check
    assert (check.name, check.error) == ("group id", 24)


def test_a_heartbeat_moves_the_deadline_by_the_session_timeout(lab: Make) -> None:
    made = lab().in_state("Stable")
    made.wait(4_000)
    made.beat("a-1", 1)
    member = made.group.members["a-1"]
    assert (member.last_heartbeat, member.heard) == (4_000 * MS, "Heartbeat")
    made.wait(9_999)
    assert "a-1" in made.group.members
    made.wait(1)
    assert "a-1" not in made.group.members


@pytest.mark.parametrize("table", [heartbeat_rules.ERAS, preconditions.ERAS])
def test_eras_are_listed_newest_first(table: Any) -> None:
    starts = [start for start, _ in table]
    assert starts == sorted(starts, reverse=True)
    assert starts[-1] == (0, 9)
