"""Writes blocks of segments into shared memory, and takes a worker's share of them: every connection goes to one
worker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.capture.cuts import Cut
from kwire.capture.segmenter import Block
from kwire.capture.tcp import Key, Segments
from kwire.tables.shared_memory import MemorySlot, Piece, Place

COLUMNS = ("number", "time", "seq", "flags", "start", "have", "length", "flow")


class Left(NamedTuple):
    """A block in a slot: number of packets, times, secrets, and for each Segments the offsets of buffer, columns and
    keys; tunnels and cuts travel by pipe."""

    packets: int
    first_time: int
    last_time: int
    places: list[list[Place]]
    tunnels: list[dict[Key, str]]
    secrets: tuple[bytes, ...]
    cuts: list[dict[int, Cut]]


def leave(slot: MemorySlot, block: Block) -> Left:
    """Writes a block into a slot."""
    pieces = [piece for segments in block.segments for piece in _pieces(segments)]
    places = slot.write(pieces)
    step = len(COLUMNS) + 2
    groups = [places[low : low + step] for low in range(0, len(places), step)]
    tunnels = [segments.tunnels for segments in block.segments]
    cuts = [segments.cuts for segments in block.segments]
    return Left(block.packets, block.first_time, block.last_time, groups, tunnels, block.secrets, cuts)


def take(slot: MemorySlot, left: Left, number: int, of: int) -> Block:
    """The block with the segments of worker number of "of"; valid until the slot is written again."""
    segments = [
        _taken(slot, places, tunnels, cuts, number, of)
        for places, tunnels, cuts in zip(left.places, left.tunnels, left.cuts, strict=True)
    ]
    return Block(left.packets, left.first_time, left.last_time, segments, left.secrets)


def _pieces(segments: Segments) -> list[Piece]:
    columns = [np.asarray(getattr(segments, name), np.int64).tobytes() for name in COLUMNS]
    return [segments.buffer, *columns, np.array(segments.keys, np.uint64).tobytes()]


def _taken(
    slot: MemorySlot, places: list[Place], tunnels: dict[Key, str], cuts: dict[int, Cut], number: int, of: int
) -> Segments:
    buffer, *columns, last = (slot.look(place) for place in places)
    values = dict(zip(COLUMNS, (np.frombuffer(column, np.int64) for column in columns), strict=True))
    keys = np.frombuffer(last, np.uint64).reshape(-1, 6)
    mine = _workers(keys, of) == number
    rows = np.flatnonzero(mine[values["flow"]])
    chosen = {name: column[rows] for name, column in values.items()}
    chosen["flow"] = (np.cumsum(mine) - 1)[chosen["flow"]]
    now = int(values["time"][-1]) if len(values["time"]) else None
    left_out = {new: cuts[old] for new, old in enumerate(rows.tolist()) if old in cuts} if cuts else {}
    named = [tuple(key) for key in keys[mine].tolist()]
    number_of, time, seq, flags, start, have, length, flow = (chosen[name] for name in COLUMNS)
    return Segments(
        buffer, number_of, time, seq, flags, start, have, length, flow, named, now, tunnels, left_out
    )  # fmt: skip


def _workers(keys: NDArray[np.uint64], of: int) -> NDArray[np.uint64]:
    """The worker of each flow; the same for both directions."""
    high, low, port, other_high, other_low, other_port = keys.T
    with np.errstate(over="ignore"):  # ephemeral ports are often all even: the upper bits must decide
        both = (high ^ other_high ^ low ^ other_low) * np.uint64(31) + (port ^ other_port)
        both = (both * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    found: NDArray[np.uint64] = both % np.uint64(of)
    return found
