"""Why a message cannot be written: the slow, exact reading of a dict against its plan.

values.py writes without looking; when that fails, this walk names the first field that does not fit, and why. The JSON
reader uses the same checks field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.errors import EncodeError
from kwire.wire.fixed import RANGES

MAX_UVARINT = (1 << 32) - 1


def encode_error(plan: Plan, message: Any) -> EncodeError:
    """The first thing that is wrong with message."""
    for path, reason in _struct(plan.root, message, "", plan):
        return EncodeError(plan.title, path, reason)
    return EncodeError(plan.title, "", "cannot be written")


def complete(plan: Plan, message: Any) -> Any:
    """The message with the default of every untagged field that it lacks, at every depth."""
    return _completed(plan.root, message)


def _completed(plan: StructPlan, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    out = {slot.name: slot.default() for slot in plan.slots if slot.name not in value} | value
    for slot in (*plan.slots, *plan.tagged.values()):
        inner, struct = out.get(slot.name), slot.struct
        if slot.array and isinstance(inner, list | tuple):  # a subclass, too, becomes a list
            out[slot.name] = [_completed(struct, element) for element in inner] if struct else list(inner)
        elif struct and inner is not None:
            out[slot.name] = _completed(struct, inner)
    return out


def fitted(plan: StructPlan, value: Any) -> Any:
    """The fields of value that the plan has, no others, at every depth."""
    if not isinstance(value, dict):
        return value
    out = {}
    for slot in (*plan.slots, *plan.tagged.values()):
        name, struct = slot.name, slot.struct
        if name in value:
            inner = value[name]
            if struct is None:
                out[name] = inner
            else:
                many = slot.array and isinstance(inner, list | tuple)
                out[name] = [fitted(struct, item) for item in inner] if many else fitted(struct, inner)
    return out


def _struct(plan: StructPlan, value: Any, path: str, whole: Plan) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, f"needs an object with fields, has {_kind(value)}"
        return
    tagged = {slot.name: slot for slot in plan.tagged.values()}
    known = {slot.name: slot for slot in plan.slots} | tagged
    for name, inner in value.items():
        here = f"{path}.{name}" if path else str(name)
        if name == "_tagged" and plan.flexible:
            yield from _unknown_tags(plan, inner, here)
        elif name not in known:
            yield here, no_such_field(whole, here, list(known))
        else:
            yield from _field(known[name], inner, here, whole)


def no_such_field(whole: Plan, path: str, known: list[str]) -> str:
    """The sentence for a field at path that this version does not have; known are the fields that stand there."""
    bare = re.sub(r"\[\d+\]", "", path)
    parent, _, name = bare.rpartition(".")
    for other, field in whole.message.walk():
        if other == bare:
            versions = field.versions.join(field.tagged).within(whole.message.versions)
            return f"not in v{whole.version}: {whole.message.name} has it in v{versions}"
        if other.rpartition(".")[0] == parent and field.name in known and name in [old.name for old in field.was]:
            return f"is called {field.name} now"
    from difflib import get_close_matches

    near = get_close_matches(name, known, 2) or [one for one in known if one.lower() == name.lower()]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no such field in {path.rpartition('.')[0] or whole.title}{hint}"


def _unknown_tags(plan: StructPlan, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, f"needs {{tag: bytes}}, has {_kind(value)}"
        return
    for tag, raw in value.items():
        try:
            number = int(tag)
        except (TypeError, ValueError):
            yield f"{path}[{tag}]", "is not a tag number"
            continue
        if not 0 <= number <= MAX_UVARINT:
            yield f"{path}[{tag}]", "is not a tag number"
        elif number in plan.tagged:
            yield f"{path}[{tag}]", f"is a known field here: {plan.tagged[number].name}"
        elif not isinstance(raw, bytes | bytearray | memoryview):
            yield f"{path}[{tag}]", f"needs bytes, has {_kind(raw)}"


def _field(slot: Slot, value: Any, path: str, whole: Plan) -> Iterator[tuple[str, str]]:
    if value is None:
        if not slot.nullable:
            yield path, "is null, and this field must not be"
        return
    if not slot.array:
        yield from _single(slot, value, path, whole)
    elif not isinstance(value, list | tuple):
        yield path, f"needs a list, has {_kind(value)}"
    else:
        for index, element in enumerate(value):
            if element is None:
                yield f"{path}[{index}]", "is null, and an element must not be"
            else:
                yield from _single(slot, element, f"{path}[{index}]", whole)


def _single(slot: Slot, value: Any, path: str, whole: Plan) -> Iterator[tuple[str, str]]:
    if slot.struct:
        yield from _struct(slot.struct, value, path, whole)
        return
    reason = scalar_reason(slot, value)
    if reason:
        yield path, reason


def scalar_reason(slot: Slot, value: Any) -> str | None:
    """Why value is not one of the slot's scalar type; None when it is."""
    kind = slot.type
    if kind in RANGES:
        low, high = RANGES[kind]
        if not isinstance(value, int) or isinstance(value, bool):
            return f"needs {kind}, has {_kind(value)}"
        return None if low <= value <= high else f"{value:,} is out of range for {kind} ({low:,} to {high:,})"
    if kind == "bool":
        return None if isinstance(value, bool) else f"needs true or false, has {_kind(value)}"
    if kind == "float64":
        return None if isinstance(value, int | float) else f"needs a number, has {_kind(value)}"
    if kind == "uuid":
        return None if isinstance(value, UUID) else f"needs a uuid, has {_kind(value)}"
    if kind == "string":
        if not isinstance(value, str):
            return f"needs a string, has {_kind(value)}"
        try:
            size = len(value.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            return "cannot be written as UTF-8"
        return None if slot.compact or size <= 32767 else f"takes {size:,} bytes, more than 32,767"
    fits = isinstance(value, bytes | bytearray) or (isinstance(value, memoryview) and value.itemsize == 1)
    return None if fits else f"needs bytes, has {_kind(value)}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if isinstance(value, int | float):
        return f"the number {value}"
    return {"dict": "an object", "list": "a list", "bytes": "bytes"}.get(type(value).__name__, type(value).__name__)
