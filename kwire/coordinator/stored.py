"""What Kafka keeps of groups in __consumer_offsets, whatever their kind: one table entry for each kind of group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kwire.coordinator import classic_stored, modern
from kwire.coordinator.consumer import stored as consumer_stored
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context
from kwire.coordinator.group import Group
from kwire.coordinator.share import context as share_groups
from kwire.coordinator.share import stored as share_stored
from kwire.coordinator.share.group import ShareGroup
from kwire.coordinator.stored_records import Fields, RecordKey, Rows
from kwire.coordinator.streams import context as streams_groups
from kwire.coordinator.streams import stored as streams_stored
from kwire.coordinator.streams.group import StreamsGroup


class StoredKind(NamedTuple):
    """prefix: of the messages' names. numbers: that the keys begin with, by the rest of the names; "Metadata" is of the
    group itself. stored: the records of a group; None for one that stays what it was. revive: the group takes its place
    again, from its records by those names."""

    group: type
    prefix: str
    numbers: Mapping[str, int]
    version: int
    stored: Callable[[Any, str], Mapping[RecordKey, Fields | None]]
    revive: Callable[[Context, str, Mapping[str, Rows]], None]


def _consumer(context: Context, name: str, found: Mapping[str, Rows]) -> None:
    made = ConsumerGroup(name, context.settings_of(name), context.all_topics, context.new_id)
    consumer_stored.restore(made, found, context.now)
    _place(context, made)


def _share(context: Context, name: str, found: Mapping[str, Rows]) -> None:
    made = share_groups.fresh(context, name)
    made.configure(context.settings_of(name))
    share_stored.restore(made, found, context.now)
    _place(context, made)


def _streams(context: Context, name: str, found: Mapping[str, Rows]) -> None:
    made = streams_groups.fresh(context, name)
    made.configure(context.settings_of(name))
    streams_stored.restore(made, found, context.now)
    _place(context, made)


def _place(context: Context, group: modern.ModernGroup) -> None:
    context.groups[group.name] = group
    modern.settle(context, group)


KINDS = (
    StoredKind(Group, "Group", classic_stored.KINDS, 3, classic_stored.stored, classic_stored.revive),
    StoredKind(ConsumerGroup, "ConsumerGroup", consumer_stored.KINDS, 0, consumer_stored.stored, _consumer),
    StoredKind(ShareGroup, "ShareGroup", share_stored.KINDS, 0, share_stored.stored, _share),
    StoredKind(StreamsGroup, "StreamsGroup", streams_stored.KINDS, 0, streams_stored.stored, _streams),
)
