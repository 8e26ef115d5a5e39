"""Several processes read the same captures: this one cuts packets into segments, workers follow the connections.

A block's bytes and segments are written once into memory that all see (shared_memory.py, sharding.py). A worker takes
the connections that fall to it and leaves its rows, as Arrow's own bytes, in a slot of its own that goes with the
block's; this process writes them out. Nobody does work twice, and a pipe carries only places in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwire.analyze.clients import Clients
from kwire.capture.segmenter import Block, Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.errors import JobError, KwireError
from kwire.session.reader import Settings
from kwire.session.reading import Progress, Reading
from kwire.tables.build import BodyTexts, Builder, Emit, into, read_into
from kwire.tables.columns import JUDGEMENTS
from kwire.tables.schemas import SCHEMAS
from kwire.tables.sharding import leave, take
from kwire.tables.shared_memory import MemorySlot, Place

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

AHEAD = 3  # blocks that may be on their way
CHAIN, BLOCK, END, LAST = "chain", "block", "end", "last"  # what workers are told
ROWS, DONE, FAILED = "rows", "done", "failed"  # what they say
Left = list[tuple[str, Place]]  # batches of tables in a slot


def build_with_jobs(
    paths: Sequence[str | Path], names: Sequence[str], emit: Emit, settings: Settings, jobs: int,
    bodies: BodyTexts | None = None, progress: Progress | None = None,
) -> tuple[Reading, int]:  # fmt: skip
    """As build.build, with so many workers beside this process, with none when it is one; how the reading went, and how
    many exchanges there were. Workers are forked: only where a system can. Raises CaptureError, OSError, and JobError
    with what went wrong in a worker.

    What judges a capture as a whole does not share it among processes: one reads it once more for these tables."""
    judged = [name for name in names if name in JUDGEMENTS]
    if jobs > 1 and judged:
        rest = [name for name in names if name not in judged]
        if rest:
            build_with_jobs(paths, rest, emit, settings, jobs, bodies, progress)
        names, jobs = judged, 1
    if jobs == 1:
        builder = Builder(names, emit, bodies)
        reading = read_into(builder, paths, settings, progress)
        builder.finish(reading)
        return reading, builder.exchanges
    reading = Reading(list(paths), settings, progress=progress)
    crew = _Crew(paths, names, emit, settings, jobs, bodies)
    try:
        for chain in reading.chains:
            segmenter, name = Segmenter(ConnectionFilter(settings.ports, settings.hosts)), ""
            crew.tell(CHAIN)
            for capture, packets in reading.blocks(chain):
                name = capture.name
                before = reading.before(capture, packets)
                crew.give(reading.names[str(capture.source.path)], before, segmenter.read(packets))
            crew.tell(END)
            reading.unread += [(name, note) for note in segmenter.notes]
        crew.tell(LAST)
        crew.wait()
    finally:
        crew.dismiss()
    reading.unread += crew.notes
    reading.sealed = crew.sealed
    builder = Builder(names, emit)
    builder.clients = crew.clients
    builder.finish(reading)
    return reading, crew.exchanges


class _Crew:
    """The workers, and what they found out."""

    def __init__(
        self, paths: Sequence[str | Path], names: Sequence[str], emit: Emit, settings: Settings, jobs: int,
        bodies: BodyTexts | None,
    ) -> None:  # fmt: skip
        self.clients, self.exchanges, self.notes = Clients(), 0, list[tuple[str, str]]()
        self.sealed = 0  # TLS connections that were not decrypted
        self._emit, self._next = emit, 0
        self._blocks = [MemorySlot() for _ in range(AHEAD)]
        self._rows = [[MemorySlot() for _ in range(AHEAD + 1)] for _ in range(jobs)]
        self._busy: list[set[int]] = [set() for _ in range(AHEAD)]  # the workers that have not done with a block
        self._orders: list[Connection] = []
        self._results: list[Connection] = []
        self._workers: list[Any] = []
        self._open = set(range(jobs))
        from multiprocessing import get_context  # late: most captures are read without workers

        context: Any = get_context("fork")
        for number in range(jobs):
            read_orders, orders = context.Pipe(duplex=False)
            results, write_results = context.Pipe(duplex=False)
            mine = [*self._orders, *self._results, orders, results]
            worker = _Worker(number, jobs, read_orders, write_results, self._blocks, self._rows[number])
            process = context.Process(
                target=worker.run, args=(list(paths), list(names), settings, bodies, mine), daemon=True
            )
            process.start()
            read_orders.close()
            write_results.close()
            self._orders.append(orders)
            self._results.append(results)
            self._workers.append(process)

    def tell(self, *order: Any) -> None:
        """Tells all workers."""
        for number, orders in enumerate(self._orders):
            try:
                orders.send(order)
            except OSError:  # it is gone; it may have said why
                self._hear({number})
                raise JobError("a worker ended before it was done") from None

    def give(self, name: str, before: int, block: Block) -> None:
        """Hands out a capture's block when there is a slot for it."""
        at, self._next = self._next, (self._next + 1) % AHEAD
        while self._busy[at]:
            self._hear(self._busy[at])
        left = leave(self._blocks[at], block)
        self._busy[at] = set(self._open)
        self.tell(BLOCK, name, before, at, left)

    def wait(self) -> None:
        """Until all are done."""
        while self._open:
            self._hear(self._open)

    def dismiss(self) -> None:
        """Ends them, whatever they do."""
        for worker in self._workers:
            worker.terminate()
            worker.join()
        for slot in [*self._blocks, *(slot for slots in self._rows for slot in slots)]:
            slot.close()
        for end in [*self._orders, *self._results]:
            end.close()

    def _hear(self, numbers: Iterable[int]) -> None:
        """Takes what some of these say next."""
        from multiprocessing.connection import wait

        ends: dict[Any, int] = {self._results[number]: number for number in numbers}
        ready: list[Any] = wait(list(ends))
        for end in ready:
            try:
                what, *said = end.recv()
            except (EOFError, OSError):
                raise JobError("a worker ended before it was done") from None
            self._take(ends[end], what, said)

    def _take(self, number: int, what: str, said: list[Any]) -> None:
        if what == FAILED:
            raise JobError(said[0])
        at, left, *rest = said
        for name, place in left:
            data = pa.py_buffer(bytes(self._rows[number][at].look(place)))
            self._emit(name, pa.ipc.read_record_batch(data, SCHEMAS[name]))
        if what == ROWS:
            self._busy[at].discard(number)
            return
        clients, exchanges, notes, sealed = rest
        self.sealed += sealed
        self.clients.merge(clients)
        self.exchanges += exchanges
        self.notes += notes
        self._open.discard(number)


@dataclass(slots=True)
class _Worker:
    """One of so many: follows the connections that fall to it."""

    number: int
    of: int
    orders: Connection
    results: Connection
    blocks: list[MemorySlot]
    rows: list[MemorySlot]
    made: list[tuple[str, memoryview]] = field(default_factory=list)

    def run(
        self, paths: list[str | Path], names: list[str], settings: Settings, bodies: BodyTexts | None,
        others: list[Connection],
    ) -> None:  # fmt: skip
        """All of it. others: ends that are not its own, which were forked along."""
        for end in others:
            end.close()
        try:
            builder = Builder(names, self._keep, bodies, whole=False)
            reading = into(builder, paths, settings)
            self._obey(builder, reading)
            builder.finish(reading, clients=False)
            notes = [(reader.name, note) for reader in reading.readers for note in reader.notes]
            self.results.send(
                (DONE, AHEAD, self._leave(AHEAD), builder.clients.all, builder.exchanges, notes, reading.encrypted)
            )
        except (KeyboardInterrupt, EOFError, BrokenPipeError):  # nobody asks any more
            pass
        except Exception as error:  # whatever it is, the other end tells it: a traceback from here helps nobody
            said = str(error) if isinstance(error, (KwireError, OSError)) else f"{type(error).__name__}: {error}"
            with suppress(OSError):
                self.results.send((FAILED, said))
        finally:
            self.orders.close()
            self.results.close()

    def _obey(self, builder: Builder, reading: Reading) -> None:
        """The orders, up to the last."""
        topics = reading.topics()
        reader = reading.reader(topics, ordered=False, scans=builder.scans)
        while (order := self.orders.recv())[0] != LAST:
            if order[0] == CHAIN:
                reader = reading.reader(topics, ordered=False, scans=builder.scans)
                continue
            if order[0] == BLOCK:
                _, name, before, at, left = order
                reader.name = name
                if left.packets:
                    reader.places.begin(name, before)
                batches = reader.add(take(self.blocks[at], left, self.number, self.of))
            else:
                batches = reader.finish()
            for batch in batches:
                builder.add(batch)
            if order[0] == BLOCK:
                self.results.send((ROWS, at, self._leave(at)))

    def _keep(self, name: str, batch: pa.RecordBatch) -> None:
        self.made.append((name, memoryview(batch.serialize())))

    def _leave(self, at: int) -> Left:
        """Puts rows into the slot that goes with a block's."""
        places = self.rows[at].write([data for _, data in self.made])
        left = [(name, place) for (name, _), place in zip(self.made, places, strict=True)]
        self.made = []
        return left
