"""The members of a consumer group, static ones also by instance id, and who holds which partition.

A partition has at most one holder; those that a member has yet to give up are still its own. Kafka keeps the same in
ConsumerGroup: members, staticMembers, currentPartitionEpoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kwire.coordinator.consumer.reconciliation import Hold, Partition
from kwire.coordinator.hashorder import java_hash

NOTHING: Final = Hold()
LEAVE_STATIC: Final = -2  # the member epoch of a static member that left and means to come back


class ClassicTerms(NamedTuple):
    """How a member of the classic protocol lives in a consumer group: what its JoinGroup said."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class ConsumerMember:
    """A member of a consumer group. regex: "" for none; rebalance_timeout_ms: -1 until it said one."""

    id: str
    instance: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicTerms | None = None
    """None for a member of the consumer protocol."""
    hold: Hold = NOTHING
    heard: int = 0
    """When its last accepted heartbeat came, ns."""
    fence_epoch: int | None = None
    """The epoch that its rebalance deadline runs for; None when none runs."""


class Members:
    """by_id: in the order of joining."""

    def __init__(self) -> None:
        self.by_id: dict[str, ConsumerMember] = {}
        self._statics: dict[str, str] = {}
        self._owners: dict[Partition, str] = {}
        self._slots = 2

    def static(self, instance: str | None) -> ConsumerMember | None:
        """The member with that instance id."""
        return None if instance is None else self.by_id.get(self._statics.get(instance, ""))

    def put(self, member: ConsumerMember) -> None:
        self.by_id[member.id] = member
        self._owners.update(dict.fromkeys((*member.hold.assigned, *member.hold.revoking), member.id))
        self.name(member, member.instance)

    def name(self, member: ConsumerMember, instance: str | None) -> None:
        """The member says its instance id."""
        if instance is not None:
            member.instance = instance
            self._statics[instance] = member.id

    def walked(self, joining: str | None) -> list[ConsumerMember]:
        """The members as Kafka's TimelineHashMap walks them (BaseHashTable: Fibonacci hashing, last come first in a
        slot), then the one that is just joining, if any, which is not in that map yet."""
        there, self._slots = walk_order([each for each in self.by_id if each != joining], self._slots)
        return [self.by_id[each] for each in (*there, *([] if joining is None else [joining]))]

    def preferred_assignor(self, asking: ConsumerMember | None) -> str | None:
        """The assignor with most votes. asking: whose heartbeat it is; its vote is counted anew after the others, which
        decides between equals (ConsumerGroup.computePreferredServerAssignor)."""
        votes = Counter(
            each.assignor for each in self.by_id.values() if each.assignor is not None and each is not asking
        )
        ordered = sorted(votes, key=_fibonacci)
        if asking is not None and asking.assignor is not None:
            if asking.assignor not in votes:
                ordered.insert(0, asking.assignor)  # HashMap.compute puts a new key at the head of its bucket
            votes[asking.assignor] += 1
        return max(ordered, key=votes.__getitem__, default=None)

    def take_out(self, member: ConsumerMember) -> None:
        del self.by_id[member.id]
        self._free(member, (*member.hold.assigned, *member.hold.revoking))
        if member.instance is not None and self._statics.get(member.instance) == member.id:
            del self._statics[member.instance]

    def hold(self, member: ConsumerMember, hold: Hold) -> set[Partition]:
        """Gives a member its next hold; the partitions that nobody holds now."""
        before, member.hold = member.hold, hold
        had, has = before.assigned.keys() | before.revoking.keys(), hold.assigned.keys() | hold.revoking.keys()
        self._free(member, had - has)
        self._owners.update(dict.fromkeys(has - had, member.id))
        return had - has

    def is_free(self, partition: Partition, member: ConsumerMember, era: tuple[int, int]) -> bool:
        """Whether the member may be given the partition. From 4.2 on also one that it was about to give up."""
        owner = self._owners.get(partition)
        return owner is None or (owner == member.id and era >= (4, 2))

    def _free(self, member: ConsumerMember, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if self._owners.get(partition) == member.id:
                del self._owners[partition]


def walk_order(ids: Collection[str], slots: int = 2) -> tuple[list[str], int]:
    """Ids in the order in which a TimelineHashMap that got them in this order is walked; and its slots, which never get
    fewer."""
    while (len(ids) + 1) * 0.75 > slots:
        slots *= 2
    shift = 65 - slots.bit_length()
    order = [*ids]
    order.reverse()  # the last one comes first in its slot
    order.sort(key=lambda each: _fibonacci(each) >> shift)
    return order, slots


def _fibonacci(text: str) -> int:
    spread = java_hash(text)
    plain = spread ^ (spread >> 16)
    signed = plain - (plain >> 31 << 32)
    return signed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
