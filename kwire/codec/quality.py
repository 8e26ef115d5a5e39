"""How well a message could be read, as the message record says it."""

from __future__ import annotations

from enum import StrEnum


class Quality(StrEnum):
    """The values of the column quality; a note says why it is not ok."""

    OK = "ok"
    TRAILING = "trailing"
    TRUNCATED = "truncated"
    GAP = "gap"
    ORPHAN = "orphan"
    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    INFERRED = "inferred"
    OPAQUE = "opaque"


QUALITIES = tuple(Quality)
QUALITY_CODES: dict[str, int] = {quality: code for code, quality in enumerate(QUALITIES)}
