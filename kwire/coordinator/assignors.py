"""The server-side assignors of consumer groups (KIP-848): who shall have which partitions.

`range` gives each topic's partitions in runs to the members in the order of their names, static ones first. `uniform`
keeps what it can and evens out the rest; it has one way for groups whose members all ask for the same topics and
another for mixed ones. The rules are Kafka's RangeAssignor, UniformHomogeneousAssignmentBuilder and
UniformHeterogeneousAssignmentBuilder. Where Kafka walks a java.util.HashMap the outcome depends on that map's order,
so java_order walks in the same one, and what meets in a bucket there stays in the order that it is given in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from kwire.coordinator.hashorder import java_hash

T = TypeVar("T")
Assignment = dict[UUID, frozenset[int]]  # topic → partitions

_ROUNDS = 16  # MAX_ITERATION_COUNT: how often all topics are gone over to even out a mixed group


class SubscribedMember(NamedTuple):
    """A member as an assignor sees it. topics: those that exist."""

    id: str
    instance: str | None
    topics: frozenset[UUID]
    had: Assignment


def assign(
    name: str, members: Sequence[SubscribedMember], partitions: Mapping[UUID, int], era: tuple[int, int] = (4, 3)
) -> dict[str, Assignment]:
    """The target of every member by the assignor of that name. partitions: topic → their count, in the order in which
    the first member's set of names is walked. Raises KeyError."""
    assignor = ASSIGNORS[name]
    return assignor(members, partitions, era) if members else {}


def _same_topics(members: Sequence[SubscribedMember]) -> bool:
    return all(member.topics == members[0].topics for member in members)


def java_order(items: Iterable[T], spread: Callable[[T], int], sized: bool = False) -> list[T]:
    """The items in the order in which a java.util.HashMap holding them is walked: by bucket of a table that grows with
    its entries. spread: an item's hash as HashMap spreads it. sized: a HashSet made as a copy of them, whose table is
    allotted at once."""
    listed = list(items)
    table = 16
    while (int(len(listed) / 0.75) + 1 > table) if sized else (len(listed) > table * 3 // 4):
        table *= 2
    return sorted(listed, key=lambda item: spread(item) & (table - 1))


def uuid_hash(topic: UUID) -> int:
    """org.apache.kafka.common.Uuid.hashCode, spread."""
    mixed = (topic.int >> 64) ^ (topic.int & 0xFFFFFFFFFFFFFFFF)
    value = ((mixed >> 32) ^ mixed) & 0xFFFFFFFF
    return value ^ (value >> 16)


def _number_hash(number: int) -> int:
    return number ^ (number >> 16)


def _uuid_order(topic: UUID) -> tuple[int, int]:
    """Uuid.compareTo: the two halves as signed numbers."""
    half = 1 << 63
    return ((topic.int >> 64) ^ half, (topic.int & 0xFFFFFFFFFFFFFFFF) ^ half)


def assign_range(
    members: Sequence[SubscribedMember], partitions: Mapping[UUID, int], era: tuple[int, int] = (4, 3)
) -> dict[str, Assignment]:
    """Runs of partitions, topic by topic; the first members get the odd ones. The same in every era."""
    del era
    ordered = sorted(members, key=lambda member: (member.instance is None, member.instance or member.id))
    takers: dict[UUID, int] = {}
    for member in ordered:
        for topic in member.topics:
            takers[topic] = takers.get(topic, 0) + 1
    turn = dict.fromkeys(takers, 0)
    targets: dict[str, Assignment] = {}
    for member in ordered:
        target: Assignment = {}
        for topic in member.topics:
            place, (quota, odd) = turn[topic], divmod(partitions[topic], takers[topic])
            start = place * quota + min(place, odd)
            end = start + quota + (place < odd)
            turn[topic] = place + 1
            if start < end:
                target[topic] = frozenset(range(start, end))
        targets[member.id] = target
    return targets


def assign_uniform(
    members: Sequence[SubscribedMember], partitions: Mapping[UUID, int], era: tuple[int, int] = (4, 3)
) -> dict[str, Assignment]:
    """Even shares that keep what members had as far as they can."""
    ordered = java_order(members, lambda member: java_hash(member.id))
    if _same_topics(ordered):
        return _even_shares(ordered, partitions, era)
    return _Mixed(ordered, partitions).targets()


def _even_shares(
    members: Sequence[SubscribedMember], partitions: Mapping[UUID, int], era: tuple[int, int]
) -> dict[str, Assignment]:
    """Members get total / members partitions, and total % members of them one more: before 4.0 the first ones."""
    topics = java_order([topic for topic in partitions if topic in members[0].topics], uuid_hash, sized=True)
    if not topics:
        return {member.id: {} for member in members}
    taken = {(topic, partition) for member in members for topic, had in member.had.items() for partition in had}
    everything = [(topic, partition) for topic in topics for partition in range(partitions[topic])]
    free = [each for each in everything if each not in taken]
    quota, odd = divmod(len(everything), len(members))
    shares: list[dict[UUID, set[int]]] = []
    room: list[int] = []
    for place, member in enumerate(members):
        extra = odd > 0
        share, left = _kept(member, members[0].topics, quota + extra, free)
        if left and extra and len(members) - place > odd and era >= (4, 0):
            left, extra = left - 1, False  # another may have held one more all along
        odd -= extra
        shares.append(share)
        room.append(left)
    rest = iter(free)
    for share, left in zip(shares, room, strict=True):
        for _, (topic, partition) in zip(range(left), rest, strict=False):
            share.setdefault(topic, set()).add(partition)
    return {member.id: _frozen(share) for member, share in zip(members, shares, strict=True)}


def _kept(
    member: SubscribedMember, topics: frozenset[UUID], quota: int, free: list[tuple[UUID, int]]
) -> tuple[dict[UUID, set[int]], int]:
    """What a member keeps of what it had, and how many partitions it may still get; what it loses goes to free."""
    share: dict[UUID, set[int]] = {}
    for topic in java_order(member.had, uuid_hash):
        if topic not in topics:
            continue
        ordered = java_order(member.had[topic], _number_hash, sized=True)
        share[topic] = set(ordered[:quota])
        free.extend((topic, partition) for partition in ordered[quota:])
        quota -= len(share[topic])
    return {topic: kept for topic, kept in share.items() if kept}, quota


def _frozen(share: Mapping[UUID, set[int]]) -> Assignment:
    return {topic: frozenset(held) for topic, held in share.items() if held}


class _Mixed:
    """Shares for members that ask for different topics. Members are known by their place in `members`."""

    def __init__(self, members: Sequence[SubscribedMember], partitions: Mapping[UUID, int]) -> None:
        self._members = members
        self._loads = [0] * len(members)
        self._askers: dict[UUID, list[int]] = {}
        for place, member in enumerate(members):
            for topic in member.topics:
                self._askers.setdefault(topic, []).append(place)
        self._owners: dict[UUID, list[int]] = {topic: [-1] * partitions[topic] for topic in self._askers}

    def targets(self) -> dict[str, Assignment]:
        """What was, less what is not asked for, then what is free to those who have least, then moves that even out."""
        for place, member in enumerate(self._members):
            for topic, had in member.had.items():
                if topic in member.topics:
                    for partition in had:
                        self._give(topic, partition, place)
        for topic in sorted(self._askers, key=self._rank):
            loads = _Loads(self._askers[topic], self._loads)
            for partition, owner in enumerate(self._owners[topic]):
                if owner == -1:
                    self._give(topic, partition, loads.next_least())
        self._even_out(sorted((topic for topic, askers in self._askers.items() if len(askers) > 1), key=self._rank))
        return self._shares()

    def _shares(self) -> dict[str, Assignment]:
        shares: list[dict[UUID, set[int]]] = [{} for _ in self._members]
        for topic, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                shares[owner].setdefault(topic, set()).add(partition)
        return {member.id: _frozen(share) for member, share in zip(self._members, shares, strict=True)}

    def _rank(self, topic: UUID) -> tuple[float, int, tuple[int, int]]:
        """Topics with most partitions for each member that asks come first."""
        askers = len(self._askers[topic])
        return (-len(self._owners[topic]) / askers, askers, _uuid_order(topic))

    def _give(self, topic: UUID, partition: int, place: int) -> None:
        old = self._owners[topic][partition]
        if old != -1:
            self._loads[old] -= 1
        self._owners[topic][partition] = place
        self._loads[place] += 1

    def _even_out(self, topics: Sequence[UUID]) -> None:
        """Goes over the topics until a whole round changed nothing."""
        last = -1
        for _ in range(_ROUNDS):
            for place, topic in enumerate(topics):
                if place == last:
                    return
                if self._even_out_topic(topic) or last == -1:
                    last = place

    def _even_out_topic(self, topic: UUID) -> int:
        """Moves partitions of a topic from those who have most to those who have least; how many moved."""
        loads = _Loads(self._askers[topic], self._loads)
        if loads.spread <= 1:
            return 0
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            held.setdefault(owner, []).append(partition)
        moved = 0
        while not loads.even:
            most = loads.next_most(held)
            if most is None:
                break
            partition = held[most].pop()
            least = loads.next_least()
            if loads.even:
                break
            self._give(topic, partition, least)
            moved += 1
        return moved


class _Loads:
    """The members that ask for a topic, by how much they had when its turn came: hands out the least loaded one after
    the other, level by level upwards, and the most loaded downwards, as if each had been given or robbed of one."""

    def __init__(self, askers: Sequence[int], loads: Sequence[int]) -> None:
        self._order = sorted(askers, key=lambda place: (loads[place], place))
        self._loads = list(map(loads.__getitem__, self._order))
        self._at = dict(zip(self._order, self._loads, strict=True))
        self.spread = self._loads[-1] - self._loads[0]
        self._low, self._low_end, self._low_next = self._loads[0] - 1, 0, 0
        self._high = self._loads[-1] + 1
        self._high_start = self._high_end = len(self._order)
        self._high_next = len(self._order) - 1

    @property
    def even(self) -> bool:
        return self._high - self._low <= 1

    def next_least(self) -> int:
        if self._low_next >= self._low_end:
            self._low += 1
            while self._low_end < len(self._order) and self._at[self._order[self._low_end]] == self._low:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._order[self._low_next - 1]

    def next_most(self, held: Mapping[int, Sequence[int]]) -> int | None:
        """The next of the most loaded that holds partitions; those that hold none are left out from here on."""
        while True:
            if self._high_next < self._high_start:
                self._lower()
            if self._high_next < 0:
                return None
            most = self._order[self._high_next]
            if held.get(most):
                self._high_next -= 1
                return most
            self._high_end -= 1
            self._order[self._high_next], self._order[self._high_end] = self._order[self._high_end], most
            self._high_next -= 1

    def _lower(self) -> None:
        """The next level downwards, and all members that are on it now."""
        if self._high_end <= self._high_start and self._high_start > 0:
            self._high = self._at[self._order[self._high_start - 1]]
        else:
            self._high -= 1
        while self._high_start > 0 and self._at[self._order[self._high_start - 1]] == self._high:
            self._high_start -= 1
        self._high_next = self._high_end - 1


Assignor = Callable[[Sequence[SubscribedMember], Mapping[UUID, int], tuple[int, int]], dict[str, Assignment]]
ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
