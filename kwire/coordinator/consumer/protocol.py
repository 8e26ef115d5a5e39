"""The consumer protocol inside JoinGroup and SyncGroup, as far as a group that migrates needs it (ConsumerProtocol)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import pack, unpack_from
from typing import NamedTuple
from uuid import UUID

from kwire.codec.library import builtin_library
from kwire.coordinator.consumer.reconciliation import Partition
from kwire.errors import DecodeError

PREFIX = 2  # bytes: the version that stands in front
NEWEST_SUBSCRIPTION, NEWEST_ASSIGNMENT = 3, 3


class Subscription(NamedTuple):
    """owned: (topic, partition)."""

    topics: list[str]
    owned: frozenset[tuple[str, int]]
    rack: str | None


def version_of(metadata: bytes) -> int:
    """The version in front of a member's metadata."""
    return int(unpack_from(">h", metadata)[0]) if len(metadata) >= PREFIX else 0


def subscription(metadata: bytes) -> Subscription | None:
    """None if the bytes are none; a version beyond those known is read as the newest."""
    version = min(version_of(metadata), NEWEST_SUBSCRIPTION)
    if version < 0 or len(metadata) < PREFIX:
        return None
    try:
        said, _ = builtin_library().codec("ConsumerProtocolSubscription", version).decode_at(metadata, PREFIX)
    except DecodeError:
        return None
    owned = ((each["Topic"], index) for each in said.get("OwnedPartitions", ()) for index in each["Partitions"])
    return Subscription(said["Topics"], frozenset(owned), said.get("RackId"))


def assignment(data: bytes, ids: Mapping[str, UUID]) -> frozenset[Partition] | None:
    """A member's partitions; None if the bytes are no assignment, or hold what an assignor of the client's needs."""
    version = min(version_of(data), NEWEST_ASSIGNMENT)
    if version < 0 or len(data) < PREFIX:
        return None
    try:
        said, _ = builtin_library().codec("ConsumerProtocolAssignment", version).decode_at(data, PREFIX)
    except DecodeError:
        return None
    if said["UserData"]:
        return None
    rows = said["AssignedPartitions"]
    return frozenset(
        (ids[each["Topic"]], index) for each in rows if each["Topic"] in ids for index in each["Partitions"]
    )


def assigned(held: Iterable[Partition], names: Mapping[UUID, str], version: int) -> bytes:
    """An assignment's bytes, of topics that exist."""
    version = max(min(version, NEWEST_ASSIGNMENT), 0)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(held):
        if topic in names:
            topics.setdefault(names[topic], []).append(partition)
    rows = [{"Topic": topic, "Partitions": partitions} for topic, partitions in topics.items()]
    codec = builtin_library().codec("ConsumerProtocolAssignment", version)
    return pack(">h", version) + codec.encode({"AssignedPartitions": rows, "UserData": None})
