"""What a definition is: plain values, as the text files and the official JSON files both give them.

A Definition is a file: an API with its request and its response, or one message that travels elsewhere. A MessageSchema
has fields for all of its versions at once; codec/plan.py picks those of one. Nothing here reads or writes bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

OPEN = 32767  # "3+" runs to the highest int16

SCALARS = (
    *("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64"),
    *("uuid", "string", "bytes", "records"),
)


def snake(name: str) -> str:
    """OffsetForLeaderEpoch -> offset_for_leader_epoch: a message's name as a file's, or as a column's."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return spaced.lower()


class Versions(NamedTuple):
    """An inclusive range; low > high means none."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """Reads "3", "2-5", "4+" or "none". Raises ValueError for anything else."""
        if not text or text == "none":
            return NONE
        if text.endswith("+"):
            return cls(int(text[:-1]), OPEN)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == OPEN:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def __bool__(self) -> bool:
        return self.low <= self.high

    def each(self) -> range:
        return range(self.low, self.high + 1)

    def within(self, other: Versions) -> Versions:
        """The part that both share."""
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both if both else NONE

    def join(self, other: Versions) -> Versions:
        """The smallest range that holds both."""
        if not (self and other):
            return self or other
        return Versions(min(self.low, other.low), max(self.high, other.high))


NONE = Versions(0, -1)


class Renamed(NamedTuple):
    """An older name, and the first release that no longer uses it."""

    name: str
    before: str


class Meaning(NamedTuple):
    """One value of a field whose values are enumerated."""

    value: int
    name: str
    note: str


class Field(NamedTuple):
    """A field over all versions of its message. A NamedTuple, as there are thousands, made at start-up.

    type is one of SCALARS, the name of a struct, or either behind "[]". fields holds an inline struct's fields; a
    struct that stands on its own is found in MessageSchema.structs under its type's name.
    """

    name: str
    type: str
    versions: Versions
    nullable: Versions = NONE
    tagged: Versions = NONE
    tag: int | None = None
    default: str | None = None
    entity: str = ""
    error: bool = False
    secret: bool = False
    carrier: bool = False  # bytes that carry another message, which may hold secrets
    inflexible: bool = False  # keeps the non-compact form in flexible versions (the request header's client id)
    was: tuple[Renamed, ...] = ()
    note: str = ""
    meanings: tuple[Meaning, ...] = ()
    fields: tuple[Field, ...] = ()

    @property
    def element(self) -> str:
        return self.type[2:] if self.type[:2] == "[]" else self.type

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")

    @property
    def is_struct(self) -> bool:
        return self.element not in SCALARS


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct that several fields of a message share."""

    name: str
    versions: Versions
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """A request, a response, or a message that travels elsewhere (kind: header, data, metadata, coordinator-key, …)."""

    name: str
    kind: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    structs: tuple[Struct, ...] = ()

    def fields_of(self, field: Field) -> tuple[Field, ...]:
        """The fields inside a struct field."""
        if field.fields:
            return field.fields
        for struct in self.structs:
            if struct.name == field.element:
                return struct.fields
        return ()

    def walk(self) -> Iterator[tuple[str, Field]]:
        """Every field with its dotted path, parents first."""

        def inside(fields: tuple[Field, ...], path: str) -> Iterator[tuple[str, Field]]:
            for field in fields:
                yield path + field.name, field
                if field.is_struct:
                    yield from inside(self.fields_of(field), f"{path}{field.name}.")

        return inside(self.fields, "")


class Release(NamedTuple):
    """From this Kafka release on, these versions (NONE: gone); highest_stable is lower while the newest is in work."""

    release: str
    versions: Versions
    highest_stable: int

    @property
    def order(self) -> tuple[int, ...]:
        return release_order(self.release)


def release_order(release: str) -> tuple[int, ...]:
    """ "2.10" after "2.9"."""
    return tuple(int(part) for part in release.split("."))


class RelatedError(NamedTuple):
    name: str
    note: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A file of schema/apis or schema/data: facts, our words, and the messages."""

    name: str
    key: int | None  # the API key; for a record that names its type by number, that number; else None
    messages: tuple[MessageSchema, ...]  # request and response, or the one message
    area: str = ""
    since: str = ""
    kips: str = ""
    sender: str = ""
    listeners: str = ""
    was: tuple[Renamed, ...] = ()
    aka: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()
    differs: tuple[str, ...] = ()
    errors: tuple[RelatedError, ...] = ()
    about: str = ""
    trips: str = ""
    changes: tuple[tuple[int, str], ...] = ()

    @property
    def is_api(self) -> bool:
        return self.messages[0].kind == "request"
