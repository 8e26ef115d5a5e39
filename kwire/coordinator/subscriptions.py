"""The one thing that the coordinator reads in members' metadata: the topics that consumers subscribe to.

ClassicGroup.computeSubscribedTopics reads ConsumerProtocolSubscription as version 0, with which all versions begin.
"""

from __future__ import annotations

from kwire.codec.library import builtin_library
from kwire.errors import DecodeError

PREFIX = 2  # bytes: the version that stands in front


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """The topics' names; None if the bytes are no subscription."""
    try:
        message, _ = builtin_library().codec("ConsumerProtocolSubscription", 0).decode_at(metadata, PREFIX)
    except DecodeError:
        return None
    return frozenset(message["Topics"])
