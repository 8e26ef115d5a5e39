"""Names the API of a response whose request was not captured, if exactly one API can read it.

Trying every API and version costs about ten microseconds a span, so there is a budget for each connection and for the
capture. Responses beyond it stay unnamed.
"""

from __future__ import annotations

from struct import error as StructError
from typing import TYPE_CHECKING

from kwire.codec.annotate import Effort
from kwire.codec.infer import infer
from kwire.codec.quality import Quality
from kwire.schema.errorcodes import errors
from kwire.session.api_versions import Kind
from kwire.session.messages import read_response

if TYPE_CHECKING:
    from kwire.session.api_versions import Reading
    from kwire.session.exchange import Message

LARGEST = 1 << 16  # bytes
SHORT, MOST_TRIED = 256, 4096  # bytes of messages whose reading is remembered, and their number
TRIED = 100  # spans: the cost of finding that no layout is small enough
SCANNED = 16  # bytes that a scan walks over in about the time of a span
TELLING = 24  # bytes; shorter responses fit many APIs
MARGIN = 0.5  # by which the best reading's score must exceed the next API's


def name_orphan(message: Message) -> None:
    """Sets quality (orphan or inferred) and note, and the API where there is no doubt."""
    message.note = "its request is not in the capture"
    if message.quality != Quality.OK:
        return
    message.quality = Quality.ORPHAN
    size, left = len(message.data), _left(message)
    if left < 1:
        return
    seen, cost = _seen(message) if size >= TELLING else ([], 0)
    if seen:
        _spend(message, cost)
        if len({kind.api for kind in seen}) == 1:
            kind = max(seen, key=lambda known: known.version)
            _name(message, kind, f"of what is asked in this capture only {kind.api}Response v{kind.version} reads it")
        return
    if size > LARGEST:
        _spend(message, cost)
        return
    found, spent = _only_reading(message, left - cost - TRIED)
    _spend(message, cost + TRIED + spent)
    if found is not None:
        _name(message, *found)


def _only_reading(message: Message, left: int) -> tuple[Reading | None, int]:
    """The one way to read the message, if any, and the cost in spans, which left bounds. Equal messages, such as most
    heartbeats, are tried once; they cost their connection as much as the first one."""
    tried, data = message.connection.kinds.tried, message.data
    # of the correlation id it only matters whether it is below 2^24
    same = data[:5] + data[8:] if len(data) <= SHORT and not data[4] else b""
    if same in tried and tried[same][1] < left:
        return tried[same]
    effort = Effort(left)
    found = _tried(message, effort), left - effort.left
    if same and effort.left > 0 and len(tried) < MOST_TRIED:
        tried[same] = found
    return found


def _tried(message: Message, effort: Effort) -> Reading | None:
    """The one way to read the message after all were tried; None where there is none, or more than one."""
    kinds = message.connection.kinds
    found = infer(message.data, kinds.library, effort=effort)
    readings = [reading for reading in found if reading.form == "frame" and reading.score > 0]
    if not readings:
        return None
    best = readings[0]
    doubtful = any(other.name != best.name and best.score - other.score < MARGIN for other in readings[1:])
    if doubtful or best.definition.key is None:
        return None
    low, high = best.versions[-1], best.versions[0]
    which = f"v{low}" if low == high else f"v{low} to v{high}"
    return kinds.of(best.definition.key, high), f"it can only be {best.name} {which}"


def _left(message: Message) -> int:
    """The spans that may be spent on this message."""
    connection, size = message.connection, len(message.data)
    return min(connection.inferred.for_bytes(size), connection.kinds.inferred.for_bytes(size))


def _spend(message: Message, cost: int) -> None:
    for allowance in (message.connection.inferred, message.connection.kinds.inferred):
        allowance.spend(len(message.data), cost)


def _seen(message: Message) -> tuple[list[Kind], int]:
    """The kinds asked in the capture whose responses read the message to the last byte, and the cost in spans."""
    found, cost = [], 0
    for kind in message.connection.kinds.seen():
        cost += 1 + len(message.data) // SCANNED
        codes: list[int] = []
        try:
            end = kind.scan_response(message.data, 8 + kind.response_header, codes)
        except (IndexError, ValueError, StructError):
            continue
        if end == len(message.data) and all(errors.get(code) for code in codes):
            found.append(kind)
    return found, cost


def _name(message: Message, kind: Kind, why: str) -> None:
    message.api, message.quality, note = kind, Quality.OK, message.note
    read_response(message, kind, message.connection.kinds)
    message.quality, message.note = Quality.INFERRED, f"{note}; {why}"
