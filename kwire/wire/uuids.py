"""Uuids: 16 bytes on the wire, 22 characters in Kafka's tools (URL-safe base64 without padding)."""

from __future__ import annotations

import base64
from uuid import UUID, SafeUUID

ZERO = UUID(int=0)


def from_bytes(data: bytes) -> UUID:
    """A UUID of 16 bytes; several times as fast as UUID(bytes=…), which checks five forms."""
    made = object.__new__(UUID)
    object.__setattr__(made, "int", int.from_bytes(data, "big"))
    object.__setattr__(made, "is_safe", SafeUUID.unknown)
    return made


def to_text(value: UUID) -> str:
    """Kafka's own form, as kafka-topics prints it."""
    return text_of(value.bytes)


def text_of(data: bytes) -> str:
    """The same of 16 bytes."""
    return base64.urlsafe_b64encode(data)[:22].decode()


def from_text(text: str) -> UUID:
    """Reads Kafka's form, or the usual one with hyphens. Raises ValueError."""
    if len(text) == 22:
        try:
            raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
        except ValueError as error:
            raise ValueError(f"not a uuid: {text}") from error
        if len(raw) != 16:  # text that brings padding of its own
            raise ValueError(f"not a uuid: {text}")
        return from_bytes(raw)
    return UUID(text)
