"""What members tell each other inside JoinGroup and SyncGroup: topics wanted, partitions given.

ConsumerProtocolSubscription and ConsumerProtocolAssignment, an int16 version in front (see payloads/group.py); what is
no consumer's, or broken, counts as nothing.
"""

from __future__ import annotations

from typing import Any

from kwire.analyze.members import Assignment
from kwire.codec.library import builtin_library
from kwire.errors import DecodeError


def subscribed(metadata: bytes | None) -> tuple[str, ...]:
    """The topics of a consumer's subscription, sorted."""
    body = _read("ConsumerProtocolSubscription", metadata)
    return tuple(sorted(set(body["Topics"]))) if body else ()


def assigned(data: bytes | None) -> Assignment:
    """A consumer's partitions by topic."""
    out: Assignment = {}
    for topic in (_read("ConsumerProtocolAssignment", data) or {}).get("AssignedPartitions", ()):
        out.setdefault(topic["Topic"], []).extend(topic["Partitions"])
    return out


def _read(name: str, data: bytes | None) -> dict[str, Any] | None:
    if not data or len(data) < 2:
        return None
    library = builtin_library()
    version = min(max(int.from_bytes(data[:2], signed=True), 0), library.message(name).versions.high)
    try:
        return library.codec(name, version).decode_at(data, 2)[0]
    except DecodeError:
        return None
