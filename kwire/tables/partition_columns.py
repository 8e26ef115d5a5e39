"""Partitions in bodies, as columns: which exchange names which partition of which topic, in requests and in responses.

Topics' names, their ids and groups' names become small numbers, the same on both sides, so that a partition of an
exchange is a number of its own: what was asked and what was answered of it meet where these numbers are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.codec.columnar import Column, Lists, Numbers, Slices, Structs
from kwire.session.topics import Topics
from kwire.tables.arrow import mended
from kwire.tables.distinct_texts import distinct
from kwire.wire import uuids
from kwire.wire.columns import Ints

Mask = NDArray[np.bool_]
TOPICS = ("Topics", "TopicData", "Responses")
NOTHING = -1  # the number of what is null
NUMBERS = ("PartitionIndex", "Partition", "Index")


class Strange(Exception):
    """Bodies that are not of the form that is known; they are read one by one."""


@dataclass(slots=True, eq=False)
class Named:
    """Partitions of one side, a row each: the exchange, the numbers of group, topic and id (-1: none), the partition's
    number, and where in the columns of fields it stands."""

    owner: Ints
    group: Ints
    topic: Ints
    ident: Ints
    number: Ints
    places: Ints
    fields: dict[str, Column]

    def __len__(self) -> int:
        return len(self.owner)

    def only(self, chosen: Mask) -> Named:
        """The rows that the mask chooses."""
        names = ("owner", "group", "topic", "ident", "number", "places")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})


@dataclass(slots=True, eq=False)
class Words:
    """Texts by their numbers."""

    known: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    @property
    def array(self) -> pa.Array:
        return pa.array([mended(text) for text in self.known], pa.string())


@dataclass(slots=True, eq=False)
class Names:
    """of(body) finds the partitions of a side; what it gives numbers to is in groups, topics and idents."""

    buffer: bytes
    known: Topics
    groups: Words = field(default_factory=Words)
    topics: Words = field(default_factory=Words)
    idents: Words = field(default_factory=Words)

    def of(self, body: Structs) -> Named:
        """Raises Strange."""
        owner = np.arange(len(body))
        group = np.full(len(body), -1)
        if "Groups" in body.fields:
            groups = _list(body, "Groups")
            owner = owner.repeat(np.diff(groups.offsets))
            body = _structs(groups.flat)
            group = self._texts(_texts(body, "GroupId"), self.groups)
        topics = _list(body, *TOPICS)
        within = np.arange(len(body)).repeat(np.diff(topics.offsets))
        flat = _structs(topics.flat)
        topic, ident = self._topics(flat)
        inner = _list(flat, *(name for name in flat.fields if name.startswith("Partition")))
        parent = np.arange(len(flat)).repeat(np.diff(inner.offsets))
        fields: dict[str, Column] = {"PartitionIndex": inner.flat}
        if isinstance(inner.flat, Structs):
            fields = inner.flat.fields
        number = next((fields[name] for name in NUMBERS if name in fields), None)
        if not isinstance(number, Numbers):
            raise Strange
        found = Named(
            owner[within][parent], group[within][parent], topic[parent], ident[parent],
            number.values.astype(np.int64), np.arange(len(parent)), fields,
        )  # fmt: skip
        return found if (topic >= 0).all() else found.only(found.topic >= 0)

    def _topics(self, flat: Structs) -> tuple[Ints, Ints]:
        """The numbers of names and ids; what has neither is passed over, as -1."""
        none = np.full(len(flat), -1)
        if "TopicId" not in flat.fields:
            return self._texts(_texts(flat, "Name", "Topic"), self.topics), none
        ident = flat.fields["TopicId"]
        named = "Name" in flat.fields or "Topic" in flat.fields
        if named or not isinstance(ident, Slices) or ident.kind != "uuid":
            raise Strange
        found, which = distinct(self.buffer, ident.starts, ident.lengths)
        names, idents = [], []
        for known in map(uuids.from_bytes, found):
            names.append(self.topics.number(self.known.name(known)) if known.int else NOTHING)
            idents.append(self.idents.number(uuids.to_text(known)) if known.int else NOTHING)
        return np.array(names, np.int64)[which], np.array(idents, np.int64)[which]

    def _texts(self, column: Slices, words: Words) -> Ints:
        """The numbers of texts; of null NOTHING."""
        found, which = distinct(self.buffer, column.starts, column.lengths, column.valid)
        numbers: Ints = np.array([words.number(text.decode("utf-8", "surrogateescape")) for text in found], np.int64)
        return np.append(numbers, NOTHING)[which]


def _list(body: Structs, *names: str) -> Lists:
    found = [column for name in names if isinstance(column := body.fields.get(name), Lists)]
    if len(found) != 1:
        raise Strange
    return found[0]


def _structs(column: Column) -> Structs:
    if not isinstance(column, Structs) or column.valid is not None:
        raise Strange
    return column


def _texts(body: Structs, *names: str) -> Slices:
    found = [column for name in names if isinstance(column := body.fields.get(name), Slices)]
    if len(found) != 1 or found[0].kind != "string":
        raise Strange
    return found[0]
