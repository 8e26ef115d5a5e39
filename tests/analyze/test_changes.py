"""What counts as a change, and which clients are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from kwire.analyze.changes import ComparedSide, changes, paired
from kwire.analyze.measures import Measure
from kwire.analyze.profile import Profile
from kwire.analyze.profiles import Profiles

SECOND = 1_000_000_000


def _profile(client_id: str, software: str = "", seconds: int = 10, **counts: int) -> Profile:
    profile = Profile(client_id, start=SECOND, end=(1 + seconds) * SECOND)
    profile.apis = {api: Measure(count=count) for api, count in counts.items()}
    profile.versions = {api: {1} for api in counts}
    if software:
        profile.software[software] = 1
    return profile


def _side(*profiles: Profile) -> ComparedSide:
    made = Profiles()
    made.clients = {profile.client_id: profile for profile in profiles}
    return ComparedSide(made)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("a", "a", True), ("worker-1", "worker-17", True), ("a", "b", False),
        ("c-0f8fad5b-d9cb-469f-a165-70867728950e", "c-7c9e6679-7425-40de-944b-e07fc1f90ae7", True),
    ],
)  # fmt: skip
def test_clients_are_matched_by_client_id(before: str, after: str, same: bool) -> None:
    other = _profile("other", "x 1"), _profile("other", "x 1")
    old, new = _profile(before, "java 1"), _profile(after, "go 1")
    pairs, gone, fresh = paired(_side(old, other[0]).profiles.clients, _side(new, other[1]).profiles.clients, False)
    assert ((old, new) in [(one, two) for one, two in pairs]) == same
    assert (len(gone), len(fresh)) == ((0, 0) if same else (1, 1))


def test_each_client_is_looked_at_once_for_each_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr("kwire.analyze.changes._shape", lambda name: looked.append(name) or name)  # type: ignore[func-returns-value]
    sides = [_side(*(_profile(f"{side}-{number}") for number in range(50))).profiles.clients for side in "ab"]
    pairs, gone, fresh = paired(sides[0], sides[1], False)
    assert (len(pairs), len(gone), len(fresh)) == (0, 50, 50)
    assert len(looked) <= 2 * (50 + 50)


def test_the_only_ones_of_a_library_are_the_same() -> None:
    found = changes(_side(_profile("a", "java 1", Fetch=100)), _side(_profile("b", "java 2", Fetch=100)))
    assert [(one.what, one.before, one.after) for one in found] == [("client library", "java 1", "java 2")]


@pytest.mark.parametrize(
    ("was", "became", "seconds", "changed"),
    [(100, 104, 10, False), (100, 140, 10, False), (100, 300, 10, True), (100, 300, 30, False), (1, 3, 10, False),
     (0, 50, 10, True), (50, 0, 10, True), (1000, 1400, 10, False), (1000, 1600, 10, True)],
)  # fmt: skip
def test_a_rate_changes_where_chance_does_not_explain_it(was: int, became: int, seconds: int, changed: bool) -> None:
    one, other = _profile("a", Heartbeat=was), _profile("a", seconds=seconds, Heartbeat=became)
    found = changes(_side(one), _side(other))
    assert [one.what for one in found if one.kind == "rate"] == (["Heartbeat requests"] if changed else [])


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [({"1": 10}, {"1": 900}, False), ({"1": 10}, {"2": 10}, True), ({"1": 10}, {"1": 9, "2": 1}, False),
     ({"1": 5, "2": 5}, {"1": 50, "2": 50}, False), ({"1": 10}, {"1": 1, "2": 9}, True)],
)  # fmt: skip
def test_a_setting_changes_with_most_of_its_values(
    before: dict[str, int], after: dict[str, int], changed: bool
) -> None:
    one, other = _profile("a"), _profile("a")
    one.settings["acks"], other.settings["acks"] = Counter(before), Counter(after)
    assert [found.what for found in changes(_side(one), _side(other))] == (["acks"] if changed else [])


def test_what_follows_from_a_setting_stands_beneath_it() -> None:
    one, other = _profile("a", Fetch=100, Metadata=5), _profile("a", Fetch=1000, Metadata=80)
    one.settings["fetch.max.wait.ms"], other.settings["fetch.max.wait.ms"] = Counter({"500": 9}), Counter({"50": 9})
    found = changes(_side(one), _side(other))
    assert [one.what for one in found] == ["Metadata requests", "fetch.max.wait.ms"]
    assert [one.what for one in found[1].brought] == ["Fetch requests"]


def test_the_largest_comes_first() -> None:
    one, other = _profile("a"), _profile("a")
    for name, was, became in (("small", "10", "12"), ("large", "10", "10000"), ("word", "x", "y")):
        one.settings[name], other.settings[name] = Counter({was: 9}), Counter({became: 9})
    assert [found.what for found in changes(_side(one), _side(other))] == ["large", "word", "small"]


def test_values_are_bounded() -> None:
    profile = _profile("a")
    for number in range(5000):
        profile.note("group.id", f"{number}" * 400)
    values = profile.settings["group.id"]
    assert len(values) <= 1001
    assert max(map(len, values)) <= 501
