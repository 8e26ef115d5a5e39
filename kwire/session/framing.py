"""Frames from a stream: size prefix by size prefix, over any number of packets and over holes.

A frame with a hole is given as far as it was captured; if its end is known, the next one begins there. When the
position of frames is lost (midstream, behind a hole, after an impossible size), bytes are collected until resync.py
finds a boundary. A long frame is joined once, when it is complete.
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

COLLECTED = 1 << 20  # memory cost in bytes up to which bytes are collected for a search
LEAST = 8  # bytes needed to recognize a frame
ZEROS = bytes(8)  # taken for unwritten memory, not for two frames of size 0
FOREIGN = 64  # bytes kept to recognize another protocol
TAIL = 1 << 16  # bytes at the end that stay for the next search

unpack_size = Struct(">i").unpack_from


Marks = tuple[tuple[int, int], ...]


class Raw(NamedTuple):
    """A frame. data begins with the size prefix and is shorter than size + 4 where bytes are missing; then quality is
    truncated (cut by the snaplen or the end of the capture) or gap (packets are missing), and note says more. marks: in
    a frame of several packets, where each begins, as (offset, packet)."""

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
    """Bytes of a stream of which no frame could be made. time: ns since the epoch."""

    position: int
    length: int
    time: int
    reason: str


class Partial(NamedTuple):
    """The state of a framer inside a frame: position: where the incomplete frame begins; parts: its bytes so far; need:
    its length (0: not known yet); first: time and packet of its first byte."""

    position: int
    frames: int
    parts: bytes
    need: int
    first: tuple[int, int]
    marks: list[tuple[int, int]]


Search = Callable[[bytes, list[int]], int | None]  # bytes, offsets where packets begin → where a frame begins


class Framer:
    """feed(pieces) gives the complete frames. search: finds a boundary when the position of frames is lost. lost:
    whether it is at the start; max_size: the largest size prefix accepted, bytes."""

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
        self.foreign = b""  # the bytes at the first impossible size
        self.frames = 0
        self.collected = Collected()  # while frames are lost
        self._searched = 0
        self._marks: list[tuple[int, int]] = []  # of the incomplete frame
        self._parts: list[bytes] = []  # of the incomplete frame
        self._have = 0
        self._need = 0  # 0: its size is not known yet
        self._first = (0, 0)  # time and packet of its first byte
        self._holed: tuple[Quality, str] | None = None  # quality and note, if it has a hole
        self._most: int | None = None  # frames after which take stops
        self._left: Piece | None = None  # the rest of that piece

    @property
    def waiting(self) -> int:
        """Bytes kept for an incomplete frame or a search."""
        return self._have + self.collected.size

    @property
    def cost(self) -> int:
        """Memory that the waiting bytes take, about, in bytes: every packet adds a fixed cost."""
        marked = max(len(self._marks), len(self._parts) - 1) if self._have else 0
        return self._have + PACKET_COST * marked + self.collected.cost

    def feed(self, pieces: Iterable[Piece]) -> list[Raw]:
        """All frames of the pieces."""
        return self.take(deque(pieces))

    def take(self, pieces: deque[Piece], most: int | None = None) -> list[Raw]:
        """Takes frames off the front of the pieces. most: how many; an incomplete frame is always finished first."""
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
        """A copy with the same state."""
        made = copy(self)
        made._parts, made._marks, made.skipped = list(self._parts), list(self._marks), []
        made.collected = self.collected.copy()
        return made

    @property
    def clean(self) -> bool:
        """Whether the next byte is a frame's first."""
        return not (self.lost or self._have or self._holed)

    def partial(self) -> Partial | None:
        """Its state; None when frames are lost or the current one has a hole."""
        if self.lost or self._holed:
            return None
        return Partial(self.position, self.frames, b"".join(self._parts), self._need, self._first, list(self._marks))

    def begin(self, position: int) -> None:
        """Sets where the next frame begins."""
        self.lost, self.position = False, position

    def resume(self, partial: Partial) -> None:
        """Goes on from the state that partial() gave."""
        self._clear()
        self.lost, self.position, self.frames = False, partial.position, partial.frames
        self._parts, self._have = [partial.parts] * bool(partial.parts), len(partial.parts)
        self._need, self._first, self._marks = partial.need, partial.first, list(partial.marks)

    def finish(self, why: str, ended: bool) -> list[Raw]:
        """Ends the stream; gives an incomplete frame. why: for its note; ended: the connection was closed, so that
        nothing is missing from the capture."""
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
        """Notes skipped bytes, joined with those right before them."""
        last = self.skipped[-1] if self.skipped else None
        if last is not None and last.position + last.length == skipped.position and last.reason == skipped.reason:
            self.skipped[-1] = last._replace(length=last.length + skipped.length)
        else:
            self.skipped.append(skipped)

    def take_skipped(self) -> list[Skipped]:
        """The ranges of which no frames could be made, each given once."""
        skipped = self.skipped
        if skipped:
            self.skipped = []
        return skipped

    def give_up(self) -> None:
        """Drops an incomplete frame or what is collected."""
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
        """Adds a piece to an incomplete frame."""
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
        """The bytes before the piece were left out of a slice; the piece begins with a frame."""
        if self._have or self._holed:
            self._hole(piece, out)
        if self.collected.size:
            self._give_up_search()
        self._clear()
        self.lost, self.position = False, piece.position

    def _hole(self, piece: Piece, out: list[Raw]) -> bool:
        """Handles missing bytes before the piece; returns whether the piece itself is still to be read."""
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
        """Skips the rest of a frame with a hole: only its end matters."""
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
        """Collects bytes until a boundary is found in them. skip: bytes at the front where there is none.

        A new piece is searched by itself, everything together only when it has doubled, so that the work stays linear.
        """
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
        """Skips bytes at the front of what was collected."""
        if length <= 0:
            return
        time = self.collected.first_time
        end = self.collected.drop(length)
        self._skip(Skipped(self.position, end - self.position, time, self.reason))
        self.position = end

    def _give_up_search(self) -> None:
        self._drop(self.collected.size)


def _marks(starts: list[int], numbers: list[int], low: int, high: int, base: int) -> list[tuple[int, int]]:
    """(offset, packet number) of the packets low to high in a frame at position base."""
    return [(max(starts[at] - base, 0), numbers[at]) for at in range(low, high + 1)]
