"""The simple assignor: everybody the same number, every partition to somebody, as little moved as possible."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.coordinator.assignors import SubscribedMember
from kwire.coordinator.share.assignor import assign_simple

T, U = UUID(int=7), UUID(int=8)
ids = st.lists(st.text("abcxyz", min_size=1, max_size=4), min_size=1, max_size=9, unique=True)


def members(names: list[str], had: dict[str, dict[UUID, frozenset[int]]], topics: set[UUID]) -> list[SubscribedMember]:
    return [SubscribedMember(name, None, frozenset(topics), had.get(name, {})) for name in names]


@settings(deadline=None)
@given(before=ids, after=ids, partitions=st.integers(0, 12))
def test_shares_are_even_whoever_came_before(before: list[str], after: list[str], partitions: int) -> None:
    ready = {T: set(range(partitions)), U: set(range(partitions // 2))}
    total = partitions + partitions // 2
    had = assign_simple(members(before, {}, {T, U}), ready, True)
    target = assign_simple(members(after, had, {T, U}), ready, True)
    counts = [sum(map(len, target[name].values())) for name in after]
    given_out = {(topic, index) for share in target.values() for topic, found in share.items() for index in found}
    assert len(given_out) == total
    assert max(counts) - min(counts) <= 1 or total == 0
    assert sum(counts) == (total * -(-len(after) // total) if total else 0)


@settings(deadline=None)
@given(names=ids, partitions=st.integers(1, 6))
def test_nothing_moves_when_nothing_has_changed(names: list[str], partitions: int) -> None:
    ready = {T: set(range(partitions))}
    first = assign_simple(members(names, {}, {T}), ready, True)
    assert assign_simple(members(names, first, {T}), ready, True) == first


def test_members_of_mixed_wishes_get_what_they_ask_for() -> None:
    asking = [SubscribedMember("a", None, frozenset({T}), {}), SubscribedMember("b", None, frozenset({T, U}), {})]
    target = assign_simple(asking, {T: {0, 1}, U: {0, 1, 2}}, False)
    assert target["b"][U] == {0, 1, 2}
    assert target["a"].keys() == {T}
    assert target["a"][T] | target["b"][T] == {0, 1}


def test_nobody_and_nothing() -> None:
    assert assign_simple([], {}, True) == {}
    assert assign_simple(members(["a"], {}, set()), {}, True) == {"a": {}}
    assert assign_simple(members(["a"], {}, {T}), {}, True) == {"a": {}}
