"""The error codes that coordinators answer with, by their official names; schema/errors.txt explains each."""

from __future__ import annotations

from typing import Final

UNKNOWN_SERVER_ERROR: Final = -1
NONE: Final = 0
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
OFFSET_METADATA_TOO_LARGE: Final = 12
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
INVALID_GROUP_ID: Final = 24
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
GROUP_AUTHORIZATION_FAILED: Final = 30
UNSUPPORTED_VERSION: Final = 35
INVALID_REQUEST: Final = 42
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
MEMBER_ID_REQUIRED: Final = 79
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
UNSTABLE_OFFSET_COMMIT: Final = 88
UNKNOWN_TOPIC_ID: Final = 100
STALE_MEMBER_EPOCH: Final = 113

NAMES: Final = {value: name for name, value in list(globals().items()) if isinstance(value, int)}
