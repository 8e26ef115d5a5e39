"""What the records of groups are in memory, and the records of a target: the partitions that members shall have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kwire.coordinator.assignors import Assignment
from kwire.coordinator.consumer.bodies import by_topic, flat
from kwire.coordinator.types import MS

Fields = dict[str, Any]
RecordKey = tuple[str, ...]  # the group, or the group and a member, pattern or the like
Rows = Mapping[RecordKey, Fields]


class Targeted(Protocol):
    """A group with a target. target_time: ns since the epoch, when it was computed."""

    name: str
    target_epoch: int
    target_time: int | None
    targets: dict[str, Assignment]


def target_epoch_record(group: Targeted) -> dict[RecordKey, Fields]:
    """TargetAssignmentMetadata. Tagged fields that have their default are left out, as Kafka does."""
    time = (group.target_time or 0) // MS
    return {(group.name,): {"AssignmentEpoch": group.target_epoch, **({"AssignmentTimestamp": time} if time else {})}}


def target_records(group: Targeted) -> dict[RecordKey, Fields]:
    """TargetAssignmentMember, one of each member."""
    targets = group.targets.items()
    return {(group.name, member): {"TopicPartitions": by_topic(flat(target))} for member, target in targets}
