"""Frames from a stream: size prefix by size prefix, over any number of packets and over holes.

A frame that a hole hits is given as far as it was captured; where its end is known, the next one begins there. When the
place is lost (in midstream, behind a hole, after a size that cannot be), bytes are collected until resync.py finds a
boundary. A long frame is put together once, when it is whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from struct import Struct
from typing import NamedTuple

from kwire.capture.streams import PACKET_COST, Piece
from kwire.codec.frames import MAX_SIZE
from kwire.codec.quality import Quality
from kwire.session.pieces import Collected, rest

COLLECTED = 1 << 20  # bytes that are searched for a boundary at a time, packets counted with what they cost
LEAST = 8  # bytes below which no frame can be recognized
ZEROS = bytes(8)  # two frames of size 0 in a row are none: memory that was not written, a hole in a file
FOREIGN = 64  # bytes that tell another protocol
TAIL = 1 << 16  # of these, the last ones that stay for the next search

unpack_size = Struct(">i").unpack_from


Marks = tuple[tuple[int, int], ...]


class Raw(NamedTuple):
    """A frame. data begins with the size prefix and is shorter than size + 4 where bytes are missing; then quality is
    truncated (the snaplen or the end of the capture cut it) or gap (packets are missing), and note says more. marks: of
    a frame in several packets where each packet begins, as (offset, packet)."""

    position: int
    data: bytes
    size: int
    time: int
    last_time: int
    packet: int
    last_packet: int
    quality: Quality = Quality.OK
    note: str | None = None
    marks: Marks = ()


class Skipped(NamedTuple):
    """Bytes of which no frame could be made."""

    position: int
    length: int
    time: int
    reason: str


class Partial(NamedTuple):
    """Where a framer stands that knows its place: the frame that is not whole begins at position; parts is what there
    is of it, need its length (0: not known yet), first the time and packet of its first byte."""

    position: int
    frames: int
    parts: bytes
    need: int
    first: tuple[int, int]
    marks: list[tuple[int, int]]


Search = Callable[[bytes, list[int]], int | None]  # bytes, offsets where packets begin → where a frame begins


class Framer:
    """feed(pieces) gives what whole frames there are. search finds a boundary when the place is lost."""

    __slots__ = (
        "_first", "_have", "_holed", "_left", "_marks", "_most", "_need", "_parts", "_searched",
        "collected", "foreign", "frames", "lost", "max_size", "position", "reason", "search", "skipped",
    )  # fmt: skip

    def __init__(self, search: Search, lost: bool, max_size: int = MAX_SIZE) -> None:
        self.search = search
        self.max_size = max_size
        self.position = 0  # of the next frame's first byte
        self.lost = lost
        self.reason = "the capture begins in midstream"
        self.skipped: list[Skipped] = []
        self.foreign = b""  # what stood where the first impossible size was
        self.frames = 0
        self.collected = Collected()  # while the place is lost
        self._searched = 0
        self._marks: list[tuple[int, int]] = []  # of the frame that is not whole
        self._parts: list[bytes] = []  # of the frame that is not whole yet
        self._have = 0
        self._need = 0  # 0: its size is not known yet
        self._first = (0, 0)  # time and packet of its first byte
        self._holed: tuple[Quality, str] | None = None  # quality and note, when bytes of it are missing
        self._most: int | None = None  # frames after which take stops
        self._left: Piece | None = None  # what is behind them

    @property
    def waiting(self) -> int:
        """Bytes that are kept for a frame that is not whole."""
        return self._have + self.collected.size

    @property
    def cost(self) -> int:
        """Bytes of memory that they take, about: small packets take more than they bring."""
        marked = max(len(self._marks), len(self._parts) - 1) if self._have else 0
        return self._have + PACKET_COST * marked + self.collected.cost

    def feed(self, pieces: Iterable[Piece]) -> list[Raw]:
        """All frames of the pieces."""
        return self.take(deque(pieces))

    def take(self, pieces: deque[Piece], most: int | None = None) -> list[Raw]:
        """The first frames of the pieces, which are taken off the front. most: how many, at least the one that is not
        whole yet."""
        out: list[Raw] = []
        self._most = most
        while pieces and not (most is not None and len(out) >= most and self.clean):
            self._piece(pieces.popleft(), out)
            if self._left is not None:
                pieces.appendleft(self._left)
                self._left = None
        self.frames += len(out)
        return out

    def fork(self) -> Framer:
        """Another one that stands where this one does."""
        made = copy(self)
        made._parts, made._marks, made.skipped = list(self._parts), list(self._marks), []
        made.collected = self.collected.copy()
        return made

    @property
    def clean(self) -> bool:
        """Whether the next byte is a frame's first."""
        return not (self.lost or self._have or self._holed)

    def partial(self) -> Partial | None:
        """Where it stands; None when the place is lost or a hole hit the frame."""
        if self.lost or self._holed:
            return None
        return Partial(self.position, self.frames, b"".join(self._parts), self._need, self._first, list(self._marks))

    def begin(self, position: int) -> None:
        """A frame begins there."""
        self.lost, self.position = False, position

    def resume(self, partial: Partial) -> None:
        """Goes on from there."""
        self._clear()
        self.lost, self.position, self.frames = False, partial.position, partial.frames
        self._parts, self._have = [partial.parts] * bool(partial.parts), len(partial.parts)
        self._need, self._first, self._marks = partial.need, partial.first, list(partial.marks)

    def finish(self, why: str, ended: bool) -> list[Raw]:
        """Nothing more will come. ended: the connection was closed, so that nothing is missing from the capture."""
        out: list[Raw] = []
        if self.clean:
            return out
        if self.lost and self.collected.size and not self._search(self.collected.whole(), out, 0):
            self._give_up_search()
        if self._have or self._holed:
            what = "the connection closed" if ended else why
            have = self._have
            note = f"{what} after {have:,} of {self._need:,} bytes" if self._need else f"{what} after {have} bytes"
            data = b"".join(self._parts)
            time, packet = self._first
            if len(data) >= 4:
                quality, said = self._holed or (Quality.TRUNCATED, note)
                (size,) = unpack_size(data)
                out.append(Raw(self.position, data, size, time, time, packet, packet, quality, said))
            else:
                self._skip(Skipped(self.position, have, time, note))
        self._clear()
        self.frames += len(out)
        return out

    def _skip(self, skipped: Skipped) -> None:
        """Notes skipped bytes; those that follow the last ones join them."""
        last = self.skipped[-1] if self.skipped else None
        if last is not None and last.position + last.length == skipped.position and last.reason == skipped.reason:
            self.skipped[-1] = last._replace(length=last.length + skipped.length)
        else:
            self.skipped.append(skipped)

    def take_skipped(self) -> list[Skipped]:
        """Bytes of which no frames could be made, each once."""
        skipped = self.skipped
        if skipped:
            self.skipped = []
        return skipped

    def give_up(self) -> None:
        """Lets go of what waits for the rest of its frame."""
        if self.lost:
            self._give_up_search()
        elif self._have:
            self._skip(Skipped(self.position, self._have, self._first[0], "given up to bound memory"))
            self._lose(self.position + self._have, "given up to bound memory")

    def _piece(self, piece: Piece, out: list[Raw]) -> None:
        if piece.left_out is not None:
            self._jump(piece, out)
            return
        if piece.missing and not self._hole(piece, out):
            return
        if self.lost:
            self._collect(piece, out)
        elif self._holed:
            self._behind_hole(piece, out)
        elif self._have:
            self._go_on(piece, out)
        else:
            self._split(piece.position, piece.data, piece.starts, piece.times, piece.numbers, out)

    def _split(
        self, base: int, data: bytes, starts: list[int], times: list[int], numbers: list[int], out: list[Raw]
    ) -> None:
        """Cuts frames off data, whose first byte is a frame's; what is left waits."""
        pos, at, last, length, most = 0, 0, len(starts) - 1, len(data), self._most
        while length - pos >= 4:
            if most is not None and len(out) >= most and not self._marks:
                self._left, self.position = rest(base, data, starts, times, numbers, pos), base + pos
                return
            (size,) = unpack_size(data, pos)
            end = pos + 4 + size
            if not 0 <= size <= self.max_size:
                self.foreign = self.foreign or data[pos : pos + FOREIGN]
                self._lose(base + pos, f"a size of {size:,} bytes cannot be")
                self._collect(rest(base, data, starts, times, numbers, pos), out, 1)
                return
            if end > length:
                break
            if not size and data[pos : pos + 8] == ZEROS:
                self._lose(base + pos, "nothing but zeros")
                self._collect(rest(base, data, starts, times, numbers, pos), out, 1)
                return
            start = base + pos
            while at < last and starts[at + 1] <= start:
                at += 1
            first = at
            start = base + end
            while at < last and starts[at + 1] < start:
                at += 1
            frame, marks = data[pos:end], self._marks
            if at > first:
                marks = (marks or _marks(starts, numbers, first, first, base + pos)) + _marks(
                    starts, numbers, first + 1, at, base + pos
                )
            ends = times[first], times[at], numbers[first], numbers[at]
            out.append(Raw(base + pos, frame, size, *ends, Quality.OK, None, tuple(marks) if marks else ()))
            if marks:
                self._marks = []
            pos = end
        self.position = base + pos
        if pos < length:
            while at < last and starts[at + 1] <= self.position:
                at += 1
            self._parts, self._have = [data[pos:]], length - pos
            self._first = times[at], numbers[at]
            self._marks = _marks(starts, numbers, at, last, self.position)
            self._need = 4 + unpack_size(data, pos)[0] if length - pos >= 4 else 0

    def _go_on(self, piece: Piece, out: list[Raw]) -> None:
        """More of a frame that is not whole."""
        self._parts.append(piece.data)
        self._have += len(piece.data)
        if not self._need:
            if self._have < 4:
                self._marks += _marks(piece.starts, piece.numbers, 0, len(piece.starts) - 1, self.position)
                return
            self._parts = [b"".join(self._parts)]
            self._need = 4 + max(unpack_size(self._parts[0])[0], 0)
        if self._have < self._need:
            self._marks += _marks(piece.starts, piece.numbers, 0, len(piece.starts) - 1, self.position)
            return
        data = b"".join(self._parts)
        time, packet = self._first
        starts, marks = [self.position, *piece.starts], self._marks
        self._clear()
        self._marks = marks
        self._split(self.position, data, starts, [time, *piece.times], [packet, *piece.numbers], out)

    def _jump(self, piece: Piece, out: list[Raw]) -> None:
        """What lies before the piece was left out of a slice: a frame begins there."""
        if self._have or self._holed:
            self._hole(piece, out)
        if self.collected.size:
            self._give_up_search()
        self._clear()
        self.lost, self.position = False, piece.position

    def _hole(self, piece: Piece, out: list[Raw]) -> bool:
        """Bytes are missing before the piece. Whether the piece's own bytes are still to be read."""
        begin = piece.position - piece.missing
        if self.lost:
            self._give_up_search()
            return True
        if self._have < 4 and not self._holed:  # the size itself is lost
            self._lose(self.position, f"{piece.missing:,} bytes are missing at position {begin:,}")
            return True
        end = self.position + self._need
        if not self._holed:
            cut = f"the capture's snaplen cut off all but {self._have:,} of {self._need:,} bytes"
            lost = f"{min(piece.missing, end - begin):,} of {self._need:,} bytes are missing from the capture"
            self._holed = (Quality.TRUNCATED, cut) if piece.cut else (Quality.GAP, lost)
        if end > piece.position:
            return True
        if piece.cut or end == piece.position:
            self._emit_holed(piece.times[0], piece.numbers[0], out)
        else:
            self._emit_holed(*self._first, out)
        if end < piece.position:
            self._lose(end, f"{piece.position - end:,} bytes are missing at position {end:,}")
        return True

    def _behind_hole(self, piece: Piece, out: list[Raw]) -> None:
        """The frame that a hole hit goes on: its bytes are of no use, its end is."""
        end = self.position + self._need
        if piece.position + len(piece.data) < end:
            return
        offset = end - piece.position
        packet = max((at for at, start in enumerate(piece.starts) if start < end), default=0)
        self._emit_holed(piece.times[packet], piece.numbers[packet], out)
        left = rest(piece.position, piece.data, piece.starts, piece.times, piece.numbers, offset)
        self._split(*left[:5], out)

    def _emit_holed(self, last_time: int, last_packet: int, out: list[Raw]) -> None:
        assert self._holed is not None
        quality, note = self._holed
        time, packet = self._first
        data = b"".join(self._parts)
        marks = tuple(self._marks)
        out.append(Raw(self.position, data, self._need - 4, time, last_time, packet, last_packet, quality, note, marks))
        position = self.position + self._need
        self._clear()
        self.position = position

    def _clear(self) -> None:
        self._parts, self._have, self._need, self._holed, self._marks = [], 0, 0, None, []

    def _lose(self, position: int, reason: str) -> None:
        self._clear()
        self.lost, self.position, self.reason = True, position, reason

    def _collect(self, piece: Piece, out: list[Raw], skip: int = 0) -> None:
        """Keeps bytes until a boundary is found among them. skip: bytes at the front that are none.

        What is new is searched by itself, all of it together only when it has doubled: the work stays linear."""
        if not piece.data:
            return
        collected = self.collected
        collected.add(piece)
        if len(piece.data) - skip >= LEAST and self._search(piece, out, skip):
            return
        if collected.several and collected.size >= 2 * self._searched:
            self._searched = collected.size
            if self._search(collected.whole(), out, 0):
                return
        if collected.cost > COLLECTED:
            self._drop(max(collected.size - TAIL, collected.size // 2))
            self._searched = collected.size

    def _search(self, piece: Piece, out: list[Raw], skip: int) -> bool:
        """Looks for a boundary in a piece, and goes on from there."""
        offsets = [start - piece.position - skip for start in piece.starts if start >= piece.position + skip]
        found = self.search(piece.data[skip:], offsets)
        if found is None:
            return False
        left = rest(piece.position, piece.data, piece.starts, piece.times, piece.numbers, found + skip)
        if left.position > self.position:
            first = self.collected.first_time if self.collected.size else left.times[0]
            self._skip(Skipped(self.position, left.position - self.position, first, self.reason))
        self.collected.clear()
        self.lost, self._searched = False, 0
        self._split(*left[:5], out)
        return True

    def _drop(self, length: int) -> None:
        """Gives up bytes at the front of what was collected."""
        if length <= 0:
            return
        time = self.collected.first_time
        end = self.collected.drop(length)
        self._skip(Skipped(self.position, end - self.position, time, self.reason))
        self.position = end

    def _give_up_search(self) -> None:
        self._drop(self.collected.size)


def _marks(starts: list[int], numbers: list[int], low: int, high: int, base: int) -> list[tuple[int, int]]:
    """The packets from low to high, with where they begin in a frame at base."""
    return [(max(starts[at] - base, 0), numbers[at]) for at in range(low, high + 1)]
