"""Where reading can begin again, so that a frame is read anew without all that stands before it.

After a block of packets the reader's state is kept, as it is pickled, with the place in the file. When all of them
together take too much room every second one goes, and the next ones are further apart: what they take stays bounded,
and what is read again for a frame is a part of the capture that does not grow faster than the capture itself.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kwire.capture.files import Capture, Resumption, open_again, open_capture
from kwire.capture.packets import Packets
from kwire.session.batch import ExchangeBatch
from kwire.session.exchange import Exchange
from kwire.session.reader import Reader
from kwire.session.reading import Reading
from kwire.session.topics import Topics

ROOM = 64 << 20  # bytes that all states may take
KEPT = 64 << 20  # bytes of batches that are kept as they are
ROW_COST = 400  # bytes that a row of a batch takes beside its frames
SHARE = 5  # a state is kept when reading took so many times as long as keeping one takes


class Checkpoint(NamedTuple):
    """The state before a block. file: which of the chain's; before: packets of those before it; packets: those read;
    place: None where the file can only be read from its start."""

    block: int
    file: int
    before: int
    packets: int
    place: Resumption | None
    state: bytes


class Checkpoints:
    """Of captures that follow each other. keep() is asked after every block; from_(block) gives the nearest one."""

    def __init__(self, paths: Sequence[str | Path], reading: Reading, topics: Topics) -> None:
        self.paths, self._reading, self._topics = paths, reading, topics
        self._points: list[Checkpoint] = []
        self._apart, self._cost, self._begun = 1, 0.0, time.process_time()

    def keep(self, reader: Reader, block: int, file: int, before: int, capture: Capture) -> None:
        """Block is the next one that is read."""
        spent = time.process_time() - self._begun
        if spent < SHARE * self._cost or (self._points and block - self._points[-1].block < self._apart):
            return
        begun = time.process_time()
        state = reader.snapshot()
        self._points.append(Checkpoint(block, file, before, capture.packets, capture.behind(), state))
        if sum(len(point.state) for point in self._points) > ROOM:
            self._points = self._points[::2]
            self._apart *= 2
        self._begun = time.process_time()
        self._cost = self._begun - begun

    def batches(self, block: int) -> Iterator[ExchangeBatch]:
        """What comes to be complete from a block on, or before it, since somewhere."""
        at = bisect_right(self._points, block, key=lambda point: point.block) - 1
        point = self._points[at] if at >= 0 else None
        if point is None:
            reader = self._reading.reader(Topics(), ordered=False)
            self._reading.readers.remove(reader)
            point = Checkpoint(0, 0, 0, 0, None, b"")
        else:
            reader = Reader.resume(point.state)
        reader.topics.names.update(self._topics.names)  # those that were told later
        for name, before, packets in self._blocks(point):
            reader.name = name
            reader.places.begin(name, before)
            yield from reader.feed(packets)
        yield from reader.finish()

    def _blocks(self, point: Checkpoint) -> Iterator[tuple[str, int, Packets]]:
        before = point.before
        for number in range(point.file, len(self.paths)):
            path = self.paths[number]
            first = number == point.file
            capture = open_again(point.place) if first and point.place else open_capture(path)
            for packets in capture.blocks():
                if first and len(packets) and int(packets.number[0]) <= point.packets:
                    continue  # of a file that is unpacked from its start
                moved = replace(packets, number=packets.number + before) if before else packets
                yield self._reading.names[str(path)], before, moved
            before += capture.packets


class Frames:
    """exchange(row) finds the exchange of a row of the index: among the batches that were read last, or by reading
    again."""

    def __init__(self) -> None:
        self._batches: OrderedDict[int, ExchangeBatch] = OrderedDict()
        self._room = 0

    def keep(self, block: int, batch: ExchangeBatch) -> None:
        """A block's exchanges, as long as there is room for them."""
        old = self._batches.pop(block, None)
        self._room += _cost(batch) - (_cost(old) if old is not None else 0)
        self._batches[block] = batch
        while self._room > KEPT and len(self._batches) > 1:
            _, gone = self._batches.popitem(last=False)
            self._room -= _cost(gone)

    def exchange(self, row: Any, checkpoints: Checkpoints) -> Exchange | None:
        """None when the capture does not hold it any longer."""
        block = int(row["block"])
        batch = self._batches.get(block)
        if batch is not None:
            self._batches.move_to_end(block)
            found = _row_of(batch, row)
            if found is not None:
                return batch[found]
        for batch in checkpoints.batches(block):
            found = _row_of(batch, row)
            if found is not None:
                self.keep(block, batch)
                return batch[found]
        return None


def _cost(batch: ExchangeBatch) -> int:
    return len(batch.buffer) + ROW_COST * len(batch)


def _row_of(batch: ExchangeBatch, row: Any) -> int | None:
    """Where in a batch the exchange is that a row tells of."""
    fits = batch.time == row["time"]
    for side, packet, index in (
        (batch.request, row["asked"], row["asked_index"]), (batch.response, row["answered"], row["answered_index"]),
    ):  # fmt: skip
        fits &= np.where(side.there, side.packet, 0) == packet
        if packet:
            fits &= side.index == index
    found = np.flatnonzero(fits)
    return int(found[0]) if len(found) else None
