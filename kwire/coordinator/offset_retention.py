"""Offsets of groups that nobody uses any more go, offsets.retention.minutes after the last sign of use.

For a group that had members that is when it became empty, for offsets alone when each was committed. Rules:
OffsetMetadataManager.cleanupExpiredOffsets and offsetExpirationCondition. Kafka also drops what a group with
members has committed for topics that nobody in it subscribes to; here that stays.
"""

from __future__ import annotations

from kwire.coordinator.context import Context
from kwire.coordinator.types import MS

MINUTE_MS = 60_000


def expire(context: Context, group: str, emptied: int | None) -> None:
    """emptied: when the group became empty, ns; None where each offset's own time counts."""
    offsets = context.offsets
    kept = offsets.committed.get(group, {})
    limit = context.settings.offsets_retention_minutes * MINUTE_MS * MS
    for place, each in list(kept.items()):
        since = each.time if emptied is None else emptied
        if context.now - since >= limit and not offsets.is_pending(group, place):
            del kept[place]
    if not kept:
        offsets.committed.pop(group, None)
