"""Segments of irregular connections, with their bytes, which a split leaves to the stitch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kwire.capture.packets import Ints
from kwire.capture.segmenter import Segmenter
from kwire.capture.streams import WRAP
from kwire.capture.tcp import SYN, ConnectionFilter, Key, Segments
from kwire.pipeline.packed_numbers import Packed, packed, unpacked
from kwire.pipeline.splits import Split, SplitReader
from kwire.session.reader import Settings
from kwire.session.twins import RANDOM
from kwire.wire.columns import tally

SHIPPED = 1 << 16  # bytes of a connection's segments that are sent to the stitch; more are read again
LEVEL = 9  # of zstd
COLUMNS = ("number", "time", "seq", "flags", "start", "have", "length")


class LeftoverSegments(NamedTuple):
    """Segments of one block of a split. joined: reassembled from IP fragments, after the others."""

    block: int
    joined: bool
    segments: Segments

    def __reduce__(self) -> tuple[Callable[..., LeftoverSegments], tuple[Any, ...]]:
        return _shipped, (self.block, self.joined, *_to_ship(self.segments))


def pair(key: Key) -> Key:
    """The key in one canonical direction."""
    return min(key, (*key[3:], *key[:3]))


def chosen(segments: Segments, keys: Collection[Key]) -> Segments:
    """The segments of these connections, with a buffer of their own."""
    return _taken(segments, np.flatnonzero(_flows(segments, keys)[segments.flow]))


def firsts(segments: Segments, keys: Collection[Key]) -> set[int]:
    """The sequence numbers at which the streams of these connections begin in a block, without low ones
    (session/twins.py)."""
    left = _flows(segments, keys)
    if not left.any():
        return set()
    first = np.zeros(len(segments.keys), np.intp)
    first[segments.flow[::-1]] = np.arange(len(segments))[::-1]  # reversed, so that a flow's first segment remains
    rows = first[left]
    begins = (segments.seq[rows] + (segments.flags[rows] & SYN > 0)) % WRAP
    return set(begins[begins >= RANDOM].tolist())


def left_over(
    kept: Sequence[tuple[int, bool, Segments]], keys: Collection[Key]
) -> tuple[set[Key], list[LeftoverSegments]]:  # fmt: skip
    """The segments of these connections in blocks; first those connections of which there are too many, so that they
    are to be read again. kept: block, whether joined, segments."""
    sizes = sum((_sizes_of(segments, keys) for _, _, segments in kept), Counter[Key]())
    again = {key for key, size in sizes.items() if size > SHIPPED}
    few = ((at, joined, chosen(segments, set(keys) - again)) for at, joined, segments in kept)
    return again, [LeftoverSegments(at, joined, segments) for at, joined, segments in few if len(segments)]


def _sizes_of(segments: Segments, keys: Collection[Key]) -> Counter[Key]:
    """The bytes of these connections."""
    totals = tally(segments.flow, segments.have, len(segments.keys))
    out: Counter[Key] = Counter()
    for flow in np.flatnonzero(_flows(segments, keys)).tolist():
        out[pair(segments.keys[flow])] += int(totals[flow])
    return out


def _flows(segments: Segments, keys: Collection[Key]) -> NDArray[np.bool_]:
    """Which flows are of these connections."""
    both = {*keys, *((*key[3:], *key[:3]) for key in keys)}
    return np.array([key in both for key in segments.keys], bool)


def weigh(segments: Segments) -> Segments:
    """The segments with a buffer of their own, so that the window's can be freed."""
    return _taken(segments, np.arange(len(segments)))


def leftover_of(
    split: Split, settings: Settings, keys: set[Key], window: int | None = None
) -> Iterator[LeftoverSegments]:
    """The segments of these connections in the split, block by block."""
    cut = SplitReader(split) if window is None else SplitReader(split, window)
    segmenter = Segmenter(ConnectionFilter(settings.ports, settings.hosts))
    for at, (_, packets) in enumerate(cut.blocks()):
        for joined, segments in enumerate(segmenter.read(packets).segments):
            left = chosen(segments, keys)
            if len(left):
                yield LeftoverSegments(at, joined > 0, left)


def together(parts: Sequence[tuple[Segments, int]]) -> Segments:
    """Joins segments of consecutive blocks. parts: with each, what to add to its packet numbers."""
    index: dict[Key, int] = {}
    flows: list[NDArray[np.intp]] = []
    columns: dict[str, list[Ints]] = {name: [] for name in COLUMNS}
    base, buffers = 0, []
    for segments, before in parts:
        for name in COLUMNS:
            columns[name].append(getattr(segments, name) + {"number": before, "start": base}.get(name, 0))
        which = np.array([index.setdefault(key, len(index)) for key in segments.keys], np.intp)
        flows.append(which[segments.flow] if len(which) else segments.flow)
        buffers.append(segments.buffer)
        base += len(segments.buffer)
    if not parts:
        none = np.zeros(0, np.int64)
        return Segments(memoryview(b""), none, none, none, none, none, none, none, none.astype(np.intp), [])
    order = np.argsort(np.concatenate(columns["number"]), kind="stable")
    number, time, seq, flags, start, have, length = (np.concatenate(columns[name])[order] for name in COLUMNS)
    return _in_order(Segments(
        memoryview(b"".join(buffers)), number, time, seq, flags, start, have, length, np.concatenate(flows)[order],
        list(index),
    ))  # fmt: skip


def _to_ship(segments: Segments) -> tuple[list[Key], list[Packed], int, bytes]:
    """The keys, what of the columns cannot be foretold, the number of bytes and the bytes, compressed. A segment's
    sequence number is foretold by the one before it in its flow."""
    segments = weigh(segments)
    order = np.argsort(segments.flow, kind="stable")
    have, length = segments.have[order], segments.length[order]
    ahead = np.diff(segments.seq[order], prepend=0) - np.concatenate(([0], length))[: len(length)]
    columns = (
        np.diff(segments.number, prepend=0), np.diff(segments.time, prepend=0), segments.flow, ahead,
        segments.flags[order], have, length - have,
    )  # fmt: skip
    data = bytes(segments.buffer)
    return segments.keys, [packed(column) for column in columns], len(data), _codec().compress(data, asbytes=True)


def _shipped(
    block: int, joined: bool, keys: list[Key], columns: list[Packed], size: int, data: bytes
) -> LeftoverSegments:  # fmt: skip
    """From _to_ship."""
    number, time, flow, ahead, flags, have, length = (unpacked(*column) for column in columns)
    place = np.argsort(np.argsort(flow, kind="stable"))
    length += have
    seq = np.cumsum(ahead + np.concatenate(([0], length))[: len(length)])
    have = have[place]
    sizes = np.maximum(have, 0)
    return LeftoverSegments(block, joined, Segments(
        memoryview(_codec().decompress(data, size, asbytes=True)), np.cumsum(number), np.cumsum(time), seq[place],
        flags[place], np.cumsum(sizes) - sizes, have, length[place], flow.astype(np.intp), keys,
    ))  # fmt: skip


def _codec() -> pa.Codec:
    return pa.Codec("zstd", LEVEL)


def _in_order(segments: Segments) -> Segments:
    """The segments with flows numbered in order of appearance."""
    used, first = np.unique(segments.flow, return_index=True)
    order = used[np.argsort(first)]
    place = np.zeros(len(segments.keys), np.intp)
    place[order] = np.arange(len(order))
    return replace(segments, flow=place[segments.flow], keys=[segments.keys[flow] for flow in order.tolist()])


def _taken(segments: Segments, rows: NDArray[np.intp]) -> Segments:
    starts, have = segments.start[rows], segments.have[rows]
    view = segments.buffer
    data = b"".join(
        view[start : start + size] for start, size in zip(starts.tolist(), have.tolist(), strict=True) if size > 0
    )
    sizes = np.maximum(have, 0)
    return _in_order(Segments(
        memoryview(data), segments.number[rows], segments.time[rows], segments.seq[rows], segments.flags[rows],
        np.cumsum(sizes) - sizes, have, segments.length[rows], segments.flow[rows], segments.keys,
    ))  # fmt: skip
