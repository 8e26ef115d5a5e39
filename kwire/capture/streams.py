"""One direction of a TCP connection: its bytes in order, each piece with the packets that brought it.

Segments may come in any order, twice, overlapping, cut by the snaplen, or not at all. What comes too early is held
until the hole before it is filled; when the hole stays, it is given up and said. Sequence numbers wrap, so positions
count from the stream's first byte (RFC 9293 section 3.4).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

HELD = 4 << 20  # bytes that may wait behind a hole, by default
PACKET_COST, RUN_COST = 200, 400  # bytes of memory that a packet takes beside its own while it waits, and a run of them
PATIENCE = 2_000_000_000  # ns that they may wait
WRAP, HALF = 1 << 32, 1 << 31


class Piece(NamedTuple):
    """Bytes in order, from position on. starts, times and numbers tell the packets: packet i brought the bytes from
    starts[i] to the next one. missing: how many bytes before position the capture lacks; cut: since its snaplen cut
    them off, and then the packet is known. A piece may be empty, to say what is missing."""

    position: int
    data: bytes
    starts: list[int]
    times: list[int]
    numbers: list[int]
    missing: int = 0
    cut: bool = False


class Run(NamedTuple):
    """Segments that follow each other: length bytes on the wire, data the captured ones; only the last may be cut.

    offsets, times and numbers tell the packets: packet i brought the bytes from offsets[i] on."""

    seq: int
    data: bytes
    length: int
    offsets: list[int]
    times: list[int]
    numbers: list[int]


class Stream:
    """take and extend add what packets brought; pieces is what came of it and was not yet fetched."""

    __slots__ = ("end", "first", "held", "held_bytes", "missing", "next", "pieces", "position", "repeated", "syn")

    def __init__(self) -> None:
        self.next: int | None = None  # the sequence number of the byte at position
        self.position = 0
        self.first: int | None = None  # the sequence number of position 0
        self.syn: int | None = None
        self.end: int | None = None  # the position at which a FIN ends the stream
        self.held: list[tuple[int, Run]] = []  # with their positions, the next one last: it is taken off cheaply
        self.held_bytes = 0
        self.pieces: list[Piece] = []
        self.missing = 0  # bytes given up, in all
        self.repeated = 0  # bytes that came again

    def open(self, seq: int) -> None:
        """A SYN: the stream's first byte follows its number."""
        self.syn = seq
        if self.next is None:
            self.next = self.first = (seq + 1) % WRAP

    def close(self, seq: int) -> None:
        """A FIN that stands at this sequence number."""
        if self.next is not None:
            self.end = self.position + self._ahead(seq)

    @property
    def ended(self) -> bool:
        """Whether all bytes up to the FIN were delivered."""
        return self.end is not None and self.position >= self.end

    def extend(self, data: bytes, starts: list[int], times: list[int], numbers: list[int]) -> None:
        """Adds bytes that follow what there is. starts: positions, as Piece says."""
        self.pieces.append(Piece(self.position, data, starts, times, numbers))
        self.position += len(data)
        assert self.next is not None
        self.next = (self.next + len(data)) % WRAP

    def take(self, runs: list[Run]) -> None:
        """Adds segments, in any order."""
        if not runs:
            return
        if self.next is None:
            origin = runs[0].seq
            self.next = self.first = (origin + min(signed(run.seq - origin) for run in runs)) % WRAP
        self.held += [(self.position + self._ahead(run.seq), run) for run in runs]
        self.held_bytes += sum(len(run.data) for run in runs)
        self.held.sort(key=_place, reverse=True)
        self._go_on()

    def give_up(self) -> int:
        """Leaves the first hole as it is and goes on behind it. How many bytes it took."""
        if not self.held:
            return 0
        at, run = self.held[-1]
        lost = at - self.position
        self.missing += lost
        self.pieces.append(Piece(at, b"", [at], run.times[:1], run.numbers[:1], lost))
        self._move(at)
        self._go_on()
        return lost

    def _go_on(self) -> None:
        """Delivers what follows the position; what lies behind a hole stays held."""
        while self.held and self.held[-1][0] <= self.position:
            at, run = self.held.pop()
            self.held_bytes -= len(run.data)
            self._deliver(at, run)

    def _deliver(self, at: int, run: Run) -> None:
        """Adds what is new of a run that begins at or before the position."""
        known = self.position - at
        self.repeated += min(known, run.length)
        if known >= run.length:
            return
        _, data, length, offsets, times, numbers = run
        if known:
            packet = bisect_right(offsets, known) - 1
            data, offsets, times, numbers = (
                data[known:],
                [known, *offsets[packet + 1 :]],
                times[packet:],
                numbers[packet:],
            )
        if data:
            starts = offsets if not at else [at + offset for offset in offsets]
            self.pieces.append(Piece(self.position, data, starts, times, numbers))
            self._move(self.position + len(data))
        cut = at + length - self.position
        if cut > 0:
            self.missing += cut
            self._move(self.position + cut)
            self.pieces.append(Piece(self.position, b"", [self.position - cut], times[-1:], numbers[-1:], cut, True))

    def _move(self, position: int) -> None:
        assert self.next is not None
        self.next = (self.next + position - self.position) % WRAP
        self.position = position

    def _ahead(self, seq: int) -> int:
        assert self.next is not None
        return signed(seq - self.next)


def signed(difference: int) -> int:
    """The difference of two sequence numbers, from -2**31 to 2**31 - 1."""
    return (difference + HALF) % WRAP - HALF


def _place(placed: tuple[int, Run]) -> tuple[int, int]:
    return placed[0], placed[1].numbers[0]
