"""One direction of a TCP connection: its bytes in order, each piece with the packets that carried it.

Segments may be reordered, repeated, overlapping, cut by the snaplen, or missing. Early segments are held until the hole
before them is filled; a hole that stays is given up and reported. Sequence numbers wrap, so positions count from the
stream's first byte (RFC 9293 section 3.4).

A single packet with a sequence number far from the others is a stray, for example of an older connection, and must not
move the stream. A jump ahead is accepted when more packets follow there and none comes at the old place; a jump back
beyond any retransmission is a jump ahead by more than 2 GiB.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from kwire.capture.cuts import Cut
from kwire.capture.windows import FullWindow, Stalls

HELD = 4 << 20  # bytes that may wait behind a hole, by default
PACKET_COST, RUN_COST = 200, 400  # bytes of memory overhead of a waiting packet, and of a waiting run
COST, LEAST_COST = 4, 1 << 20  # factor of memory over waiting bytes that is allowed; bytes always allowed
PATIENCE = 2_000_000_000  # ns that held bytes may wait
WRAP, HALF = 1 << 32, 1 << 31
AHEAD = 1 << 20  # bytes; a larger hole is accepted only with more than one packet behind it
FAR_KEPT = 16  # most runs from far back that are kept
BACK = 1 << 26  # bytes; no retransmission is from further back


class Piece(NamedTuple):
    """Consecutive bytes from position on. starts, times, numbers: packet i carried the bytes from starts[i] to the next
    start. missing: bytes missing before position; cut: the snaplen cut them off, so their packet is known; left_out:
    the capture is a slice that omits them, and a frame begins at position. A piece may be empty, to report missing
    bytes."""

    position: int
    data: bytes
    starts: list[int]
    times: list[int]
    numbers: list[int]
    missing: int = 0
    cut: bool = False
    left_out: Cut | None = None


class SegmentRun(NamedTuple):
    """Consecutive segments: length: bytes on the wire; data: the captured ones; only the last segment may be cut.

    offsets, times, numbers: packet i carried the bytes from offsets[i] on. left_out: what a slice omits before it.
    """

    seq: int
    data: bytes
    length: int
    offsets: list[int]
    times: list[int]
    numbers: list[int]
    left_out: Cut | None = None


class Stream:
    """take and extend add segments; pieces holds the resulting pieces until somebody takes them."""

    __slots__ = (
        "back", "cut", "end", "first", "held", "held_bytes", "held_cost", "latest", "left_out", "missing", "next",
        "pieces", "position", "repeated", "stalls", "stray", "syn",
    )  # fmt: skip

    def __init__(self) -> None:
        self.next: int | None = None  # the sequence number of the byte at position
        self.position = 0
        self.first: int | None = None  # the sequence number of position 0
        self.syn: int | None = None
        self.end: int | None = None  # the position at which a FIN ends the stream
        self.held: list[tuple[int, SegmentRun]] = []  # with positions, in descending order
        self.held_bytes = 0
        self.held_cost = 0  # memory that they take, about, in bytes
        self.back: list[SegmentRun] = []  # runs too far back for retransmissions
        self.latest = (0, 0)  # number and time of the last packet with new bytes
        self.stray = 0  # bytes of stray packets
        self.pieces: list[Piece] = []
        self.missing = 0  # bytes in holes given up
        self.cut = 0  # of these, cut off by the snaplen
        self.repeated = 0  # retransmitted bytes
        self.left_out = 0  # bytes omitted from a slice
        self.stalls: Stalls | None = None  # when its sender's receive window was full

    def stall(self, one: FullWindow) -> None:
        """Notes that its sender announced a full receive window."""
        if self.stalls is None:
            self.stalls = Stalls(one.number, one.time, one.time, one.ack)
        else:
            self.stalls.add(one)

    def open(self, seq: int) -> None:
        """Takes a SYN, whose sequence number precedes the first byte's."""
        self.syn = seq
        if self.next is None:
            self.next = self.first = (seq + 1) % WRAP

    def shift(self, base: int) -> None:
        """Adds base to all positions."""
        self.position += base
        self.held = [(at + base, run) for at, run in self.held]
        self.end = None if self.end is None else self.end + base

    def close(self, seq: int) -> None:
        """Takes a FIN at this sequence number, unless that is far from the stream."""
        if self.next is not None and self.near(seq):
            self.end = self.position + self._ahead(seq)

    def near(self, seq: int) -> bool:
        """Whether a FIN or RST at this sequence number may belong to the stream."""
        return self.next is None or abs(self._ahead(seq)) <= BACK

    @property
    def ended(self) -> bool:
        """Whether all bytes up to the FIN were delivered."""
        return self.end is not None and self.position >= self.end

    def extend(self, data: bytes, starts: list[int], times: list[int], numbers: list[int]) -> None:
        """Adds the next bytes. starts: positions, as in Piece."""
        self.pieces.append(Piece(self.position, data, starts, times, numbers))
        self.latest = numbers[-1], times[-1]
        self.back.clear()
        self.position += len(data)
        assert self.next is not None
        self.next = (self.next + len(data)) % WRAP

    def pass_over(self, seq: int, length: int, number: int, time: int) -> None:
        """As open and extend, for bytes that are read elsewhere. number, time: of the last packet."""
        self.open(seq)
        self.latest = number, time
        self.position = length
        self.next = (seq + 1 + length) % WRAP

    def take(self, runs: list[SegmentRun]) -> None:
        """Adds segments, in any order."""
        if not runs:
            return
        if self.next is None:
            self.next = self.first = _first(runs)
            self._begin(next((run for run in runs if run.seq == self.next), runs[0]))
        far = [run for run in runs if self._ahead(run.seq) < -BACK]
        self._hold([run for run in runs if self._ahead(run.seq) >= -BACK] if far else runs)
        self._go_on()
        if far:
            self._far_back(far)

    def _hold(self, runs: list[SegmentRun]) -> None:
        self.held += [(self.position + self._ahead(run.seq), run) for run in runs]
        self.held_bytes += sum(len(run.data) for run in runs)
        self.held_cost += sum(_cost(run) for run in runs)
        self.held.sort(key=_place, reverse=True)

    def _far_back(self, runs: list[SegmentRun]) -> None:
        """Takes runs from too far back: after several such packets, with none at the old place since the first of them,
        the stream jumps ahead by more than 2 GiB."""
        number, time = self.latest
        self.back = [run for run in (*self.back, *runs) if run.numbers[0] > number and run.times[0] > time][-FAR_KEPT:]
        self.stray += sum(len(run.data) for run in runs)
        first = _first(self.back) if self.back else None
        if first is None or sum(len(run.numbers) for run in self.back) < 2:
            return
        if any(abs(signed(run.seq - first)) > AHEAD for run in self.back) or len({run.seq for run in self.back}) < 2:
            return
        ahead, self.back, runs = (first - self.next) % WRAP if self.next is not None else 0, [], self.back
        self._leap(self.position + ahead, ahead, runs[0])
        self._hold(runs)
        self._go_on()

    @property
    def lone(self) -> bool:
        """Whether only a packet far ahead is held, perhaps twice, so that it may be a stray."""
        return (
            bool(self.held)
            and self.held[-1][0] - self.position > AHEAD
            and self.held[0][0] == self.held[-1][0]
            and all(len(run.numbers) == 1 and run.left_out is None for _, run in self.held)
        )

    def give_up(self) -> int:
        """Gives up the first hole and goes on behind it. Returns its bytes; 0 if what lies behind it is a stray, which
        is dropped."""
        if not self.held:
            return 0
        at, run = self.held[-1]
        if run.left_out is not None and at - run.left_out.before > self.position:
            at -= run.left_out.before
        lost = at - self.position
        if lost > AHEAD and (run.numbers[-1] < self.latest[0] or (lost > BACK and self.lone)):
            place = self.held[-1][0]
            while self.held and self.held[-1][0] == place:  # all at once, since each call scans the held runs
                self.stray += len(self._release()[1].data)
            return 0
        self._leap(at, lost, run)
        self._go_on()
        return lost

    def _leap(self, at: int, lost: int, run: SegmentRun) -> None:
        """Goes to position at, where run lies, with lost bytes missing before it."""
        self.missing += lost
        self.pieces.append(Piece(at, b"", [at], run.times[:1], run.numbers[:1], lost))
        self._move(at)

    def _go_on(self) -> None:
        """Delivers held runs up to the next hole; bytes omitted from a slice are no hole."""
        while self.held:
            at, run = self.held[-1]
            cut = run.left_out
            if at > self.position and (cut is None or at - cut.before != self.position):
                return
            self._release()
            if cut is not None and at > self.position:
                self._leave_out(at, run, cut)
            self._deliver(at, run)

    def _release(self) -> tuple[int, SegmentRun]:
        """Removes and returns the first held run."""
        at, run = self.held.pop()
        self.held_bytes -= len(run.data)
        self.held_cost -= _cost(run)
        return at, run

    def _begin(self, run: SegmentRun) -> None:
        """Starts a midstream stream; in a slice the position in the whole stream is known."""
        cut = run.left_out
        if cut is None or cut.position is None:
            return
        assert self.next is not None
        self.position, self.first = cut.position, (self.next - cut.position) % WRAP
        self._leave_out(cut.position, run, cut)

    def _leave_out(self, at: int, run: SegmentRun, cut: Cut) -> None:
        """Goes on behind bytes omitted from a slice."""
        lost = at - self.position
        self.left_out += lost
        self.pieces.append(Piece(at, b"", [at], run.times[:1], run.numbers[:1], lost, False, cut))
        self._move(at)

    def _deliver(self, at: int, run: SegmentRun) -> None:
        """Adds the new bytes of a run that begins at or before the position."""
        known = self.position - at
        self.repeated += min(known, run.length)
        if known >= run.length:
            return
        self.latest = max(self.latest, (run.numbers[-1], run.times[-1]))
        self.back.clear()
        _, data, length, offsets, times, numbers, _ = run
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
            self.cut += cut
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


def _cost(run: SegmentRun) -> int:
    return len(run.data) + RUN_COST + PACKET_COST * len(run.numbers)


def _first(runs: list[SegmentRun]) -> int:
    """The lowest sequence number, ignoring a single packet far before all others."""
    origin = runs[0].seq
    places = sorted((signed(run.seq - origin), len(run.numbers)) for run in runs)
    others = sum(count for _, count in places[1:])
    lone = others > 1 and places[0][1] == 1 and places[1][0] - places[0][0] > BACK
    return (origin + places[lone][0]) % WRAP


def _place(placed: tuple[int, SegmentRun]) -> tuple[int, int]:
    return placed[0], placed[1].numbers[0]


def cost_of(held: int) -> int:
    """Memory, in bytes, that held bytes behind holes may take; small or cut segments take more than their bytes."""
    return max(COST * held, LEAST_COST)
