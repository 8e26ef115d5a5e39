"""The assignor of share groups: every partition to somebody, every member the same number of them, and those that it
has as far as that goes. With more members than partitions, several members share one.

Rules: SimpleAssignor with SimpleHomogeneousAssignmentBuilder, where all members ask for the same topics, and
SimpleHeterogeneousAssignmentBuilder, which goes topic by topic. What they take away, and who gets what is left, follows
from the order of Java's hash maps; so that order is kept here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Generic, TypeVar
from uuid import UUID

from kwire.coordinator.assignors import Assignment, SubscribedMember, java_order, uuid_hash
from kwire.coordinator.hashorder import java_hash, table_order

T = TypeVar("T")


def assign_simple(
    members: Sequence[SubscribedMember], assignable: Mapping[UUID, Iterable[int]], same_topics: bool
) -> dict[str, Assignment]:
    """The target of every member. assignable: the partitions that may be given away, by topic, of the topics that are
    asked for; same_topics: whether all members ask for the same ones."""
    ordered = java_order(members, lambda member: java_hash(member.id))
    if not ordered:
        return {}
    had = [{topic: set(found) for topic, found in member.had.items()} for member in ordered]
    if same_topics:
        topics = ordered[0].topics
        if not topics:
            return {member.id: {} for member in ordered}
        pairs = [(topic, partition) for topic in topics for partition in sorted(assignable.get(topic, ()))]
        old = [[(topic, p) for topic, found in held.items() if topic in topics for p in sorted(found)] for held in had]
        takers = list(range(len(ordered)))
        shares = _Sharing(takers, pairs, old, _pair_hash).shares()
        return {member.id: _by_topic(shares[at]) for at, member in enumerate(ordered)}
    for topic in java_order({t: None for member in ordered for t in member.topics}, uuid_hash):
        takers = [at for at, member in enumerate(ordered) if topic in member.topics]
        held_now = [sorted(held.get(topic, ())) for held in had]
        shared = _Sharing(takers, sorted(assignable.get(topic, ())), held_now, _number_hash).shares()
        for held, share in zip(had, shared, strict=True):
            held[topic] = set(share)
    return {member.id: _frozen(had[at]) for at, member in enumerate(ordered)}


def _frozen(held: Mapping[UUID, set[int]]) -> Assignment:
    return {topic: frozenset(partitions) for topic, partitions in held.items() if partitions}


def _by_topic(share: Iterable[tuple[UUID, int]]) -> Assignment:
    topics: dict[UUID, set[int]] = {}
    for topic, partition in share:
        topics.setdefault(topic, set()).add(partition)
    return _frozen(topics)


def _number_hash(number: int) -> int:
    return number ^ (number >> 16)


def _pair_hash(pair: tuple[UUID, int]) -> int:
    """org.apache.kafka.server.common.TopicIdPartition.hashCode, spread."""
    mixed = (pair[0].int >> 64) ^ (pair[0].int & 0xFFFFFFFFFFFFFFFF)
    value = (31 * (((mixed >> 32) ^ mixed) & 0xFFFFFFFF) + pair[1]) & 0xFFFFFFFF
    return value ^ (value >> 16)


class _Sharing(Generic[T]):
    """Partitions (or pairs of topic and partition) among members, who are numbers. takers: those that ask for them;
    old: what each member had."""

    def __init__(
        self, takers: Sequence[int], wanted: Sequence[T], old: Sequence[Iterable[T]], spread: Callable[[T], int]
    ) -> None:
        self.wanted, self.spread, self.takers = wanted, spread, takers
        self.sharers = -(-len(takers) // len(wanted)) if wanted else 0  # members to each partition
        share = self.sharers * len(wanted) / len(takers)
        self.quota = dict.fromkeys(range(len(old)), 0)
        for place, taker in enumerate(takers):
            self.quota[taker] = ceil(share * (place + 1)) - ceil(share * place)
        self.of_member: list[dict[T, None]] = [dict.fromkeys(held) for held in old]
        self.of_partition: dict[T, dict[int, None]] = {}
        for member, held in enumerate(old):
            for each in held:
                self.of_partition.setdefault(each, {})[member] = None

    def shares(self) -> list[list[T]]:
        """What each member gets."""
        self._trim_members()
        self._trim_partitions()
        for each in self.wanted:
            self.of_partition.setdefault(each, {})
        self._hand_out()
        return [list(held) for held in self.of_member]

    def _take(self, member: int, each: T) -> None:
        del self.of_member[member][each]
        del self.of_partition[each][member]

    def _trim_members(self) -> None:
        for member, held in enumerate(self.of_member):
            for each in table_order(held, self.spread)[: max(len(held) - self.quota[member], 0)]:
                self._take(member, each)

    def _trim_partitions(self) -> None:
        for each, members in self.of_partition.items():
            for member in table_order(members, _number_hash)[: max(len(members) - self.sharers, 0)]:
                self._take(member, each)

    def _hand_out(self) -> None:
        unfilled = [member for member in sorted(self.takers) if len(self.of_member[member]) < self.quota[member]]
        turn, gave = 0, False
        for each in table_order(self.of_partition, self.spread, len(self.wanted)):
            members = self.of_partition[each]
            while unfilled and len(members) < self.sharers:
                if turn >= len(unfilled):
                    if not gave:
                        break
                    turn, gave = 0, False
                member = unfilled[turn]
                turn += 1
                if member in members:
                    continue
                members[member] = None
                self.of_member[member][each] = None
                gave = True
                if len(self.of_member[member]) >= self.quota[member]:
                    turn -= 1
                    del unfilled[turn]
            if not unfilled:
                break
