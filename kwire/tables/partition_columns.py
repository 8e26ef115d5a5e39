"""Partitions in bodies as columns: exchange, group, topic and partition, for requests and responses alike.

Group names, topic names and topic ids become integers that are the same on both sides, so that request and response
rows of a partition can be joined by equal integers.
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
    """Partitions of one side, one row each. owner: row of the exchange in the batch; group, topic, ident: numbers given
    by PartitionNames (-1: none); number: the partition; places: row in the columns of fields, whose offsets count in
    buffer."""

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
        """The rows where chosen is True."""
        names = ("owner", "group", "topic", "ident", "number", "places")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})


@dataclass(slots=True, eq=False)
class NumberedTexts:
    """Numbers texts from 0, in order of appearance."""

    known: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    @property
    def array(self) -> pa.Array:
        return pa.array([mended(text) for text in self.known], pa.string())


@dataclass(slots=True, eq=False)
class PartitionNames:
    """of(bodies) finds the partitions of a side and numbers their groups, topics and topic ids. known: topic names by
    id."""

    known: Topics
    groups: NumberedTexts = field(default_factory=NumberedTexts)
    topics: NumberedTexts = field(default_factory=NumberedTexts)
    idents: NumberedTexts = field(default_factory=NumberedTexts)

    def of(self, bodies: Bodies) -> NamedPartitions:
        """The partitions of these bodies; no rows for bodies without a partition array."""
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
        """For each topic struct the numbers of its name and its id; -1 where it has none."""
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
        """The numbers of a text field; NOTHING for null."""
        column = next((body.fields[name] for name in names if name in body.fields), None)
        if not isinstance(column, Slices) or column.kind != "string":
            return np.full(len(body), NOTHING)
        found, which = distinct(buffer, column.starts, column.lengths, column.valid)
        numbers: Ints = np.array([words.number(text.decode("utf-8", "surrogateescape")) for text in found], np.int64)
        return np.append(numbers, NOTHING)[which]


def _list(body: Structs, *names: str) -> Lists | None:
    return next((column for name in names if isinstance(column := body.fields.get(name), Lists)), None)
