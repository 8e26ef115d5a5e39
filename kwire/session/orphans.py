"""A response whose request was not seen: what it could be, said only when a single API reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.codec.infer import infer
from kwire.session.kinds import Kind
from kwire.session.messages import read_response

if TYPE_CHECKING:
    from kwire.session.exchange import Message

LARGEST = 1 << 16  # bytes; every API and version is tried
MOST = 500  # for each connection
MARGIN = 0.5  # by how much the best reading must make more sense than the next


def name_orphan(message: Message) -> None:
    """Sets quality orphan or inferred, the note, and the API when there is no doubt."""
    message.note = "its request is not in the capture"
    if message.quality != "ok":
        return
    message.quality = "orphan"
    conversation = message.conversation
    conversation.inferred += 1
    if len(message.data) > LARGEST or conversation.inferred > MOST:
        return
    kinds = conversation.kinds
    readings = [
        reading for reading in infer(message.data, kinds.library) if reading.form == "frame" and reading.score > 0
    ]
    if not readings:
        return
    best = readings[0]
    doubtful = any(other.name != best.name and best.score - other.score < MARGIN for other in readings[1:])
    if doubtful or best.definition.key is None:
        return
    kind: Kind = kinds.of(best.definition.key, best.versions[0])
    message.api, message.quality, note = kind, "ok", message.note
    read_response(message, kind, kinds)
    low, high = best.versions[-1], best.versions[0]
    which = f"v{low}" if low == high else f"v{low} to v{high}"
    message.quality, message.note = "inferred", f"{note}; it can only be {best.name} {which}"
