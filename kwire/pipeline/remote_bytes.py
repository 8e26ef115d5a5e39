"""Leaves long bytes of parts in the capture file and sends their file ranges instead.

A frame of megabytes that a split boundary cuts would be sent to the stitch; instead the split sends the file ranges of
its bytes, after comparing them, and the stitch reads them from the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.capture.streams import Piece
from kwire.capture.tcp import Segments
from kwire.pipeline.connection_parts import ConnectionPart, Flow
from kwire.pipeline.splits import Split
from kwire.pipeline.stores import opened

LEAST = 1 << 13  # bytes; shorter ones are sent

FileRanges = list[tuple[int, int]]  # offset in the file, length


class RemoteRange(NamedTuple):
    """Bytes of a part that were left out. what: "head" or "partial", with turn the client's stream (0) or the broker's
    (1), or "open", with turn the index of the open request."""

    what: str
    turn: int
    places: FileRanges


class Finder:
    """Finds the file offsets of packets' payloads. kept: segments, with the file offset of their buffer."""

    def __init__(self, kept: Iterable[tuple[Segments, int]]) -> None:
        parts = list(kept)
        number = np.concatenate([segments.number for segments, _ in parts] or [np.zeros(0, np.int64)])
        start = np.concatenate([segments.start + base for segments, base in parts] or [np.zeros(0, np.int64)])
        have = np.concatenate([segments.have for segments, _ in parts] or [np.zeros(0, np.int64)])
        order = np.argsort(number, kind="stable")
        self._number: NDArray[np.int64] = number[order]
        self._start: NDArray[np.int64] = start[order]
        self._have: NDArray[np.int64] = have[order]
        self._buffers = [(base, segments.buffer) for segments, base in parts]

    def places(self, data: bytes, cuts: list[tuple[int, int]]) -> FileRanges | None:
        """The file ranges of the bytes, which consist of cuts (offset, packet); None where the file's bytes differ."""
        out = []
        for at, (low, number) in enumerate(cuts):
            high = cuts[at + 1][0] if at + 1 < len(cuts) else len(data)
            row = int(np.searchsorted(self._number, number))
            if high <= low:
                continue
            if row >= len(self._number) or self._number[row] != number:
                return None
            start, have, length = int(self._start[row]), int(self._have[row]), high - low
            for begin in (start, start + have - length):
                if begin >= start and length <= have and self._bytes(begin, length) == data[low:high]:
                    out.append((begin, length))
                    break
            else:
                return None
        return out

    def _bytes(self, start: int, length: int) -> bytes | None:
        for base, buffer in self._buffers:
            if base <= start and start + length <= base + len(buffer):
                return bytes(buffer[start - base : start - base + length])
        return None


def long(part: ConnectionPart) -> bool:
    """Whether the part has bytes to be left in the file."""
    heads = [len(piece.data) for piece in part.head if piece is not None]
    asked = [len(raw.data) for _, raw in part.exit.open]
    return max([*heads, *asked, *(len(flow.frames.parts) for flow in part.exit.flows)]) >= LEAST


def leave(part: ConnectionPart, finder: Finder) -> ConnectionPart:
    """The part without its long bytes."""
    far: list[RemoteRange] = []
    heads = list(part.head)
    for turn, piece in enumerate(part.head):
        if piece is None or len(piece.data) < LEAST:
            continue
        cuts = [
            (max(start - piece.position, 0), number) for start, number in zip(piece.starts, piece.numbers, strict=True)
        ]
        places = finder.places(piece.data, cuts)
        if places is not None:
            far.append(RemoteRange("head", turn, places))
            heads[turn] = piece._replace(data=b"")
    flows = list(part.exit.flows)
    for turn, flow in enumerate(part.exit.flows):
        if len(flow.frames.parts) < LEAST:
            continue
        places = finder.places(flow.frames.parts, flow.frames.marks)
        if places is not None:
            far.append(RemoteRange("partial", turn, places))
            flows[turn] = flow._replace(frames=flow.frames._replace(parts=b""))
    waiting = list(part.exit.open)
    for turn, (index, raw) in enumerate(waiting):
        places = finder.places(raw.data, list(raw.marks) or [(0, raw.packet)]) if len(raw.data) >= LEAST else None
        if places is not None:
            far.append(RemoteRange("open", turn, places))
            waiting[turn] = index, raw._replace(data=b"")
    if not far:
        return part
    exit = part.exit._replace(flows=(flows[0], flows[1]), open=waiting)
    return replace(part, head=(heads[0], heads[1]), exit=exit, far=far)


def fetch(part: ConnectionPart, split: Split) -> None:
    """Reads the part's left-out bytes from the split's file. Raises OSError."""
    if not part.far:
        return
    with opened(split.path, split.store) as file:
        for found in part.far:
            pieces = []
            for start, length in found.places:
                file.seek(start)
                pieces.append(file.read(length))
            data = b"".join(pieces)
            if found.what == "open":
                index, raw = part.exit.open[found.turn]
                part.exit.open[found.turn] = index, raw._replace(data=data)
            elif found.what == "head":
                _put_head(part, found.turn, data)
            else:
                _put_partial(part, found.turn, data)
    part.far = []


def _put_head(part: ConnectionPart, turn: int, data: bytes) -> None:
    heads: list[Piece | None] = list(part.head)
    piece = heads[turn]
    assert piece is not None
    heads[turn] = piece._replace(data=data)
    part.head = heads[0], heads[1]


def _put_partial(part: ConnectionPart, turn: int, data: bytes) -> None:
    flows: list[Flow] = list(part.exit.flows)
    flow = flows[turn]
    flows[turn] = flow._replace(frames=flow.frames._replace(parts=data))
    part.exit = part.exit._replace(flows=(flows[0], flows[1]))
