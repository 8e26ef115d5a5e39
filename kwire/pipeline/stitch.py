"""Joins the surveys of captures that follow each other, with an ordinary Reader over parts and leftover segments.

Blocks of packets are the same as when the files are read whole (capture/source.py), so that holes are given up,
connections end and orphans are named at the same moments. In each block a connection is either read from segments or
continued with parts. A part that does not continue it exactly is read again from its file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from kwire.capture.connection import Connection, Endpoint
from kwire.capture.tcp import SYN, Key, Segments
from kwire.pipeline.connection_parts import (
    ConnectionPart,
    Edge,
    edge_behind,
    edge_of,
    follows,
    join,
    take_frames,
    take_segments,
)
from kwire.pipeline.duplicates import Origin, origin_of
from kwire.pipeline.leftover_segments import LeftoverSegments, pair, together
from kwire.pipeline.remote_bytes import fetch
from kwire.pipeline.splits import Split
from kwire.pipeline.survey import Fix, Survey
from kwire.session.api_versions import Kinds
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.reader import Join, Reader, Settings
from kwire.session.topics import Topics
from kwire.tables.build import Builder
from kwire.wire.columns import tally

Again = Callable[[Survey, set[Key]], Iterator[LeftoverSegments]]
Place = tuple[int, int]  # survey, block
Turn = tuple[int, int]  # a connection's first time (ns), its first packet in a block


@dataclass(slots=True)
class Stitched:
    """fixes: for each survey, in order. parts, again: number of parts, and of those read again."""

    fixes: list[dict[tuple[Key, int], Fix]] = field(default_factory=list)
    parts: int = 0
    again: int = 0


@dataclass(slots=True)
class _Pair:
    """Parts of a connection that begin in a group of blocks, in order, with the index of their survey; first: first
    packet."""

    first: int
    parts: list[tuple[int, ConnectionPart]] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """A file's surveys. starts: packets before each; left: segments to be read; kinds, brokers: APIs asked and brokers
    of parts, by block; begun: surveys reached; fit: whether a connection's parts in a split are accepted."""

    surveys: Sequence[Survey]
    name: str
    starts: list[int] = field(default_factory=list)
    fixes: list[dict[tuple[Key, int], Fix]] = field(default_factory=list)
    left: dict[Place, list[tuple[bool, Segments]]] = field(default_factory=lambda: defaultdict(list))
    kinds: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)
    brokers: dict[Place, list[Endpoint]] = field(default_factory=dict)
    begun: set[int] = field(default_factory=set)
    fit: dict[tuple[int, Key], bool] = field(default_factory=dict)
    known: dict[int, dict[Key, list[ConnectionPart]]] = field(default_factory=dict)

    def parts(self, at: int, key: Key) -> list[ConnectionPart]:
        """The parts of a split between two endpoints, in order."""
        if at not in self.known:
            found = self.known[at] = {}
            for part in self.surveys[at].parts:
                found.setdefault(pair(part.key), []).append(part)
        return self.known[at].get(key, [])


class Stitch:
    """add(surveys) takes the splits of a file, in order; finish() ends all connections. Rows go to the builder.

    origins: whether to collect the connections' origins.
    """

    def __init__(
        self, settings: Settings, builder: Builder, again: Again, names: dict[UUID, str] | None = None,
        tracking: bool = False, origins: bool = False,
    ) -> None:  # fmt: skip
        topics = Topics(self._unknown)
        topics.names.update(names or {})
        self.unknown = False
        self.reader = Reader("", settings, tracking=tracking, ordered=tracking, topics=topics, ended=self._ended)
        self.out = Stitched()
        self._builder, self._again, self._probe = builder, again, Kinds(settings.library)
        self._tells = origins
        self._before = 0  # packets in the splits before
        self.origins: list[Origin] = []
        self.doubted: set[Split] = set()  # splits with a connection that was wrongly taken for final

    def add(self, surveys: Sequence[Survey]) -> None:
        """Adds the splits of a file."""
        file = _File(surveys, Path(surveys[0].split.path).name)
        self.reader.places.begin(file.name, self._before)
        for at, survey in enumerate(surveys):
            file.starts.append(self._before)
            self._before += survey.packets
            for kind, block in survey.kinds.items():
                file.kinds.setdefault((at, block), []).append(kind)
            for broker, block in survey.brokers.items():
                file.brokers.setdefault((at, block), []).append(broker)
            self.topics.names.update(survey.names)
            self._builder.broker_ids.merge(survey.broker_ids)
            self._builder.clients.merge([deepcopy(client) for client in survey.clients])
            for secrets in survey.secrets:
                self.reader.settings.keys.add(secrets)
            for left in survey.leftover:
                file.left[len(file.starts) - 1, left.block].append((left.joined, left.segments))
        file.fixes = [{} for _ in surveys]
        self.out.fixes += file.fixes
        for group in _groups(surveys):
            self._group(group, file)

    def finish(self) -> None:
        """Nothing more will come."""
        for batch in self.reader.finish():
            self._builder.add(batch)

    def go_on(self, builder: Builder, again: Again) -> None:
        """Continues after unpickling, with another builder and another way to read segments again."""
        self._builder, self._again, self.out = builder, again, Stitched()

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_builder", "_again", "_probe")}
        return kept | {"reader": self.reader.snapshot()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.reader = Reader.resume(state["reader"], ended=self._ended, elsewhere=self._unknown)
        self._probe = Kinds(self.reader.settings.library)

    @property
    def topics(self) -> Topics:
        """The known topic names."""
        return self.reader.topics

    def _ended(self, connection: ConnectionInfo) -> None:
        self._builder.close(connection)
        origin = origin_of(connection) if self._tells else None
        if origin is not None:
            self.origins.append(origin)

    def _unknown(self, _: Topics, __: UUID) -> None:
        self.unknown = True

    def _read_again(self, at: int, keys: set[Key], file: _File) -> None:
        self.out.again += len(keys)
        for left in self._again(file.surveys[at], keys):
            file.left[at, left.block].append((left.joined, left.segments))

    def _group(self, group: list[Place], file: _File) -> None:
        """Reads the blocks of one window together."""
        reader, there = self.reader, set(group)
        for at in {at for at, _ in group} - file.begun:
            file.begun.add(at)
            if file.surveys[at].again:
                self._read_again(at, file.surveys[at].again, file)
        good = self._good(there, file)
        for place in group:
            for kind in file.kinds.pop(place, ()):
                reader.kinds.of(*kind).asked = True
            for broker in file.brokers.pop(place, ()):
                reader.brokers.add(broker)
        joins = [
            (self._turn(found), self._join(at, part, file, there))
            for found in good.values()
            for at, part in found.parts
        ]
        blocks = [file.surveys[at].blocks[block] for at, block in group]
        reader.name = file.name
        for joined, nows in enumerate(([block.now for block in blocks], [block.joined for block in blocks])):
            now = next((now for now in reversed(nows) if now is not None), None)
            if now is None:
                continue
            reader.connections.now = now
            taken = [
                (segments, file.starts[place[0]])
                for place in group
                for late, segments in file.left.get(place, ())
                if late == joined
            ]
            self._take(replace(together(taken), now=now), [] if joined else joins)
        for place in group:
            file.left.pop(place, None)

    def _good(self, there: set[Place], file: _File) -> dict[Key, _Pair]:
        """The connections that continue with the parts beginning in these blocks; other parts are read again."""
        pairs: dict[Key, _Pair] = {}
        surveys = sorted({at for at, _ in there})
        for at in surveys:
            for part in file.surveys[at].parts:
                key = pair(part.key)
                if (at, part.block) in there and file.fit.get((at, key), True):
                    fetch(part, file.surveys[at].split)
                    turn = file.starts[at] + part.turn
                    pairs.setdefault(key, _Pair(turn)).parts.append((at, part))
                    self.out.parts += 1
        read = {pair(key) for place in there for _, segments in file.left.get(place, ()) for key in segments.keys}
        again: dict[int, set[Key]] = defaultdict(set)
        good: dict[Key, _Pair] = {}
        for key, found in pairs.items():
            if (surveys[0], key) not in file.fit:  # all parts of these splits are accepted, or none
                every = [(at, part) for at in surveys for part in file.parts(at, key)]
                fit = key not in read and self._fit(every)
                file.fit |= {(at, key): fit for at in surveys}
            if file.fit[surveys[0], key]:
                good[key] = found
            else:
                for at, part in found.parts:
                    again[at].add(key)
                    if part.final:
                        self.doubted.add(file.surveys[at].split)
        for at, keys in again.items():
            self._read_again(at, keys, file)
        return good

    def _turn(self, found: _Pair) -> Turn:
        part = found.parts[0][1]
        known = None if part.opened else self.reader.connections.known(part.key)
        return part.exit.first_time if known is None else known[0].first_time, found.first

    def _take(self, segments: Segments, joins: list[tuple[Turn, Join]]) -> None:
        """Reads a block's segments and parts, in the order in which Connections.feed gives connections."""
        reader, connections = self.reader, self.reader.connections
        firsts = _turns(segments, lambda key: connections.known(key) is not None)
        waiting = sorted(joins, key=lambda known: known[0])
        fed = connections.feed(segments, sweep=False) if len(segments) else connections.patience()

        def turns() -> Iterator[Connection | Join]:
            for connection in fed:
                if not connection.finished:
                    turn = connection.first_time, firsts.get(pair(connection.key), 1 << 62)
                    while waiting and waiting[0][0] < turn:
                        yield waiting.pop(0)[1]
                yield connection
            for _, joining in waiting:
                yield joining
            yield from connections.sweep()

        reader.take(turns())
        for batch in reader.release():
            self._builder.add(batch)

    def _fit(self, parts: list[tuple[int, ConnectionPart]]) -> bool:
        """Whether all parts continue each other exactly, from the connection's present state."""
        if len({part.key for _, part in parts}) > 1:
            return False
        client = parts[0][1].key
        known = self.reader.connections.known(client)
        edge: Edge | None = None
        syns: tuple[int | None, int | None] | None = None
        if known is not None:
            connection, side = known
            conversation = self.reader.known(connection)
            if conversation is not None:
                edge = edge_of(conversation, side)
            syns = connection.streams[side].syn, connection.streams[1 - side].syn
        for _, part in parts:
            if part.opened:
                mine = part.exit.flows[0].syn, part.exit.flows[1].syn
                if syns is not None and (syns[0] is None or syns[0] == mine[0]):
                    return False  # same rule as capture/connections.py for a SYN that opens a new connection
                syns = mine
            elif edge is None or not follows(edge, part, self._probe, self.reader.settings.max_size):
                return False
            edge = edge_behind(edge, part)
        return True

    def _join(self, at: int, part: ConnectionPart, file: _File, there: set[Place]) -> Join:
        before, fixes = file.starts[at], file.fixes[at]

        def go() -> Conversation:
            reader, fixed = self.reader, (pair(part.key), part.number)
            bases, indexes = (0, 0), (0, 0)
            if part.opened:
                conversation = self._begin(part, before)
            else:
                known = reader.connections.known(part.key)
                assert known is not None
                connection, client = known
                conversation = reader.conversation(connection)
                if conversation.info.twin_of:
                    streams = connection.streams[client], connection.streams[1 - client]
                    take_segments(connection, client, part, (streams[0].position, streams[1].position), before)
                else:
                    bases, indexes = join(conversation, part, before)
            if conversation.info.twin_of:  # a second recording: its rows are left out
                if part.final and not part.twin:
                    self.doubted.add(file.surveys[at].split)
                return conversation
            fixes[fixed] = Fix(
                file.name,
                conversation.info.name,
                conversation.connection.epoch,
                bases,
                indexes,
                conversation.info.identity.said,
                before - file.starts[0],
            )
            for kind, block in part.kinds.items():
                if (at, block) in there:
                    reader.kinds.of(*kind).asked = True
                else:
                    file.kinds.setdefault((at, block), []).append(kind)
            self.topics.names.update(part.names)
            self._clients(conversation, part)
            return conversation

        return go

    def _begin(self, part: ConnectionPart, before: int) -> Conversation:
        """Opens a connection from a part, in place of an earlier one between the same endpoints."""
        reader = self.reader
        over, connection = reader.connections.begin(part.key)
        for old in over:
            reader.end(old, "the connection fell silent")
        client = 0 if connection.key == part.key else 1
        connection.opener = client
        conversation = reader.conversation(connection)
        take_segments(connection, client, part, (0, 0), before)
        if part.twin:
            conversation.info.twin_of = conversation.info.full_name
        else:
            conversation.compare((part.heads[client], part.heads[1 - client]))
        if not conversation.info.twin_of:
            conversation.known_from(client)
            reader.brokers.add(connection.ends[1 - client])
            take_frames(conversation, part, (0, 0), before)
        return conversation

    def _clients(self, conversation: Conversation, part: ConnectionPart) -> None:
        """Adds the part's clients, under the connection's final name and identity."""
        said = conversation.info.identity
        name = f"{conversation.info.capture} {conversation.info.name}"
        for client in part.clients:
            whose = replace(client, connections={name})
            if not part.opened:
                whose = replace(
                    whose, software=said.software, software_version=said.software_version,
                    mechanisms={said.mechanism} if said.mechanism else set(),
                    principals={said.principal} if said.principal else set(),
                )  # fmt: skip
            self._builder.clients.merge([whose])


def _turns(segments: Segments, known: Callable[[Key], bool]) -> dict[Key, int]:
    """The first packet of each connection in a block, without flows that Connections.feed skips (a late FIN or RST of
    an unknown connection)."""
    out: dict[Key, int] = {}
    flows, where = np.unique(segments.flow, return_index=True)
    counts = len(segments.keys)
    carries = tally(segments.flow, segments.length, counts) > 0
    opens = tally(segments.flow, segments.flags & SYN, counts) > 0
    opened = {pair(key) for key, yes in zip(segments.keys, opens.tolist(), strict=True) if yes}
    for flow, row in zip(flows.tolist(), where.tolist(), strict=True):
        key, number = segments.keys[flow], int(segments.number[row])
        if carries[flow] or pair(key) in opened or known(key):
            out[pair(key)] = min(number, out.get(pair(key), number))
    return out


def _groups(surveys: Sequence[Survey]) -> Iterator[list[Place]]:
    """Groups blocks of the same window of a file."""
    group: list[Place] = []
    last = None
    for at, survey in enumerate(surveys):
        for number, block in enumerate(survey.blocks):
            here = survey.split.path, block.window
            if group and here != last:
                yield group
                group = []
            group.append((at, number))
            last = here
    if group:
        yield group
