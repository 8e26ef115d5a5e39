"""Builds tables in several processes: this one reads packets into segments, workers read the connections.

A block's bytes and segments are written once into shared memory (shared_memory.py, sharding.py). A worker reads its
share of the connections and writes its rows, as Arrow IPC, into its own slot for the block; this process writes them
out. Pipes carry only offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwire.capture.segmenter import Block, Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.errors import JobError, KwireError
from kwire.session.reader import Settings
from kwire.session.reading import Progress, Reading
from kwire.tables.build import BodyTexts, Builder, Emit, into, read_into
from kwire.tables.columns import JUDGEMENTS
from kwire.tables.sharding import leave, take
from kwire.tables.shared_memory import MemorySlot, Place

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

AHEAD = 3  # blocks that may be in progress
CHAIN, BLOCK, END, LAST = "chain", "block", "end", "last"  # orders to workers
ROWS, DONE, FAILED = "rows", "done", "failed"  # their replies
Left = list[tuple[str, Place]]  # table name and offsets in a slot


def build_with_jobs(
    paths: Sequence[str | Path], names: Sequence[str], emit: Emit, settings: Settings, jobs: int,
    bodies: BodyTexts | None = None, progress: Progress | None = None, coded: bool = False,
) -> tuple[Reading, int]:  # fmt: skip
    """As build.build, with jobs forked workers beside this process, or none if jobs is 1. coded: as of Builder. Returns
    the Reading and the number of exchanges. Raises CaptureError, OSError, and JobError for an error in a worker.

    Tables that judge whole captures cannot be shared among processes: the captures are read again for them.
    """
    judged = [name for name in names if name in JUDGEMENTS]
    if jobs > 1 and judged:
        rest = [name for name in names if name not in judged]
        if rest:
            build_with_jobs(paths, rest, emit, settings, jobs, bodies, progress, coded)
        names, jobs = judged, 1
    if jobs == 1:
        builder = Builder(names, emit, bodies, coded=coded)
        reading = read_into(builder, paths, settings, progress)
        builder.finish(reading)
        return reading, builder.exchanges
    reading = Reading(list(paths), settings, progress=progress)
    builder = Builder(names, emit, coded=coded)
    crew = _Crew(paths, names, builder, settings, jobs, bodies)
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
    builder.finish(reading)
    return reading, crew.exchanges


class _Crew:
    """The workers and their results."""

    def __init__(
        self, paths: Sequence[str | Path], names: Sequence[str], builder: Builder, settings: Settings, jobs: int,
        bodies: BodyTexts | None,
    ) -> None:  # fmt: skip
        self.exchanges, self.notes = 0, list[tuple[str, str]]()
        self.sealed = 0  # TLS connections that were not decrypted
        self._builder, self._next = builder, 0  # takes their rows and what they learned
        self._blocks = [MemorySlot() for _ in range(AHEAD)]
        self._rows = [[MemorySlot() for _ in range(AHEAD + 1)] for _ in range(jobs)]
        self._busy: list[set[int]] = [set() for _ in range(AHEAD)]  # per block slot, the workers that still read it
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
        """Sends an order to all workers."""
        for number, orders in enumerate(self._orders):
            try:
                orders.send(order)
            except OSError:  # it has ended; it may have sent a reason
                self._hear({number})
                raise JobError("a worker ended before it was done") from None

    def give(self, name: str, before: int, block: Block) -> None:
        """Gives a block to all workers, once a slot is free. before: packets in the captures before."""
        at, self._next = self._next, (self._next + 1) % AHEAD
        while self._busy[at]:
            self._hear(self._busy[at])
        left = leave(self._blocks[at], block)
        self._busy[at] = set(self._open)
        self.tell(BLOCK, name, before, at, left)

    def wait(self) -> None:
        """Waits until all workers are done."""
        while self._open:
            self._hear(self._open)

    def dismiss(self) -> None:
        """Ends the workers at once."""
        for worker in self._workers:
            worker.kill()  # SIGTERM may have a handler here, which they inherit
            worker.join()
        for slot in [*self._blocks, *(slot for slots in self._rows for slot in slots)]:
            slot.close()
        for end in [*self._orders, *self._results]:
            end.close()

    def _hear(self, numbers: Iterable[int]) -> None:
        """Waits for and takes the next replies of these workers."""
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
            self._builder.emit(name, pa.ipc.open_stream(data).read_next_batch())
        if what == ROWS:
            self._busy[at].discard(number)
            return
        clients, broker_ids, exchanges, notes, sealed = rest
        self.sealed += sealed
        self._builder.clients.merge(clients)
        self._builder.broker_ids.merge(broker_ids)
        self.exchanges += exchanges
        self.notes += notes
        self._open.discard(number)


@dataclass(slots=True)
class _Worker:
    """Worker number of "of" workers: reads its share of the connections."""

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
        """Runs until the last order. others: forked pipe ends of other workers, to be closed."""
        for end in others:
            end.close()
        try:
            builder = Builder(names, self._keep, bodies, whole=False, hold=False, coded=True)
            reading = into(builder, paths, settings)
            self._obey(builder, reading)
            builder.finish(reading, clients=False)
            notes = [(reader.name, note) for reader in reading.readers for note in reader.notes]
            self.results.send((
                DONE, AHEAD, self._leave(AHEAD), builder.clients.all, builder.broker_ids, builder.exchanges, notes,
                reading.encrypted,
            ))  # fmt: skip
        except (KeyboardInterrupt, EOFError, BrokenPipeError):  # the parent has gone
            pass
        except Exception as error:  # any error is reported by the parent, in a line
            said = str(error) if isinstance(error, (KwireError, OSError)) else f"{type(error).__name__}: {error}"
            with suppress(OSError):
                self.results.send((FAILED, said))
        finally:
            self.orders.close()
            self.results.close()

    def _obey(self, builder: Builder, reading: Reading) -> None:
        """Follows the orders, up to the last."""
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
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        self.made.append((name, memoryview(sink.getvalue())))

    def _leave(self, at: int) -> Left:
        """Writes the rows into its slot for a block."""
        places = self.rows[at].write([data for _, data in self.made])
        left = [(name, place) for (name, _), place in zip(self.made, places, strict=True)]
        self.made = []
        return left
