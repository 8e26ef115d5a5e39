"""What the exchanges of a batch are about, read from columns; exchanges about the same things share one About.

The schema's entityType marks the fields that count. Equal bodies of a kind are read once; from the others the marked
fields are read as columns and turned into events (rows of integers). Requests with equal events share one About. The
few APIs with rules of their own (about.py) are read one by one, each distinct body once. Fetch sessions are followed in
row order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from kwire.codec.columnar import Column, Lists, Numbers, Slices, Structs
from kwire.codec.columnar_values import decode_messages
from kwire.codec.plan import StructPlan
from kwire.schema.keys import FETCH, PRODUCE
from kwire.session.about import EXCHANGE_RULES, RULES, About, Abouts, Says, partitions_in, says
from kwire.session.quorum import METADATA_TOPIC
from kwire.session.topics import FINAL, NONE, Topics
from kwire.wire import uuids
from kwire.wire.columns import Ints, places_of, repeat

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.batch import ExchangeBatch

NOTHING = 0  # the index of the empty About
LARGE = 4096  # bytes; larger bodies are not compared with each other
BARE = -1  # the partition of an event that names a topic alone


def abouts_of(batch: ExchangeBatch, kinds: frozenset[int] | None = None, topics: Topics | None = None) -> Abouts:
    """What each exchange of a batch is about. kinds: indexes into batch.kinds, exchanges of others get an empty About;
    topics: resolves topic ids, None: each connection's own. The result without either is kept in the batch."""
    if kinds is not None or topics is not None:
        return _Reading(batch, kinds, topics).run()
    if batch.told is None:
        batch.told = _Reading(batch, None, None).run()
    return batch.told


def distinct_bodies(buffer: bytes, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Of bodies that are equal the index of the first, and for each body which of these it is like. Where one is large,
    each is taken for distinct."""
    if int((ends - starts).max()) > LARGE:
        return np.arange(len(starts)), np.arange(len(starts))
    known: dict[bytes, int] = {}
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    of = np.array([known.setdefault(buffer[low:high], len(known)) for low, high in spans], np.int64)
    first = np.empty(len(known), np.int64)
    first[of[::-1]] = np.arange(len(of) - 1, -1, -1)  # of equal ones the first is written last
    return first, of


def _answer(batch: ExchangeBatch, row: int) -> dict[str, Any] | None:
    return batch[row].answer()


@dataclass(eq=False)
class _Reading:
    batch: ExchangeBatch
    kinds: frozenset[int] | None
    topics: Topics | None
    values: list[About] = field(default_factory=lambda: [About()])
    sessions: dict[int, tuple[object, int]] = field(default_factory=dict)  # by id() of the value's object

    def run(self) -> Abouts:
        batch = self.batch
        which = np.zeros(len(batch), np.int64)
        request = batch.request
        plain = request.there & (request.body >= 0) & ~batch.token
        for row in np.flatnonzero(~plain).tolist() if self.kinds is None else ():
            which[row] = self._single(row)
        for number, (kind, rows) in enumerate(zip(batch.kinds, places_of(batch.kind, len(batch.kinds)), strict=True)):
            rows = rows[plain[rows]]
            if kind is None or not len(rows) or not kind.supported or not (self.kinds is None or number in self.kinds):
                continue
            if kind.key in RULES or _marked(kind.plan("request").root):
                which[rows] = self._of_kind(kind, rows)
        for row, known in batch.abouts.items() if self.kinds is None else ():
            which[row] = self._add(known)
        return Abouts(self.values, which)

    def _single(self, row: int) -> int:
        known = self.batch.abouts.get(row)
        return self._add(self.batch[row].about if known is None else known)

    def _add(self, value: About) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def _of_kind(self, kind: Kind, rows: Ints) -> Ints:
        """The indexes into values for these requests, all of one kind."""
        batch, side = self.batch, self.batch.request
        starts, ends = side.body[rows], side.end[rows]
        first, of = rows, np.arange(len(rows))
        if kind.key not in (PRODUCE, FETCH):
            one_of_each, of = distinct_bodies(batch.buffer, starts, ends)
            first = rows[one_of_each]
        if kind.key in RULES and kind.key != FETCH:
            if kind.key in EXCHANGE_RULES:
                first, of = rows, np.arange(len(rows))
            return np.array([self._single(row) for row in first.tolist()], np.int64)[of]
        found = np.zeros(len(first), np.int64)
        starts, ends = side.body[first], side.end[first]
        read = decode_messages(kind.plan("request"), kind.codecs[0], batch.buffer, starts, ends, kind.thresholds)
        topics = self.topics or batch.connections[0].topics
        events = Events(read.buffer, topics, kind.key)
        events.struct(read.columns, kind.plan("request").root, np.arange(len(read.columns)))
        same_events: dict[bytes, int] = {}
        places = []
        for key in events.keys(len(read.columns)):
            place = same_events.get(key)
            if place is None:
                place = same_events[key] = self._add(events.about(key)) if key else NOTHING
            places.append(place)
        if kind.key == FETCH:
            places = self._sessions(read.columns, topics, first[read.there], places)
            places = self._quorums(first[read.there], places)
        found[read.there] = places
        return found[of]

    def _sessions(self, columns: Structs, topics: Topics, rows: Ints, places: list[int]) -> list[int]:
        """Fetches of sessions are about all that the session holds (KIP-227)."""
        ident, epoch = columns.fields.get("SessionId"), columns.fields.get("SessionEpoch")
        forgotten = columns.fields.get("ForgottenTopicsData")
        if not isinstance(ident, Numbers) or not isinstance(epoch, Numbers) or not isinstance(forgotten, Lists):
            return places
        batch, connection = self.batch, self.batch.connection[rows].tolist()
        drops = np.diff(forgotten.offsets).tolist()
        out, known = list(places), self.sessions
        cells = zip(rows.tolist(), connection, ident.values.tolist(), epoch.values.tolist(), drops, strict=True)
        for at, (row, owner, session, turn, dropped) in enumerate(cells):
            if turn == FINAL:
                continue
            value = self.values[out[at]]
            broker = batch.connections[owner].ends[1]
            held = topics.held(broker, session) if session != NONE and not value.topics and not dropped else None
            if held is None:
                body: dict[str, Any] = {"SessionId": session, "SessionEpoch": turn}
                if dropped and (request := batch[row].request) is not None:
                    body = request.body() or {}
                held = topics.fetched(broker, body, value.topics, partial(_answer, batch, row))
            if held is None:
                continue
            place = known.get(id(held))
            if place is None:
                shown = About(topics=held, groups=value.groups, words=[*value.words, f"session {session}"])
                place = known[id(held)] = held, self._add(shown)
            out[at] = place[1]
        return out

    def _quorums(self, rows: Ints, places: list[int]) -> list[int]:
        """Of Fetches of the metadata topic the answers tell too (KIP-595)."""
        of = {place for place in set(places) if METADATA_TOPIC in self.values[place].topics}
        if not of:
            return places
        return [self._single(row) if at in of else at for row, at in zip(rows.tolist(), places, strict=True)]


class Events:
    """What marked fields say, as rows of four numbers: whose it is, what it says, and two values.

    struct() collects them from columns, in the order of the fields; keys() gives those of each body as bytes, which are
    equal where what they say is; about() makes an About of such bytes."""

    def __init__(self, buffer: bytes, topics: Topics, key: int) -> None:
        self._buffer, self._topics, self._key = buffer, topics, key
        self._names: dict[bytes, int] = {}
        self._texts: list[str] = []
        self._found: list[Ints] = []

    def struct(self, columns: Structs, plan: StructPlan, owner: Ints) -> None:
        """Those of a struct and all in it. owner: which body each of its values is of."""
        if columns.valid is not None:
            owner = owner[columns.valid]
        topic = np.full(len(owner), -1)
        inside: list[tuple[Ints, Ints]] = []  # the partitions of each struct: whose they are, and their numbers
        for slot in plan.slots:
            column, what, numbered = columns.fields[slot.name], says(slot), partitions_in(slot)
            if what == Says.TOPIC and isinstance(column, Slices):
                topic = self._numbers(column)
            elif what == Says.TOPIC_ID and isinstance(column, Slices):
                topic = np.where(topic >= 0, topic, self._idents(column))
            elif what in (Says.GENERATION, Says.EPOCH) and isinstance(column, Numbers):
                self._add(owner, what, column.values.astype(np.int64))
            elif what is not None:
                self._names_in(column, owner, what)
            if numbered is not None and isinstance(column, Lists):
                held = column.flat.fields[numbered] if isinstance(column.flat, Structs) else column.flat
                assert isinstance(held, Numbers)
                inside.append((repeat(np.arange(len(owner)), np.diff(column.offsets)), held.values.astype(np.int64)))
            if slot.struct is not None:
                self._within(column, slot.struct, owner)
        self._topics_of(owner, topic, inside)

    def _within(self, column: Column, plan: StructPlan, owner: Ints) -> None:
        if isinstance(column, Lists) and isinstance(column.flat, Structs):
            self.struct(column.flat, plan, repeat(owner, np.diff(column.offsets)))
        elif isinstance(column, Structs):
            self.struct(column, plan, owner)

    def _topics_of(self, owner: Ints, topic: Ints, inside: list[tuple[Ints, Ints]]) -> None:
        """The topics that structs name, with their partitions behind each."""
        if not (topic >= 0).any():
            return
        at = np.concatenate([np.arange(len(owner)), *(which for which, _ in inside)])
        partition = np.concatenate([np.full(len(owner), BARE), *(numbers for _, numbers in inside)])
        order = np.argsort(at, kind="stable")
        at, partition = at[order], partition[order]
        named = topic[at] >= 0
        at, partition = at[named], partition[named]
        self._add(owner[at], Says.TOPIC, topic[at], partition)

    def _names_in(self, column: Column, owner: Ints, what: int) -> None:
        if isinstance(column, Lists):
            owner, column = repeat(owner, np.diff(column.offsets)), column.flat
        numbers = self._numbers(column, empty=what == Says.MEMBER)
        there = numbers >= 0
        self._add(owner[there], what, numbers[there], BARE)

    def _numbers(self, column: Column, empty: bool = False) -> Ints:
        """The numbers of texts; -1 of null and, unless empty ones count, of what is empty."""
        assert isinstance(column, Slices)
        buffer, number = self._buffer, self._number
        spans = zip(column.starts.tolist(), (column.starts + column.lengths).tolist(), strict=True)
        found = np.array([number(buffer[low:high]) for low, high in spans], np.int64)
        there = np.ones(len(found), bool) if column.valid is None else column.valid
        return np.where(there & ((column.lengths > 0) | empty), found, -1)

    def _number(self, name: bytes) -> int:
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = len(self._texts)
            self._texts.append(name.decode("utf-8", "surrogateescape"))
        return known

    def _idents(self, column: Slices) -> Ints:
        """The numbers of the names of topics' ids; -1 of the id that is none."""
        known: dict[bytes, int] = {}
        out = []
        for start in column.starts.tolist():
            raw = self._buffer[start : start + 16]
            if raw not in known:
                ident = uuids.from_bytes(raw)
                name = self._topics.name(ident).encode("utf-8", "surrogateescape") if ident.int else b""
                known[raw] = self._number(name) if name else -1
            out.append(known[raw])
        return np.array(out, np.int64)

    def _add(self, owner: Ints, what: int, value: Ints, other: Ints | int = 0) -> None:
        if len(owner):
            rows = np.empty((len(owner), 4), np.int64)
            rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3] = owner, what, value, other
            self._found.append(rows)

    def keys(self, count: int) -> list[bytes]:
        """The events of each of so many bodies."""
        if not self._found:
            return [b""] * count
        rows = np.concatenate(self._found)
        owner = rows[:, 0]
        if (owner[1:] < owner[:-1]).any():
            rows = rows[np.argsort(owner, kind="stable")]
        ends = (np.searchsorted(rows[:, 0], np.arange(count + 1)) * EVENT).tolist()
        data = np.ascontiguousarray(rows[:, 1:]).tobytes()
        return [data[low:high] for low, high in pairwise(ends)]

    def about(self, key: bytes) -> About:
        """What these events say."""
        out = About()
        for what, value, partition in np.frombuffer(key, np.int64).reshape(-1, 3).tolist():
            out.add(what, value if what in (Says.GENERATION, Says.EPOCH) else self._texts[value], self._key)
            if what == Says.TOPIC and partition != BARE:
                out.topics[self._texts[value]].append(partition)
        return out


EVENT = 24  # bytes of an event but for whose it is


def _marked(plan: StructPlan) -> bool:
    """Whether a struct, or one in it, has fields that say what it is about."""
    return any(says(slot) is not None or (slot.struct is not None and _marked(slot.struct)) for slot in plan.slots)
