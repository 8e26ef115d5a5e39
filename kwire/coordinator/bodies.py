"""Bodies as their version has them: handlers fill in what they know, this adds the defaults and drops the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from kwire.codec.library import builtin_library
from kwire.codec.plan import Slot, StructPlan

Body = dict[str, Any]
SHARED = (int, str, bytes, bool, float, type(None))  # defaults that may be used over and over


class Blank(NamedTuple):
    """A field of the version: its default, or how to make one; how to shape what stands in it, if that is a struct.
    default stands in for null too where the version has no null."""

    name: str
    default: object
    make: Callable[[], object] | None
    inner: tuple[Blank, ...] | None
    array: bool
    nullable: bool
    tagged: bool


def shape(message: str, version: int, given: Body) -> Body:
    """given, with exactly the fields that the message has at this version; a tagged one only if it is given.

    Raises UnknownName for a message or a version that is not there.
    """
    blanks, flat = _blanks(message, version)
    if flat is None or not flat.keys() >= given.keys():
        return _shape(blanks, given)
    return flat | given


def _shape(blanks: tuple[Blank, ...], given: Mapping[str, Any]) -> Body:
    body: Body = {}
    for name, default, make, inner, array, nullable, tagged in blanks:
        value = given.get(name, MISSING)
        if value is MISSING or (value is None and not nullable):
            if not tagged:
                body[name] = default if make is None else make()
        elif inner is None or value is None:
            body[name] = value
        else:
            body[name] = [_shape(inner, each) for each in value] if array else _shape(inner, value)
    return body


MISSING = object()


@cache
def _blanks(message: str, version: int) -> tuple[tuple[Blank, ...], Body | None]:
    """The fields; and, where all are numbers and so never null nor shaped, a body of defaults to be copied."""
    blanks = _of_struct(builtin_library().plan(message, version).root)
    numbers = all(isinstance(each.default, int) and not each.tagged for each in blanks)
    return blanks, {each.name: each.default for each in blanks} if numbers else None


def _of_struct(struct: StructPlan) -> tuple[Blank, ...]:
    return tuple(_blank(slot) for slot in (*struct.slots, *struct.tagged.values()))


def _blank(slot: Slot) -> Blank:
    default = slot.default()
    make = None if isinstance(default, SHARED) else slot.default
    inner = None if slot.struct is None else _of_struct(slot.struct)
    return Blank(slot.name, default, make, inner, slot.array, slot.nullable, slot.tag is not None)
