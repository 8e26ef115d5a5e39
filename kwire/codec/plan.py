"""The plan: a message at one version, as its readers and writers need it.

Fields that the version lacks are gone, tagged ones stand apart, and of every field is decided what depends on the
version: compact or not, nullable or not. annotate.py interprets the plan, values.py compiles it to code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kwire.errors import UnknownName
from kwire.schema.model import SCALARS, Field, MessageSchema
from kwire.wire import uuids
from kwire.wire.fixed import SIZES


class Slot(NamedTuple):
    """A field at one version. type is a scalar's name or "struct"; tag is None for a field that is not tagged."""

    name: str
    type: str
    array: bool
    nullable: bool
    compact: bool
    tag: int | None
    field: Field
    struct: StructPlan | None = None

    @property
    def label(self) -> str:
        """The type as diagrams and pages show it: int32, string (compact), []int32, array, struct; "?" for nullable."""
        mark = "?" if self.nullable else ""
        if self.array:
            return ("array" if self.struct else f"[]{self.type}") + mark
        compact = " (compact)" if self.compact and self.type in ("string", "bytes", "records") else ""
        return self.type + mark + compact

    @property
    def size(self) -> int | None:
        """Bytes on the wire when they are fixed, else None."""
        return None if self.array or self.nullable else SIZES.get(self.type)

    @property
    def length_byte(self) -> bool:
        """Whether the field begins with a compact length: a varint, nearly always of one byte."""
        return self.compact and (self.array or self.type in ("string", "bytes", "records"))

    @property
    def minimum(self) -> int:
        """The least number of bytes that this field takes, a tagged field's tag and size not counted."""
        if self.array or self.type in ("string", "bytes", "records"):
            return 1 if self.compact else 2 if self.type == "string" and not self.array else 4
        if self.struct:
            return 1 if self.nullable else self.struct.minimum
        return SIZES[self.type]

    @property
    def element_minimum(self) -> int:
        """The least number of bytes that an element of this array takes; 0 only for a struct without fields."""
        if self.struct:
            return self.struct.minimum
        return SIZES.get(self.type) or (1 if self.compact else 2 if self.type == "string" else 4)

    def default(self) -> object:
        """The value of the field when it is not given: the definition's, else the type's zero. Fresh at every call."""
        text = self.field.default
        if text == "null" or (text is None and self.nullable and self.type == "records"):
            return None
        if self.array:
            return []
        if self.struct:
            return {slot.name: slot.default() for slot in self.struct.slots}
        match self.type:
            case "string":
                return text or ""
            case "bytes" | "records":
                return b""
            case "bool":
                return text == "true"
            case "float64":
                return float(text or 0)
            case "uuid":
                return uuids.from_text(text) if text else UUID(int=0)
            case _:
                return int(text or "0", 0)


@dataclass(frozen=True, slots=True)
class StructPlan:
    """The fields of a struct in wire order, and its tagged ones by tag. A flexible struct ends in a tag section."""

    name: str
    slots: tuple[Slot, ...]
    tagged: dict[int, Slot]
    flexible: bool
    minimum: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A message at one version."""

    message: MessageSchema
    version: int
    root: StructPlan

    @property
    def title(self) -> str:
        return f"{self.message.name} v{self.version}"

    @property
    def flexible(self) -> bool:
        return self.root.flexible


def compile_plan(message: MessageSchema, version: int) -> Plan:
    """Builds the plan. Raises UnknownName for a version that the message does not have."""
    require_version(message, version)
    return Plan(message, version, _struct(message, message.name, message.fields, version, version in message.flexible))


def require_version(message: MessageSchema, version: int) -> None:
    """Raises UnknownName when the message does not have the version."""
    if version not in message.versions:
        raise UnknownName("version", f"{version} of {message.name} (it has {message.versions})")


def layout_starts(message: MessageSchema) -> list[int]:
    """The versions that begin a layout: from one of them up to the next, all versions have the same fields."""
    starts = {message.versions.low, message.flexible.low}
    for _, field in message.walk():
        for low, high in (field.versions, field.nullable, field.tagged):
            if low <= high:
                starts.add(low)
                starts.add(high + 1)
    return sorted(start for start in starts if start in message.versions)


def _struct(message: MessageSchema, name: str, fields: tuple[Field, ...], version: int, flexible: bool) -> StructPlan:
    slots: list[Slot] = []
    tagged: dict[int, Slot] = {}
    for field in fields:
        low, high = field.versions
        if field.tag is not None and version in field.tagged:
            tagged[field.tag] = _slot(message, field, version, flexible, field.tag)
        elif low <= version <= high:
            slots.append(_slot(message, field, version, flexible, None))
    minimum = sum([slot.minimum for slot in slots]) + flexible
    return StructPlan(name, tuple(slots), dict(sorted(tagged.items())) if tagged else tagged, flexible, minimum)


def _slot(message: MessageSchema, field: Field, version: int, flexible: bool, tag: int | None) -> Slot:
    kind, struct = field.element, None
    if kind not in SCALARS:
        struct = _struct(message, kind, message.fields_of(field), version, flexible)
        kind = "struct"
    low, high = field.nullable
    compact = flexible and not field.inflexible
    return Slot(field.name, kind, field.is_array, low <= version <= high, compact, tag, field, struct)
