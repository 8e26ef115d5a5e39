"""What is stored of share partitions: where each begins, and which records behind that are decided or were delivered.

Kafka keeps this in __share_group_state; the leader of a partition reads it when it begins to serve a share group and
writes every change. Rules: ShareCoordinatorShard and PersisterStateBatchCombiner of the share coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from kwire.coordinator.share.inflight import RecordState
from kwire.coordinator.types import Check
from kwire.schema.codes import NOT_LEADER_OR_FOLLOWER, UNKNOWN_SERVER_ERROR

UNINITIALISED: Final = -1  # the start offset of a partition that nobody has read yet


class SharePartitionKey(NamedTuple):
    """A share partition."""

    group: str
    topic: UUID
    partition: int


class StateBatch(NamedTuple):
    """Offsets first to last in one state."""

    first: int
    last: int
    state: RecordState
    deliveries: int


@dataclass(slots=True)
class Stored:
    """start: the first offset that is not decided, -1 when the group's reset policy shall say. complete: how many
    records behind start are decided, -1 when nobody has counted. batches: by offset."""

    epoch: int
    start: int = UNINITIALISED
    leader_epoch: int = 0
    complete: int = -1
    batches: list[StateBatch] = field(default_factory=list)


class ShareStates:
    """By share partition."""

    def __init__(self) -> None:
        self.known: dict[SharePartitionKey, Stored] = {}

    def initialise(self, place: SharePartitionKey, epoch: int, start: int) -> None:
        """A partition comes to a group; epoch: the group's. What was known of it is gone."""
        self.known[place] = Stored(epoch, start, complete=-1 if start < 0 else 0)

    def read(self, place: SharePartitionKey, leader_epoch: int) -> Stored | None:
        """For the partition's leader; None when the partition was never initialised."""
        stored = self.known.get(place)
        if stored is not None:
            stored.leader_epoch = leader_epoch
        return stored

    def write(
        self, place: SharePartitionKey, epoch: int, start: int, complete: int, batches: Iterable[StateBatch]
    ) -> Check | None:
        """The leader's changes; epoch: that of the state which it has read. Gives why they are refused."""
        stored = self.known.get(place)
        if stored is None:
            why = "the share partition was not initialised for the group, or was deleted"
            return Check(5, "initialised", UNKNOWN_SERVER_ERROR, why)
        if stored.epoch > epoch:
            why = f"state epoch {epoch}, offsets were altered since: it is {stored.epoch}"
            return Check(5, "state epoch", NOT_LEADER_OR_FOLLOWER, why)
        stored.start, stored.complete = start, complete
        stored.batches = combined(stored.batches, batches, start)
        return None

    def forget(self, group: str, topic: UUID | None = None) -> list[SharePartitionKey]:
        """Drops what is known of a group, or of one topic in it; the places."""
        gone = [place for place in self.known if place.group == group and topic in (None, place.topic)]
        for place in gone:
            del self.known[place]
        return gone

    def forget_topic(self, topic: UUID) -> None:
        """The topic was deleted."""
        self.known = {place: stored for place, stored in self.known.items() if place.topic != topic}


def combined(old: Iterable[StateBatch], new: Iterable[StateBatch], start: int) -> list[StateBatch]:
    """Old batches with new ones over them; neighbours alike are joined, and what lies before start is left out."""
    pieces = list(old)
    for batch in new:
        pieces = [rest for piece in pieces for rest in _without(piece, batch)]
        pieces.append(batch)
    out: list[StateBatch] = []
    for piece in sorted(pieces):
        if piece.last < start:
            continue
        piece = piece._replace(first=max(piece.first, start))
        before = out[-1] if out else None
        if before is not None and before.last + 1 == piece.first and before[2:] == piece[2:]:
            out[-1] = before._replace(last=piece.last)
        else:
            out.append(piece)
    return out


def _without(piece: StateBatch, taken: StateBatch) -> list[StateBatch]:
    """What is left of a piece beside the offsets of another."""
    if piece.last < taken.first or piece.first > taken.last:
        return [piece]
    left = [piece._replace(last=taken.first - 1)] if piece.first < taken.first else []
    return left + ([piece._replace(first=taken.last + 1)] if piece.last > taken.last else [])
