"""The server-side assignors: what Kafka 4.3.1's own classes gave for the same groups, and what must hold of any."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.coordinator.assignors import Assignment, SubscribedMember, assign, java_order

RECORDED = Path(__file__).parents[2] / "fixtures" / "consumer-groups" / "assignors.jsonl.gz"
A, B, C = (UUID(int=number) for number in (1, 2, 3))


def kafka_uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def assignment(recorded: dict[str, list[int]]) -> Assignment:
    return {kafka_uuid(topic): frozenset(partitions) for topic, partitions in recorded.items()}


def recorded_cases() -> list[dict[str, Any]]:
    with gzip.open(RECORDED, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_every_recorded_group_is_assigned_as_kafka_does() -> None:
    cases = recorded_cases()
    for case in cases:
        counts = dict(case["topics"])
        first = case["members"][0][2]  # in the order of that member's set
        order = [*first, *(topic for topic in counts if topic not in first)]
        members = [
            SubscribedMember(name, instance, frozenset(map(kafka_uuid, topics)), assignment(had))
            for name, instance, topics, had in case["members"]
        ]
        got = assign(case["assignor"], members, {kafka_uuid(topic): counts[topic] for topic in order})
        assert got == {member: assignment(target) for member, target in case["target"].items()}
    assert len(cases) == 300


def subscriber(name: str, topics: set[UUID], instance: str | None = None, **had: set[int]) -> SubscribedMember:
    held = {{"a": A, "b": B, "c": C}[topic]: frozenset(partitions) for topic, partitions in had.items()}
    return SubscribedMember(name, instance, frozenset(topics), held)


@pytest.mark.parametrize(
    ("members", "counts", "target"),
    [
        ([], {A: 3}, {}),
        ([subscriber("m", set())], {}, {"m": {}}),
        ([subscriber("m2", {A}), subscriber("m1", {A})], {A: 3}, {"m1": {A: {0, 1}}, "m2": {A: {2}}}),
        (
            [subscriber("m1", {A, B}), subscriber("m2", {A, B})],
            {A: 3, B: 3},
            {"m1": {A: {0, 1}, B: {0, 1}}, "m2": {A: {2}, B: {2}}},
        ),
        ([subscriber("m1", {A}), subscriber("m2", {A}, "i")], {A: 1}, {"m1": {}, "m2": {A: {0}}}),
        ([subscriber("m1", {A}), subscriber("m2", {A, B})], {A: 2, B: 1}, {"m1": {A: {0}}, "m2": {A: {1}, B: {0}}}),
        ([subscriber("m1", {A}, a={0, 1, 2}), subscriber("m0", {A})], {A: 3}, {"m0": {A: {0, 1}}, "m1": {A: {2}}}),
    ],
)
def test_range_gives_runs_by_name_static_members_first(
    members: list[SubscribedMember], counts: dict[UUID, int], target: dict[str, Assignment]
) -> None:
    assert assign("range", members, counts) == target


def test_uniform_keeps_what_it_can_and_the_extra_one_with_who_had_it() -> None:
    members = [subscriber("m1", {A}, a={0}), subscriber("m2", {A}, a={1, 2})]
    assert assign("uniform", members, {A: 3}) == {"m1": {A: {0}}, "m2": {A: {1, 2}}}


def test_uniform_before_4_gave_the_extra_one_to_the_first() -> None:
    members = [subscriber("m1", {A}, a={0}), subscriber("m2", {A}, a={1, 2})]
    first, second = (member.id for member in java_order(members, lambda member: int(member.id == "m2")))
    got = assign("uniform", members, {A: 3}, (3, 9))
    assert (len(got[first][A]), len(got[second][A])) == (2, 1)


def test_an_unknown_assignor_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        assign("sticky", [], {})


groups = st.lists(st.sets(st.sampled_from([A, B, C])), min_size=1, max_size=8)
counts_of_topics = st.fixed_dictionaries({topic: st.integers(1, 9) for topic in (A, B, C)})


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["uniform", "range"]), groups, counts_of_topics)
def test_every_partition_asked_for_goes_to_one_member_that_asks(
    name: str, topics: list[set[UUID]], counts: dict[UUID, int]
) -> None:
    members = [subscriber(f"m{place}", asked) for place, asked in enumerate(topics)]
    targets = assign(name, members, counts)
    given = sorted((topic, each) for target in targets.values() for topic, held in target.items() for each in held)
    asked = set().union(*topics)
    assert given == sorted((topic, each) for topic in asked for each in range(counts[topic]))
    assert all(targets[member.id].keys() <= member.topics for member in members)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), counts_of_topics)
def test_uniform_is_even_and_moves_no_more_than_it_must(before: int, after: int, counts: dict[UUID, int]) -> None:
    asked = set(counts)
    old = assign("uniform", [subscriber(f"m{place}", asked) for place in range(before)], counts)
    members = [
        SubscribedMember(f"m{place}", None, frozenset(asked), old.get(f"m{place}", {})) for place in range(after)
    ]
    new = assign("uniform", members, counts)
    sizes = [sum(map(len, target.values())) for target in new.values()]
    assert max(sizes) - min(sizes) <= 1
    moved = sum(
        len(old[name].get(topic, frozenset()) - new[name].get(topic, frozenset()))
        for name in old
        if name in new
        for topic in asked
    )
    quota, odd = divmod(sum(counts.values()), after)
    had = sorted((sum(map(len, target.values())) for name, target in old.items() if name in new), reverse=True)
    assert moved == sum(max(0, held - quota - (place < odd)) for place, held in enumerate(had))
