"""Captures that arrive one after the other: the state between two batches, and what a batch makes final.

Files are stitched in time order, each once no earlier one is expected any more. The state holds the surveys of waiting
files, and the stitch of each chain of files with its open connections. A file that comes too late is read by itself,
and the table quality says so. Messages of a capture point come in order, so they do not wait; each is a file with the
point's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from kwire.analyze.clients import Clients
from kwire.capture.tcp import Key
from kwire.pipeline.capture_quality import of_chain, of_file
from kwire.pipeline.leftover_segments import LeftoverSegments, leftover_of
from kwire.pipeline.plan import TaskPlan, placed, span, task_of
from kwire.pipeline.saved_state import loaded, saved
from kwire.pipeline.stitch import Stitch
from kwire.pipeline.stores import Stores
from kwire.pipeline.survey import LearnedNames, Survey
from kwire.session.broker_ids import BrokerIds
from kwire.session.reader import Settings
from kwire.session.reading import JOIN, Reading
from kwire.tables.build import BodyTexts, Builder

LATENESS = 60_000_000_000  # ns of the captures' own time
SEEN = 1000  # last messages of a point that are remembered, to detect repeats


@dataclass(slots=True)
class Chain:
    """Files that follow each other. last: time of the last packet, ns; point: their capture point."""

    last: int
    stitch: Stitch
    unread: dict[str, int] = field(default_factory=dict)
    point: str | None = None


@dataclass(slots=True)
class Heard:
    """A capture point that sends messages: time of the last one (ns), digests of the last SEEN ones."""

    last: int = 0
    digests: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class StreamState:
    """The state between batches. latest: time of the latest packet; released: begin of the latest stitched file; names:
    topic names; heard: points that send messages."""

    waiting: list[list[Survey]] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    clients: Clients = field(default_factory=Clients)
    latest: int = 0
    released: int = 0
    names: dict[UUID, str] = field(default_factory=dict)
    broker_ids: BrokerIds = field(default_factory=BrokerIds)
    heard: dict[str, Heard] = field(default_factory=dict)

    def hear(self, point: str, digest: bytes, time: int, most: int = SEEN) -> bool:
        """Takes a message, sent at time (ns); returns whether it is new, not a repeat of one of the last most."""
        heard = self.heard.setdefault(point, Heard())
        heard.last = max(heard.last, time)
        if digest in heard.digests:
            return False
        heard.digests.append(digest)
        del heard.digests[:-most]
        return True

    def saved(self) -> bytes:
        """The state as bytes, for load."""
        return saved(self)


def load(data: bytes, where: str = "", stores: Stores | None = None) -> StreamState:
    """The state from saved(), read from where. stores: file systems of the files that wait. Raises OutputError if
    another version wrote it and it does not fit."""
    state = loaded(data, where)
    assert isinstance(state, StreamState)
    for made in (made for surveys in state.waiting for made in surveys):
        made.split = replace(made.split, store=(stores or Stores()).of(made.split.path))
    return state


@dataclass(slots=True)
class Advance:
    """Processes a batch. in_order: files come in order, those of a capture point under its name."""

    names: Sequence[str]
    settings: Settings
    bodies: BodyTexts | None = None
    lateness: int = LATENESS
    window: int | None = None
    in_order: bool = False

    def by(self, state: StreamState, files: Iterable[list[Survey]], final: bool = False) -> TaskPlan:
        """Adds files to the state and returns what became final. final: nothing more will come, so everything is
        stitched and all connections end."""
        plan = TaskPlan()
        builder = Builder(self.names, lambda name, batch: plan.rows.append((name, batch)), self.bodies, whole=False)
        builder.clients, builder.broker_ids = state.clients, state.broker_ids
        for chain in state.chains:
            chain.stitch.go_on(builder, self._again)
        for surveys in files:
            if surveys[0].error is not None:
                plan.failed[surveys[0].split.path] = surveys[0].error
                builder.remark(Path(surveys[0].split.path).name, "damaged", surveys[0].error)
                continue
            state.waiting.append(surveys)
            state.latest = max(state.latest, span(surveys)[1])
            for part in (part for made in surveys for part in made.parts):
                state.names.update(part.names)
            for made in surveys:
                state.broker_ids.merge(made.broker_ids)
        readers = []
        for surveys in self._released(state, final):
            chain = self._stitch(state, surveys, builder, plan)
            readers.append(chain.stitch.reader)
        over = [chain for chain in state.chains if final or self._over(state, chain)]
        for chain in over:
            self._finish(chain, builder, final)
            state.chains.remove(chain)
            if chain.stitch.reader not in readers:
                readers.append(chain.stitch.reader)
        for surveys in state.waiting:
            for made in surveys:
                made.rows = False  # they are made when the file is stitched
        reading = Reading([], self.settings)
        reading.readers = readers
        builder.finish(reading)
        plan.names, plan.exchanges = LearnedNames(dict(state.names), state.broker_ids), builder.exchanges
        return plan

    def _again(self, made: Survey, keys: set[Key]) -> Iterator[LeftoverSegments]:
        return leftover_of(placed(made), self.settings, keys, self.window)

    def _released(self, state: StreamState, final: bool) -> list[list[Survey]]:
        """Takes out the files that need not wait any longer, in order."""
        if self.in_order:
            ready, state.waiting = state.waiting, []
            return ready
        ready = [made for made in state.waiting if final or state.latest - span(made)[1] >= self.lateness]
        state.waiting = [made for made in state.waiting if not any(made is other for other in ready)]
        return sorted(ready, key=lambda made: (*span(made), made[0].split.path))

    def _stitch(self, state: StreamState, surveys: list[Survey], builder: Builder, plan: TaskPlan) -> Chain:
        first, last = span(surveys)
        point = Path(surveys[0].split.path).name if self.in_order else None
        late = point is None and first < state.released
        known = next((chain for chain in state.chains if self._goes_on(chain, point, first)), None)
        if late or known is None:
            stitch = Stitch(self.settings, builder, self._again, state.names, tracking=builder.tracking)
            known = Chain(last, stitch, point=point)
            state.chains.append(known)
        if late:
            builder.remark(Path(surveys[0].split.path).name, "late", "came after what followed it was read")
        state.released = max(state.released, first)
        known.last = max(known.last, last)
        known.stitch.topics.names.update(state.names)
        before = len(known.stitch.out.fixes)
        known.stitch.add(surveys)
        fixes = known.stitch.out.fixes[before:]
        plan.tasks += [task_of(made, found) for made, found in zip(surveys, fixes, strict=True) if found]
        plan.packets += sum(made.packets for made in surveys)
        plan.parts += sum(len(made.parts) for made in surveys)
        of_file(builder, surveys, known.unread)
        state.names.update(known.stitch.topics.names)
        return known

    @staticmethod
    def _goes_on(chain: Chain, point: str | None, first: int) -> bool:
        """Whether a file continues a chain."""
        return chain.point == point and (point is not None or 0 <= first - chain.last <= JOIN)

    def _over(self, state: StreamState, chain: Chain) -> bool:
        """Whether no file can continue the chain any more. For points, sending times decide, since their clocks may
        differ."""
        if chain.point is not None:
            last = max(heard.last for heard in state.heard.values())
            return last - state.heard[chain.point].last > JOIN + self.lateness
        return state.latest - chain.last > JOIN + self.lateness and all(
            not 0 <= span(made)[0] - chain.last <= JOIN for made in state.waiting
        )

    def _finish(self, chain: Chain, builder: Builder, final: bool) -> None:
        reader = chain.stitch.reader
        if not final:
            for connection in reader.open_connections:
                if connection.is_kafka and not connection.tcp.closed:
                    builder.given_up(connection, "its rest did not come")
        chain.stitch.finish()
        of_chain(builder, reader, chain.unread)
