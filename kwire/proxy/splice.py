"""A field of an answer, found without decoding what stands around it, and put back changed; all else stays as it is.

What is gone through is bounded, so that an answer that was made to be expensive ends its connection and costs little.
"""

from __future__ import annotations

from functools import cache
from struct import error as StructError
from struct import pack
from typing import Any, NamedTuple

from kwire.broker.elements import ElementWalk, TooMany, Unreadable
from kwire.codec.headers import header_plan, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.values import Codec
from kwire.errors import KwireError, UnknownName
from kwire.proxy.link import PendingRequest
from kwire.proxy.types import PeerRefused
from kwire.wire.varint import VarintError, read_uvarint, write_uvarint

MOST_PASSED = 500_000  # elements that stand before the field
MOST_READ = 100_000  # elements of the field itself


class FieldPlace(NamedTuple):
    """Where a field stands in a frame. sized: where the size of its tag begins, if it is a tagged one."""

    slot: Slot
    start: int
    end: int
    sized: int | None = None


def place_of(frame: bytes, asked: PendingRequest, name: str) -> FieldPlace | None:
    """A field of the answer's outermost struct; None where the answer has none. Raises PeerRefused for what cannot be
    read, or not at a bearable cost."""
    try:
        return _place(frame, asked, name)
    except (TooMany, Unreadable, VarintError, StructError, IndexError, KwireError) as error:
        why = f"too many elements up to {name}" if isinstance(error, TooMany) else error
        raise PeerRefused(f"the broker's answer cannot be read: {why}") from None


def read(frame: bytes, asked: PendingRequest, place: FieldPlace) -> Any:
    """The field's value. Raises PeerRefused."""
    try:
        if place.sized is not None:
            ElementWalk(frame, MOST_READ).value(place.slot, place.start)
        return _codec(asked.key, asked.version, place.slot.name).decode_at(frame, place.start)[0][place.slot.name]
    except (TooMany, Unreadable, VarintError, StructError, IndexError, KwireError) as error:
        why = f"more than {MOST_READ:,} of {place.slot.name}" if isinstance(error, TooMany) else error
        raise PeerRefused(f"the broker's answer cannot be read: {why}") from None


def spliced(frame: bytes, asked: PendingRequest, place: FieldPlace, value: Any) -> bytes:
    """The frame with another value there."""
    data = _codec(asked.key, asked.version, place.slot.name).encode({place.slot.name: value})
    start = place.start
    if place.sized is not None:
        start, data = place.sized, write_uvarint(len(data)) + data
    size = len(frame) - 4 + len(data) - (place.end - start)
    view = memoryview(frame)
    return b"".join((pack(">i", size), view[4:start], data, view[place.end :]))


def bounded(plan: StructPlan, data: bytes, pos: int, most: int) -> None:
    """Raises KwireError for a struct that is none, or has more elements in all its arrays."""
    try:
        ElementWalk(data, most).struct(plan, pos)
    except TooMany:
        raise KwireError(f"more than {most:,} elements") from None
    except (Unreadable, VarintError, StructError, IndexError) as error:
        raise KwireError(str(error)) from None


def body_start(frame: bytes, key: int, version: int) -> int:
    """Where the body of a response begins. Raises KwireError."""
    message = builtin_library().api_message(key, request=False)
    if response_header_version(key, version, message) == 0:
        return 8
    if frame[8:9] == b"\0":
        return 9
    return Codec(header_plan("ResponseHeader", 1)).decode_at(frame, 4)[1]


def response_codec(key: int, version: int) -> Codec:
    """Raises KwireError."""
    message = builtin_library().api_message(key, request=False)
    if message is None:
        raise UnknownName("API key", str(key))
    return builtin_library().codec(message.name, version)


def _place(frame: bytes, asked: PendingRequest, name: str) -> FieldPlace | None:
    root = response_codec(asked.key, asked.version).plan.root
    walk, pos = ElementWalk(frame, MOST_PASSED), body_start(frame, asked.key, asked.version)
    for slot in root.slots:
        if slot.name == name:
            return FieldPlace(slot, pos, ElementWalk(frame, MOST_READ).value(slot, pos))
        pos = walk.value(slot, pos)
    wanted = next((tag for tag, slot in root.tagged.items() if slot.name == name), None)
    if wanted is None or not root.flexible:
        return None
    count, pos = read_uvarint(frame, pos)
    for _ in range(count):
        tag, sized = read_uvarint(frame, pos)
        size, start = read_uvarint(frame, sized)
        pos = start + size
        if pos > len(frame):
            raise Unreadable("it ends too early")
        if tag == wanted:
            return FieldPlace(root.tagged[tag], start, pos, sized)
    return None


@cache
def _codec(key: int, version: int, name: str) -> Codec:
    """Of a message that has this field alone."""
    plan = response_codec(key, version).plan
    (slot,) = (slot for slot in (*plan.root.slots, *plan.root.tagged.values()) if slot.name == name)
    alone = StructPlan(plan.root.name, (slot._replace(tag=None),), {}, False, slot.minimum)
    return Codec(Plan(plan.message, plan.version, alone))
