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
from kwire.session.decoded import Bodies
from kwire.session.topics import Topics
from kwire.tables.arrow import mended
from kwire.tables.distinct_texts import distinct
from kwire.wire import uuids
from kwire.wire.columns import Ints

Mask = NDArray[np.bool_]
TOPICS = ("Topics", "TopicData", "Responses")
NOTHING = -1  # the number of what is null
NUMBERS = ("PartitionIndex", "Partition", "Index")


@dataclass(slots=True, eq=False)
class NamedPartitions:
    """Partitions of one side, a row each: the exchange, the numbers of group, topic and id (-1: none), the partition's
    number, and where in the columns of fields it stands, whose offsets count in buffer."""

    owner: Ints
    group: Ints
    topic: Ints
    ident: Ints
    number: Ints
    places: Ints
    fields: dict[str, Column]
    buffer: bytes

    def __len__(self) -> int:
        return len(self.owner)

    def only(self, chosen: Mask) -> NamedPartitions:
        """The rows that the mask chooses."""
        names = ("owner", "group", "topic", "ident", "number", "places")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})


@dataclass(slots=True, eq=False)
class NumberedTexts:
    """Texts by their numbers."""

    known: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    @property
    def array(self) -> pa.Array:
        return pa.array([mended(text) for text in self.known], pa.string())


@dataclass(slots=True, eq=False)
class PartitionNames:
    """of(bodies) finds the partitions of a side; what it gives numbers to is in groups, topics and idents. known: names
    of topics by id."""

    known: Topics
    groups: NumberedTexts = field(default_factory=NumberedTexts)
    topics: NumberedTexts = field(default_factory=NumberedTexts)
    idents: NumberedTexts = field(default_factory=NumberedTexts)

    def of(self, bodies: Bodies) -> NamedPartitions:
        """None of bodies that hold no partitions where Kafka's do."""
        body, owner, buffer = bodies.columns, bodies.rows, bodies.buffer
        group = np.full(len(body), NOTHING)
        groups = _list(body, "Groups")
        if groups is not None and isinstance(groups.flat, Structs):
            owner = owner.repeat(np.diff(groups.offsets))
            body = groups.flat
            group = self._texts(body, ("GroupId",), self.groups, buffer)
        topics = _list(body, *TOPICS)
        flat = topics.flat if topics is not None else None
        names = () if not isinstance(flat, Structs) else (name for name in flat.fields if name.startswith("Partition"))
        inner = _list(flat, *names) if isinstance(flat, Structs) else None
        fields: dict[str, Column] = {} if inner is None else {"PartitionIndex": inner.flat}
        if inner is not None and isinstance(inner.flat, Structs):
            fields = inner.flat.fields
        number = next((fields[name] for name in NUMBERS if name in fields), None)
        if topics is None or not isinstance(flat, Structs) or inner is None or not isinstance(number, Numbers):
            none = np.zeros(0, np.int64)
            return NamedPartitions(none, none, none, none, none, none, {}, buffer)
        within = np.arange(len(body)).repeat(np.diff(topics.offsets))
        parent = np.arange(len(flat)).repeat(np.diff(inner.offsets))
        topic, ident = self._topics(flat, buffer)
        found = NamedPartitions(
            owner[within][parent], group[within][parent], topic[parent], ident[parent],
            number.values.astype(np.int64), np.arange(len(parent)), fields, buffer,
        )  # fmt: skip
        return found if (found.topic >= 0).all() else found.only(found.topic >= 0)

    def _topics(self, flat: Structs, buffer: bytes) -> tuple[Ints, Ints]:
        """The numbers of names and ids; what has neither is passed over, as -1."""
        ident = flat.fields.get("TopicId")
        named = self._texts(flat, ("Name", "Topic"), self.topics, buffer)
        if not isinstance(ident, Slices) or ident.kind != "uuid":
            return named, np.full(len(flat), NOTHING)
        found, which = distinct(buffer, ident.starts, ident.lengths)
        names, idents = [], []
        for known in map(uuids.from_bytes, found):
            names.append(self.topics.number(self.known.name(known)) if known.int else NOTHING)
            idents.append(self.idents.number(uuids.to_text(known)) if known.int else NOTHING)
        by_id = np.array(names, np.int64)[which]
        unnamed = (named < 0) | ((named == self.topics.known.get("", NOTHING)) & (by_id >= 0))
        return np.where(unnamed, by_id, named), np.array(idents, np.int64)[which]

    def _texts(self, body: Structs, names: tuple[str, ...], words: NumberedTexts, buffer: bytes) -> Ints:
        """The numbers of texts; of null NOTHING."""
        column = next((body.fields[name] for name in names if name in body.fields), None)
        if not isinstance(column, Slices) or column.kind != "string":
            return np.full(len(body), NOTHING)
        found, which = distinct(buffer, column.starts, column.lengths, column.valid)
        numbers: Ints = np.array([words.number(text.decode("utf-8", "surrogateescape")) for text in found], np.int64)
        return np.append(numbers, NOTHING)[which]


def _list(body: Structs, *names: str) -> Lists | None:
    return next((column for name in names if isinstance(column := body.fields.get(name), Lists)), None)
