"""What members tell each other inside JoinGroup and SyncGroup: topics wanted, partitions given.

ConsumerProtocolSubscription and ConsumerProtocolAssignment, an int16 version in front (see payloads/group.py); what is
no consumer's, or broken, counts as nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kwire.analyze.members import Assignment
from kwire.codec.library import builtin_library
from kwire.errors import DecodeError

SHORT = 2048  # bytes; what longer ones tell is not kept


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
    return _of_equal(name, data) if len(data) <= SHORT else _decoded(name, data)


def _decoded(name: str, data: bytes) -> dict[str, Any] | None:
    library = builtin_library()
    version = min(max(int.from_bytes(data[:2], signed=True), 0), library.message(name).versions.high)
    try:
        return library.codec(name, version).decode_at(data, 2)[0]
    except DecodeError:
        return None


_of_equal = lru_cache(512)(_decoded)  # members of a group say the same: each is decoded once, and not to be changed
