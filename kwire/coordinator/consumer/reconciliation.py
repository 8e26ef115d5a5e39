"""How a member of a consumer group (KIP-848) moves from what it has to what it shall have, a heartbeat at a time.

A pure function from the member's hold, its target and what it says it owns to its next hold. A member first gives up
what the target no longer has, keeping its epoch (UNREVOKED_PARTITIONS), until a heartbeat's list of owned partitions
lacks them; then it takes the target's epoch and whatever of the target nobody else holds; what others still hold it
awaits (UNRELEASED_PARTITIONS). The rule is Kafka's CurrentAssignmentBuilder; before 4.2 a member that had given up
its partitions went to its epoch + 1 first, and a change of subscription alone took nothing away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import NamedTuple
from uuid import UUID

Partition = tuple[UUID, int]


class MemberState(Enum):
    """Kafka's MemberState. UNKNOWN: written by a newer coordinator; such a member must come back with nothing."""

    STABLE = "stable"
    UNREVOKED_PARTITIONS = "unrevoked partitions"
    UNRELEASED_PARTITIONS = "unreleased partitions"
    UNKNOWN = "unknown"


class Hold(NamedTuple):
    """What a member has. assigned and revoking: partition → the epoch at which the member was given it."""

    state: MemberState = MemberState.STABLE
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Mapping[Partition, int] = {}
    revoking: Mapping[Partition, int] = {}

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch


class Target(NamedTuple):
    """Where a member shall go. subscribed: the topics that it asks for now; what lies outside is never given."""

    epoch: int
    partitions: Collection[Partition]
    subscribed: Collection[UUID]


class MustRejoin(Exception):
    """The member's state is unknown and it still owns partitions: FENCED_MEMBER_EPOCH."""


def reconcile(
    hold: Hold,
    target: Target,
    owned: Collection[Partition] | None,
    is_free: Callable[[Partition], bool],
    subscription_changed: bool = False,
    era: tuple[int, int] = (4, 3),
) -> Hold:
    """The member's next hold; `hold` itself when nothing can move.

    owned: what the heartbeat says the member owns, None when it says nothing. is_free: whether no other member holds a
    partition. Raises MustRejoin.
    """
    match hold.state:
        case MemberState.STABLE:
            if hold.epoch != target.epoch:
                return _advance(hold, hold.epoch, target, owned, is_free, era)
            return _drop_unsubscribed(hold, target, owned) if subscription_changed and era >= (4, 2) else hold
        case MemberState.UNREVOKED_PARTITIONS:
            if _still_owns(owned, hold.revoking):
                return _drop_unsubscribed(hold, target, owned) if subscription_changed and era >= (4, 2) else hold
            epoch = hold.epoch if era >= (4, 2) else hold.epoch + 1
            return _advance(hold, epoch, target, owned, is_free, era)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(hold, hold.epoch, target, owned, is_free, era)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise MustRejoin
            return _advance(hold, target.epoch, target, owned, is_free, era)


def _still_owns(owned: Collection[Partition] | None, revoking: Mapping[Partition, int]) -> bool:
    return owned is None or any(partition in revoking for partition in owned)


def _advance(
    hold: Hold,
    epoch: int,
    target: Target,
    owned: Collection[Partition] | None,
    is_free: Callable[[Partition], bool],
    era: tuple[int, int],
) -> Hold:
    wanted = set(target.partitions)
    if era >= (4, 2):
        wanted = {partition for partition in wanted if partition[0] in target.subscribed}
    kept = {partition: since for partition, since in hold.assigned.items() if partition in wanted}
    revoking = {partition: since for partition, since in hold.assigned.items() if partition not in wanted}
    if revoking and _still_owns(owned, revoking):
        return Hold(MemberState.UNREVOKED_PARTITIONS, epoch, hold.epoch, kept, revoking)
    missing = wanted - kept.keys()
    given = {partition: target.epoch for partition in sorted(missing) if is_free(partition)}
    state = MemberState.STABLE if len(given) == len(missing) else MemberState.UNRELEASED_PARTITIONS
    return Hold(state, target.epoch, hold.epoch, kept | given, {})


def _drop_unsubscribed(hold: Hold, target: Target, owned: Collection[Partition] | None) -> Hold:
    """The target is not new, the subscription is: its lost topics go at once."""
    kept = {partition: since for partition, since in hold.assigned.items() if partition[0] in target.subscribed}
    if len(kept) == len(hold.assigned):
        return hold
    lost = {partition: since for partition, since in hold.assigned.items() if partition not in kept}
    revoking = {**hold.revoking, **lost}
    if _still_owns(owned, revoking):
        return Hold(MemberState.UNREVOKED_PARTITIONS, hold.epoch, hold.epoch, kept, revoking)
    return Hold(hold.state, hold.epoch, hold.epoch, kept, hold.revoking)
