"""Joins and cuts pieces of a stream, and collects them while the position of the next frame is not known."""

from __future__ import annotations

from bisect import bisect_right

from kwire.capture.streams import PACKET_COST, Piece


class Collected:
    """Consecutive pieces. size: their bytes; cost: the memory they take, about, in bytes."""

    __slots__ = ("_pieces", "cost", "size")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._pieces: list[Piece] = []
        self.size = self.cost = 0

    def copy(self) -> Collected:
        made = Collected()
        made._pieces, made.size, made.cost = list(self._pieces), self.size, self.cost
        return made

    def add(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self.size += len(piece.data)
        self.cost += len(piece.data) + PACKET_COST * len(piece.starts)

    @property
    def several(self) -> bool:
        """Whether pieces were added since the last whole()."""
        return len(self._pieces) > 1

    @property
    def first_time(self) -> int:
        """The first packet's time, ns since the epoch."""
        return self._pieces[0].times[0]

    def whole(self) -> Piece:
        """All pieces joined into one."""
        self._pieces = [joined(self._pieces)]
        return self._pieces[0]

    def drop(self, length: int) -> int:
        """Drops length bytes at the front; returns the position behind them."""
        whole = self.whole()
        left = rest(*whole[:5], length)
        self.clear()
        if left.data:
            self.add(left)
        return left.position


def rest(base: int, data: bytes, starts: list[int], times: list[int], numbers: list[int], offset: int) -> Piece:
    """The piece without its first offset bytes."""
    first = max(bisect_right(starts, base + offset) - 1, 0)
    return Piece(base + offset, data[offset:], starts[first:], times[first:], numbers[first:])


def behind(pieces: list[Piece], position: int) -> list[Piece]:
    """The part of consecutive pieces from the position on."""
    at = len(pieces)
    while at and pieces[at - 1].position >= position:
        at -= 1
    if not at or pieces[at - 1].position + len(pieces[at - 1].data) <= position:
        return pieces[at:]
    cut = pieces[at - 1]
    return [rest(*cut[:5], position - cut.position), *pieces[at:]]


def up_to(pieces: list[Piece], number: int) -> tuple[list[Piece], list[Piece]]:
    """Consecutive pieces in two parts: before the first packet that comes after the one with this number, and from it
    on."""
    for at, piece in enumerate(pieces):
        turn = next((turn for turn, one in enumerate(piece.numbers) if one > number), None)
        if turn == 0:
            return pieces[:at], pieces[at:]
        if turn is not None:
            starts, times, numbers = piece.starts[:turn], piece.times[:turn], piece.numbers[:turn]
            size = piece.starts[turn] - piece.position
            first = piece._replace(data=piece.data[:size], starts=starts, times=times, numbers=numbers)
            return [*pieces[:at], first], [rest(*piece[:5], size), *pieces[at + 1 :]]
    return pieces, []


def joined(pieces: list[Piece]) -> Piece:
    """Consecutive pieces as one."""
    if len(pieces) == 1:
        return pieces[0]
    return Piece(
        pieces[0].position, b"".join(piece.data for piece in pieces),
        [start for piece in pieces for start in piece.starts], [time for piece in pieces for time in piece.times],
        [number for piece in pieces for number in piece.numbers],
    )  # fmt: skip
