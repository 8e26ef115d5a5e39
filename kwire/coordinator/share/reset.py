"""Where a share group begins that has read nothing yet: share.auto.offset.reset (ShareGroupAutoOffsetResetStrategy)."""

from __future__ import annotations

import re

DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")  # as PT1H30M


def milliseconds(text: str) -> int | None:
    """Of an ISO 8601 duration in days and below; None if it is none."""
    found = DURATION.fullmatch(text[:64])
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
