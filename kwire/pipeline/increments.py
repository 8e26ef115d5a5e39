"""Captures that come one after the other: what waits between two batches, and what a batch makes final.

Files are stitched in the order of their times, each when it is old enough that none before it can still come. What is
between them is kept: surveys of files that wait, and the stitch of each chain of files with its open connections.
A file that comes later than that is read by itself, and the table quality says so.
What comes in order by itself waits for nothing: the messages of a capture point, each a file of the point's name.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from kwire.analyze.clients import Clients
from kwire.capture.tcp import Key
from kwire.pipeline.capture_quality import of_chain, of_file
from kwire.pipeline.leftover_segments import LeftoverSegments, leftover_of
from kwire.pipeline.plan import TaskPlan, placed, span, task_of
from kwire.pipeline.stitch import Stitch
from kwire.pipeline.survey import Survey
from kwire.session.reader import Settings
from kwire.session.reading import JOIN, Reading
from kwire.tables.build import BodyTexts, Builder

LATENESS = 60_000_000_000  # ns of the captures' own time
SEEN = 1000  # messages of a point among which one that is sent again is known


@dataclass(slots=True)
class Chain:
    """Files that follow each other. last: when the last one's last packet came; point: that they are all of."""

    last: int
    stitch: Stitch
    unread: dict[str, int] = field(default_factory=dict)
    point: str | None = None


@dataclass(slots=True)
class Heard:
    """Of a point that sends messages: when it sent the last one, and the digests of the last ones."""

    last: int = 0
    digests: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class StreamState:
    """What is kept between batches. latest: the latest packet seen; released: when the latest file began that was
    stitched; names: topics' names; heard: of points that send messages."""

    waiting: list[list[Survey]] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    clients: Clients = field(default_factory=Clients)
    latest: int = 0
    released: int = 0
    names: dict[UUID, str] = field(default_factory=dict)
    heard: dict[str, Heard] = field(default_factory=dict)

    def hear(self, point: str, digest: bytes, time: int) -> bool:
        """A message came, sent at a time in ns; whether it is none of the point's last ones that was sent again."""
        heard = self.heard.setdefault(point, Heard())
        heard.last = max(heard.last, time)
        if digest in heard.digests:
            return False
        heard.digests.append(digest)
        del heard.digests[:-SEEN]
        return True

    def saved(self) -> bytes:
        """As load takes it."""
        return pickle.dumps(self)


def load(data: bytes) -> StreamState:
    """What saved gave: only what kwire wrote itself."""
    state = pickle.loads(data)
    assert isinstance(state, StreamState)
    return state


@dataclass(slots=True)
class Advance:
    """A batch. in_order: files come as they follow each other, those of a capture point under its name."""

    names: Sequence[str]
    settings: Settings
    bodies: BodyTexts | None = None
    lateness: int = LATENESS
    window: int | None = None
    in_order: bool = False

    def by(self, state: StreamState, files: Iterable[list[Survey]], final: bool = False) -> TaskPlan:
        """Takes files that came, and changes the state; what became final. final: nothing more will come, so that all
        is stitched and all connections end."""
        plan = TaskPlan()
        builder = Builder(self.names, lambda name, batch: plan.rows.append((name, batch)), self.bodies, whole=False)
        builder.clients = state.clients
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
                made.rows = False  # they are made when its turn comes
        reading = Reading([], self.settings)
        reading.readers = readers
        builder.finish(reading)
        plan.names, plan.exchanges = dict(state.names), builder.exchanges
        return plan

    def _again(self, made: Survey, keys: set[Key]) -> Iterator[LeftoverSegments]:
        return leftover_of(placed(made), self.settings, keys, self.window)

    def _released(self, state: StreamState, final: bool) -> list[list[Survey]]:
        """The files whose turn it is, in their order."""
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
        """Whether a file belongs behind a chain's."""
        return chain.point == point and (point is not None or 0 <= first - chain.last <= JOIN)

    def _over(self, state: StreamState, chain: Chain) -> bool:
        """Whether no file can follow the chain any more. A point fell silent by the times at which messages are sent,
        since the clocks of points may differ."""
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
