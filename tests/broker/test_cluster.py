"""Topics, leaders and coordinators: who is where, and what may not be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kwire.broker.cluster import Cluster, Topic
from kwire.broker.context import BrokerLimits, BrokerSettings
from kwire.broker.refused import Refused
from kwire.schema import codes


def cluster(nodes: int = 3, **limits: Any) -> Cluster:
    return Cluster(BrokerSettings(nodes=nodes).all_setups, BrokerLimits(**limits))


def test_leaders_are_spread_over_the_nodes() -> None:
    topic = cluster().create("t", 6, 2)
    leaders = [partition.leader for partition in topic.partitions]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    assert all(partition.replicas[0] == partition.leader for partition in topic.partitions)
    assert all(len(set(partition.replicas)) == 2 for partition in topic.partitions)


@pytest.mark.parametrize(
    ("name", "count", "how", "code"),
    [
        ("", 1, {}, codes.INVALID_TOPIC_EXCEPTION),
        ("..", 1, {}, codes.INVALID_TOPIC_EXCEPTION),
        ("a/b", 1, {}, codes.INVALID_TOPIC_EXCEPTION),
        ("a\x1b[31m", 1, {}, codes.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, 1, {}, codes.INVALID_TOPIC_EXCEPTION),
        ("there", 1, {}, codes.TOPIC_ALREADY_EXISTS),
        ("t", 0, {}, codes.INVALID_PARTITIONS),
        ("t", 1, {"replication": 4}, codes.INVALID_REPLICATION_FACTOR),
        ("t", 1, {"replication": 0}, codes.INVALID_REPLICATION_FACTOR),
        ("t", 1, {"assignments": [[1, 1]]}, codes.INVALID_REPLICA_ASSIGNMENT),
        ("t", 1, {"assignments": [[9]]}, codes.INVALID_REPLICA_ASSIGNMENT),
        ("t", 1, {"assignments": [[]]}, codes.INVALID_REPLICA_ASSIGNMENT),
        ("t", 100, {}, codes.POLICY_VIOLATION),
        ("t", 2**31 - 1, {}, codes.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_a_topic(name: str, count: int, how: dict[str, Any], code: int) -> None:
    made = cluster(partitions=50)
    made.create("there", 1)
    with pytest.raises(Refused) as refused:
        made.create(name, count, **how)
    assert refused.value.code == code
    assert list(made.topics) == ["there"]


def test_there_are_only_so_many_topics() -> None:
    made = cluster(topics=1)
    made.create("one", 1)
    with pytest.raises(Refused, match="this broker holds at most 1 topics"):
        made.create("two", 1)
    made.delete(made.topics["one"])
    assert made.create("two", 1).name == "two"


def test_a_topic_grows_and_keeps_what_it_has() -> None:
    made = cluster()
    topic = made.create("t", 1, 2)
    first = topic.partitions[0]
    made.grow("t", 3)
    assert (topic.partitions[0], [p.index for p in topic.partitions]) == (first, [0, 1, 2])
    assert [len(partition.replicas) for partition in topic.partitions] == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("none", 2, (), codes.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, (), codes.INVALID_PARTITIONS),
        ("t", 3, ([1],), codes.INVALID_REPLICA_ASSIGNMENT),
        ("t", 2, ([7],), codes.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_cannot_be(name: str, count: int, assignments: tuple[list[int], ...], code: int) -> None:
    made = cluster()
    made.create("t", 1)
    with pytest.raises(Refused) as refused:
        made.grow(name, count, assignments)
    assert refused.value.code == code


def test_only_the_leader_has_the_partition() -> None:
    made = cluster()
    topic = made.create("t", 1)
    leader = topic.partitions[0].leader
    assert made.partition(topic, 0, leader, 0) is topic.partitions[0]
    for index, node, epoch, code in (
        (0, leader % 3 + 1, -1, codes.NOT_LEADER_OR_FOLLOWER),
        (1, leader, -1, codes.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, leader, -1, codes.UNKNOWN_TOPIC_OR_PARTITION),
        (0, leader, 5, codes.UNKNOWN_LEADER_EPOCH),
    ):
        with pytest.raises(Refused) as refused:
            made.partition(topic, index, node, epoch)
        assert refused.value.code == code


def test_a_leader_that_moves_begins_an_epoch() -> None:
    made = cluster()
    topic = made.create("t", 1)
    partition = topic.partitions[0]
    before = partition.leader
    made.move_leader(partition)
    assert (partition.leader != before, partition.epoch, partition.leader in partition.replicas) == (True, 1, True)
    with pytest.raises(Refused) as refused:
        made.partition(topic, 0, partition.leader, 0)
    assert refused.value.code == codes.FENCED_LEADER_EPOCH


def test_coordinators_are_spread_and_move_together() -> None:
    made = cluster()
    before = {group: made.coordinator(group) for group in map(str, range(50))}
    assert set(before.values()) == {1, 2, 3}
    made.moved += 1
    assert {group: made.coordinator(group) for group in before} == {g: node % 3 + 1 for g, node in before.items()}


def test_changes_are_told() -> None:
    made, told = cluster(), []
    made.changed.append(lambda: told.append(sorted(made.group_topics())))
    made.create("a", 1)
    made.create("b", 1, dry=True)
    made.grow("a", 2)
    made.delete(made.topics["a"])
    assert told == [["a"], ["a"], []]


def test_a_new_topic_is_made_without_a_look_at_all_others(socketless: Any) -> None:
    """A request may make tens of thousands."""
    looks = []

    class Walked(dict[UUID, Topic]):
        def __iter__(self) -> Iterator[UUID]:
            looks.append(1)
            return super().__iter__()

        def keys(self) -> Any:
            looks.append(1)
            return super().keys()

    socketless.state.cluster.by_id = Walked(socketless.state.cluster.by_id)
    for number in range(3):
        socketless.state.cluster.create(f"t{number}", 1)
    assert not looks
