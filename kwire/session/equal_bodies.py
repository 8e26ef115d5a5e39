"""Decoded bodies that messages share. Heartbeats of a member, the answers to them, and Metadata of a cluster that does
not change are equal byte by byte: each is decoded once, and all messages that hold it get the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.errors import DecodeError

if TYPE_CHECKING:
    from kwire.codec.values import Codec

SHORT = 2048  # bytes; decoded values of longer messages are not kept
ROOM = 1 << 20  # bytes of bodies; their decoded values take up to twenty times as much


class EqualBodies:
    """of(codec, data) gives the values of a body, None of one that cannot be decoded. Shared: do not change them."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._used = 0
        self._known: dict[tuple[Codec, bytes], dict[str, Any] | None] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return EqualBodies, (self._room,)  # what is kept is not needed elsewhere

    def of(self, codec: Codec, data: bytes) -> dict[str, Any] | None:
        """data: from the body's first byte to the frame's end."""
        key = codec, data
        if key in self._known:
            return self._known[key]
        try:
            values = codec.decode_at(data, 0)[0]
        except DecodeError:
            values = None
        if self._used > self._room:
            self._known.clear()
            self._used = 0
        self._known[key] = values
        self._used += len(data)
        return values
