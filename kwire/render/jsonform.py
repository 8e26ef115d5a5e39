"""Values as JSON and back: bytes as base64, uuids in Kafka's 22 characters, 64-bit integers as numbers.

Reading follows the plan, so a wrong type, a number out of range or a field that the version lacks is named by its path.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from kwire.codec.encode_checks import no_such_field, scalar_reason
from kwire.codec.plan import Plan, Slot, StructPlan
from kwire.codec.secrets import Withheld
from kwire.errors import EncodeError
from kwire.wire import uuids


def to_jsonable(value: Any, whole: bool = True) -> Any:
    """A plain value (kwire.decode's form) as what json.dumps takes; without whole, bytes stay what they are."""
    if isinstance(value, dict):
        return {str(key): to_jsonable(inner, whole) for key, inner in value.items()}
    if isinstance(value, Withheld):
        return str(value)
    if isinstance(value, list):
        return [to_jsonable(inner, whole) for inner in value]
    if whole and isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return uuids.to_text(value)
    return value


def dumps(value: Any, indent: int | None = 2) -> str:
    """JSON text; characters beyond ASCII as they are, except escapes of bytes that are no UTF-8."""
    text = json.dumps(to_jsonable(value), indent=indent, ensure_ascii=False)
    return text if text.isprintable() else _visible(text)


def write(value: Any, put: Callable[[str], object]) -> None:
    """The same text piece by piece, and bytes made base64 one after the other: for what may be large."""
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, default=to_jsonable)
    for piece in encoder.iterencode(to_jsonable(value, whole=False)):
        put(piece if piece.isprintable() else _visible(piece))
    put("\n")


def _visible(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in text)


def _escape(char: str) -> str:
    return json.dumps(char)[1:-1]


def from_json(plan: Plan, text: str) -> dict[str, Any]:
    """Reads a message's JSON. Raises EncodeError with the path of what does not fit."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EncodeError(plan.title, "", f"not JSON: {error}") from error
    message = _struct(plan.root, raw, "", plan)
    assert isinstance(message, dict)
    return message


def _struct(plan: StructPlan, raw: Any, path: str, whole: Plan) -> Any:
    if not isinstance(raw, dict):
        reason = f"needs an object with fields, has {json.dumps(raw)[:60]}"
        raise EncodeError(whole.title, path, reason)
    known = {slot.name: slot for slot in (*plan.slots, *plan.tagged.values())}
    out: dict[str, Any] = {}
    for name, value in raw.items():
        here = f"{path}.{name}" if path else name
        if name == "_tagged" and plan.flexible and isinstance(value, dict):
            out[name] = {_tag(whole, here, tag): _bytes(whole, f"{here}[{tag}]", raw) for tag, raw in value.items()}
        elif name not in known:
            raise EncodeError(whole.title, here, no_such_field(whole, here, list(known)))
        else:
            out[name] = _field(known[name], value, here, whole)
    return out


def _tag(whole: Plan, path: str, tag: str) -> int:
    if not tag.isdecimal() or int(tag) >= 1 << 32:
        raise EncodeError(whole.title, path, f"{tag} is not a tag number")
    return int(tag)


def _field(slot: Slot, value: Any, path: str, whole: Plan) -> Any:
    if value is None:
        if not slot.nullable:
            raise EncodeError(whole.title, path, "is null, and this field must not be")
        return None
    if not slot.array:
        return _single(slot, value, path, whole)
    if not isinstance(value, list):
        raise EncodeError(whole.title, path, f"needs a list, has {json.dumps(value)[:60]}")
    return [_single(slot, element, f"{path}[{index}]", whole) for index, element in enumerate(value)]


def _single(slot: Slot, value: Any, path: str, whole: Plan) -> Any:
    if slot.struct:
        return _struct(slot.struct, value, path, whole)
    if slot.type in ("bytes", "records"):
        return _bytes(whole, path, value)
    if slot.type == "uuid" and isinstance(value, str):
        try:
            return uuids.from_text(value)
        except ValueError as error:
            raise EncodeError(whole.title, path, f"needs a uuid of 22 characters, has {value[:60]!r}") from error
    reason = scalar_reason(slot, value)
    if reason:
        raise EncodeError(whole.title, path, reason)
    return value


def _bytes(whole: Plan, path: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise EncodeError(whole.title, path, f"needs base64 text, has {json.dumps(value)[:60]}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EncodeError(whole.title, path, f"not base64: {error}") from error
