"""A span's value and bytes as text for one cell: what the number means stands beside it."""

from __future__ import annotations

from ipaddress import ip_address
from uuid import UUID

from kwire.codec.annotate import count_bytes
from kwire.codec.plan import Slot
from kwire.codec.secrets import Withheld
from kwire.codec.span import TAG, TAGGED, UNDECODED, Span
from kwire.counted import counted
from kwire.render.lines import Piece, clean, quoted
from kwire.schema.errorcodes import errors
from kwire.schema.registry import builtin
from kwire.wire import uuids
from kwire.wire.fixed import SIZES
from kwire.wire.times import moment

PREVIEW = 160  # characters of bytes that are text
INNER = ("array", "batch", "record", "cut batch", "struct")  # of spans without a slot: what bytes fields hold


def value_cell(span: Span) -> Piece:
    """What the span holds, and the style for it."""
    text, style = _value(span)
    if span.text and span.type != UNDECODED:
        said = clean(span.text)
        text = f"{text} · {said}" if text else said
    return text, style


def _value(span: Span) -> Piece:
    value, slot = span.value, span.slot
    if isinstance(value, Withheld):
        return str(value), "note"
    if span.type == UNDECODED:
        return "", "error"
    if span.type == TAGGED:
        return ("none" if not value else f"{value} field{'s' if value != 1 else ''}"), "dim"
    if span.type == TAG:  # one that is not known; of others the value has a cell of its own
        return scalar(span.children[0].value, None) if span.slot is None and span.children else ("", "dim")
    if span.type in ("header", "message"):
        return count_bytes(span.end - span.start), "dim"
    if slot and slot.field.name == "ClientHostAddress" and isinstance(value, bytes) and len(value) in (4, 16):
        return str(ip_address(value)), "value"
    if slot is None and span.type in INNER:
        if span.type != "array" or not isinstance(value, int):
            return "", "dim"
        return (counted(value, "element") if value else "empty"), "dim"
    if value is None:
        return "null", "dim"
    if slot and slot.array and not span.name.startswith("["):
        return _array(span, slot)
    if slot and slot.struct:
        return f"{count_bytes(span.end - span.start)}", "dim"
    return scalar(value, slot)


def _array(span: Span, slot: Slot) -> Piece:
    if isinstance(span.value, list):
        if not span.value:
            return "empty", "dim"
        texts = [scalar(item, slot)[0] for item in span.value]
        return "[" + ", ".join(texts) + "]", "value"
    count = span.value if isinstance(span.value, int) else 0
    return (counted(count, "element") if count else "empty"), "dim"


def scalar(value: object, slot: Slot | None) -> Piece:
    """One value with its meaning: an error's name, an enumerated value's, a time, a duration."""
    if isinstance(value, bool):
        return ("true" if value else "false"), "value"
    if isinstance(value, int):
        return _number(value, slot)
    if isinstance(value, str):
        return quoted(value), "value"
    if isinstance(value, UUID):
        return (uuids.to_text(value) if value.int else "zero uuid"), "value" if value.int else "dim"
    if isinstance(value, bytes):
        return _bytes(value), "value"
    if isinstance(value, float):
        return repr(value), "value"
    return clean(str(value)), "value"


def _number(value: int, slot: Slot | None) -> Piece:
    if slot is None:
        return str(value), "value"
    field = slot.field
    if field.error:
        return errors.label(value), "error" if value else "dim"
    if field.name in ("RequestApiKey", "ApiKey") and slot.type == "int16":
        name = builtin().name_of(value)
        return (f"{value} {name}" if name else str(value)), "value"
    for meaning in field.meanings:
        if meaning.value == value:
            return f"{value} {meaning.name}", "value"
    if slot.type == "int64" and ("Timestamp" in field.name or field.name.endswith("TimeMs")) and value > 10**10:
        return f"{value} · {moment(value)}", "value"
    if field.name.endswith("Ms") and 1000 <= value < 1 << 40:
        return f"{value} · {duration(value)}", "value"
    return str(value), "value"


def duration(ms: int) -> str:
    """Milliseconds in the unit that reads best: 30 s, 4.5 min, 7 d."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if ms >= size * (1 if unit == "s" else 2):
            return f"{round(ms / size, 2):g} {unit}"
    return f"{ms} ms"


def _bytes(value: bytes) -> str:
    if not value:
        return "empty"
    shown = count_bytes(len(value))
    try:
        text = value[: 4 * PREVIEW].decode("utf-8") if len(value) <= 4 * PREVIEW else value[:PREVIEW].decode("ascii")
    except UnicodeDecodeError:
        return shown
    if not text.isprintable():
        return shown
    return f"{shown} {quoted(text[:PREVIEW])}" + ("…" if len(value) > PREVIEW else "")


def type_cell(span: Span) -> str:
    """The type with its size: int32 · 4B, string (compact), tagged · 1B."""
    if span.type == TAGGED:
        return f"var · {span.own_end - span.start}B"
    if span.type == UNDECODED:
        return f"undecoded · {span.end - span.start}B"
    slot = span.slot
    if slot is None:
        fixed = span.type in SIZES
        return f"{span.type} · {span.end - span.start}B" if fixed or span.type == "bytes" else span.type
    return slot_type(slot, element=span.name.startswith("["))


def slot_type(slot: Slot, element: bool = False) -> str:
    """The type of a field, as pages and diagrams show it."""
    if element:
        compact = " (compact)" if slot.compact and slot.type in ("string", "bytes", "records") else ""
        return slot.type + compact
    return f"{slot.label} · {slot.size}B" if slot.size is not None else slot.label


def hex_bytes(data: bytes, start: int, end: int, hidden: bool = False) -> str:
    """Bytes as pairs; of hidden ones only that they are there."""
    return " ".join(["··"] * (end - start)) if hidden else data[start:end].hex(" ")
