"""What groups have committed, and what producers in open transactions will commit for them.

Offsets of open transactions wait beside the committed ones until their producer's transaction ends, as in Kafka's
OffsetMetadataManager.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

Place = tuple[str, int]  # topic name, partition


class CommittedOffset(NamedTuple):
    """An offset. time: when it was committed, ns; member: by whom, "" for no member; topic_id: zero if it was committed
    by the topic's name."""

    offset: int
    leader_epoch: int
    metadata: str
    time: int
    member: str
    topic_id: UUID


@dataclass(slots=True)
class Offsets:
    """By group. pending: those of open transactions, by group and producer id."""

    committed: dict[str, dict[Place, CommittedOffset]] = field(default_factory=dict)
    pending: dict[str, dict[int, dict[Place, CommittedOffset]]] = field(default_factory=dict)

    def holds(self, group: str) -> bool:
        """Whether the group has offsets, committed or pending."""
        return bool(self.committed.get(group) or self.pending.get(group))

    def forget(self, group: str) -> None:
        """Drops all offsets of the group."""
        self.committed.pop(group, None)
        self.pending.pop(group, None)

    def is_pending(self, group: str, place: Place) -> bool:
        """Whether an open transaction has an offset for the partition."""
        return any(place in places for places in self.pending.get(group, {}).values())

    def end_transaction(self, producer: int, commit: bool) -> None:
        """The producer's transaction committed or aborted."""
        for group in [each for each, open_ in self.pending.items() if producer in open_]:
            places = self.pending[group].pop(producer)
            if not self.pending[group]:
                del self.pending[group]
            if commit:
                kept = self.committed.setdefault(group, {})
                kept |= {
                    place: each for place, each in places.items() if place not in kept or each.time >= kept[place].time
                }
