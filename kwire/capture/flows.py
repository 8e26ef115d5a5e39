"""Segments of a block sorted by flow and within it by sequence number, and runs of them joined."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.capture.cuts import Cut
from kwire.capture.packets import Ints
from kwire.capture.streams import HALF, WRAP, SegmentRun
from kwire.capture.tcp import ACK, FIN, RST, SYN, Segments
from kwire.wire.columns import tally

ASKS, ANSWERS = 1, 2


class Opening(NamedTuple):
    """A flow from its SYN on. seq, number, time: of the SYN; size: bytes; last_number, last_time: of the last packet
    with bytes; segments: their number; first, last: their times, ns. fin_number, fin_time: of a FIN right behind the
    bytes; -1 if it ends otherwise."""

    seq: int
    number: int
    time: int
    size: int
    last_number: int
    last_time: int
    segments: int
    first: int
    last: int
    fin_number: int
    fin_time: int


class Flows:
    """Segments sorted by flow and within it by sequence number, those without bytes first.

    What pieces are made of is kept in lists, which are faster for single values.
    """

    def __init__(self, segments: Segments) -> None:
        bare, first = segments.length == 0, np.zeros(len(segments.keys), np.int64)
        first[segments.flow[::-1]] = segments.seq[::-1]  # reversed, so that the first of a flow remains
        relative = (segments.seq - first[segments.flow] + HALF) % WRAP
        order = _ordered(segments.flow, len(segments.keys), bare, relative)
        flow, seq, length = segments.flow[order], segments.seq[order], segments.length[order]
        flags, have, start = segments.flags[order], segments.have[order], segments.start[order]
        time = segments.time[order]
        follows = np.zeros(len(order), np.int64)  # 1 where a segment does not follow the one before it
        follows[1:] = seq[1:] != (seq[:-1] + length[:-1]) % WRAP
        holes = np.cumsum(follows)
        cut = have < length
        follows[1:] |= cut[:-1]
        self._splits: list[int] = np.flatnonzero(follows).tolist()
        cuts, sums = (np.concatenate(([0], np.cumsum(column))) for column in (cut, length))
        self._sums = sums
        bounds = np.searchsorted(flow, np.arange(len(segments.keys) + 1))
        low, high = bounds[:-1], bounds[1:]
        self._offsets: list[int] = (sums[:-1] - sums[low][flow]).tolist()  # within the flow
        self.bounds: list[int] = bounds.tolist()
        self._first, self._last = np.minimum.reduceat(time, low), np.maximum.reduceat(time, low)
        self.first_times: list[int] = self._first.tolist()
        self.last_times: list[int] = self._last.tolist()
        data = low + np.add.reduceat(bare[order].astype(np.int64), low)
        self._data, self._bounds = data, bounds
        self.data: list[int] = data.tolist()  # the first segment of each flow that carries bytes
        begin = np.minimum(data, high - 1)
        self.begins: list[int] = seq[begin].tolist()  # its sequence number
        whole = (data < high) & (holes[begin] == holes[high - 1]) & (cuts[begin] == cuts[high])
        self.whole: list[bool] = whole.tolist()  # whether the segments with bytes follow each other and are not cut
        self.index = {key: number for number, key in enumerate(segments.keys)}
        syns = np.flatnonzero(flags & SYN)
        controls = np.flatnonzero(flags & (FIN | RST))
        self.syns, self.controls = _of_flows(flow, syns), _of_flows(flow, controls)
        ends = (seq + length + (flags & SYN > 0))[controls] % WRAP
        # the rows of FINs and RSTs: their flags, and the sequence number behind them
        self.control = dict(
            zip(controls.tolist(), zip(flags[controls].tolist(), ends.tolist(), strict=True), strict=True)
        )
        # whether a SYN, if there is one, is alone, carries nothing and comes right before what there is, and first
        opens = tally(flow[syns], size=len(low)) < 2
        of = flow[syns]
        opens[of] &= (length[syns] == 0) & ((data[of] == high[of]) | (seq[begin[of]] == (seq[syns] + 1) % WRAP))
        opens[of] &= order[syns] == np.minimum.reduceat(order, low)[of]
        self.opens: list[bool] = opens.tolist()
        # the row of each flow's FIN, where it has one and no RST
        of_controls, self._fins = flow[controls], np.full(len(low), -1)
        self._fins[of_controls] = np.where(flags[controls] & RST, -1, controls)
        self._fins[tally(of_controls, size=len(low)) != 1] = -1
        self.order, self.seqs, self.lengths, self.flags = order, seq, length, flags
        self.time, self.number = time, segments.number[order]
        self.times: list[int] = time.tolist()
        self.numbers: list[int] = self.number.tolist()
        self._starts: list[int] = start.tolist()
        self._ends: list[int] = (start + have).tolist()
        self._buffer, self._begin, self._have = segments.buffer, start, have
        # whether all of a flow is there from its SYN on, and could be Kafka's, as the first byte is the zero of a size
        # below 16 MiB: ASKS or ANSWERS, as the SYN does, else 0
        plain = whole & opens & (tally(of, size=len(low)) == 1) & (not segments.cuts)
        plain[plain] = np.frombuffer(self._buffer, np.uint8)[start[begin[plain]]] == 0
        entire, self._syn = np.zeros(len(low), np.int64), np.zeros(len(low), np.intp)
        entire[of], self._syn[of] = np.where(flags[syns] & ACK, ANSWERS, ASKS), syns
        entire[~plain] = 0
        self.entire: list[int] = entire.tolist()
        self.cuts: dict[int, Cut] = {}  # of a slice: what was left out before a segment
        if segments.cuts:
            places = np.argsort(order).tolist()
            self.cuts = {places[row]: cut for row, cut in segments.cuts.items() if cut.begin is not None}

    def carries(self, flow: int) -> bool:
        """Whether a flow has bytes."""
        return self.size(flow) > 0

    def size(self, flow: int) -> int:
        """A flow's bytes on the wire."""
        return int(self._sums[self.bounds[flow + 1]] - self._sums[self.bounds[flow]])

    def opened(self, flow: int, other: int | None) -> bool:
        """Whether both flows together are a connection that the first one opens."""
        return other is not None and other > flow and self.entire[flow] == ASKS and self.entire[other] == ANSWERS

    def openings(self, flows: Sequence[int]) -> Iterator[Opening]:
        """The openings of flows that are there from SYN to end."""
        of = np.array(flows, np.intp)
        syn, low, high = self._syn[of], self._bounds[of], self._bounds[of + 1]
        sizes = self._sums[high] - self._sums[low]
        ends = (self.seqs[syn] + 1 + sizes) % WRAP
        fins = self._fins[of]
        fins[(self.seqs[fins] + self.lengths[fins]) % WRAP != ends] = -1
        columns = (
            self.seqs[syn], self.number[syn], self.time[syn], sizes,
            self.number[high - 1], self.time[high - 1], high - low, self._first[of], self._last[of],
            np.where(fins < 0, -1, self.number[fins]), np.where(fins < 0, -1, self.time[fins]),
        )  # fmt: skip
        return map(Opening._make, zip(*(column.tolist() for column in columns), strict=True))

    def data_at(self, flows: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """For whole flows the row of the first segment with bytes, and the number of such segments."""
        low = self._data[flows]
        return low, self._bounds[flows + 1] - low

    def bytes_of(self, rows: NDArray[np.intp]) -> bytes:
        """The captured bytes of segments."""
        buffer, begin = self._buffer, self._begin[rows]
        return b"".join([buffer[a:b] for a, b in zip(begin.tolist(), (begin + self._have[rows]).tolist(), strict=True)])

    def joined(self, low: int, high: int, position: int) -> tuple[bytes, list[int], list[int], list[int]]:
        """The bytes of segments that follow each other, and their packets, as Stream.extend takes them."""
        buffer = self._buffer
        if high - low == 1:
            data = bytes(buffer[self._starts[low] : self._ends[low]])
            return data, [position], self.times[low:high], self.numbers[low:high]
        parts = [buffer[a:b] for a, b in zip(self._starts[low:high], self._ends[low:high], strict=True)]
        places, shift = self._offsets[low:high], position - self._offsets[low]
        if shift:
            places = [place + shift for place in places]
        return b"".join(parts), places, self.times[low:high], self.numbers[low:high]

    def runs(self, low: int, high: int) -> list[SegmentRun]:
        """The segments in runs that follow each other."""
        first, last = bisect_right(self._splits, low), bisect_left(self._splits, high)
        ends = [low, *self._splits[first:last], high]
        return [self.run(start, end, int(self.seqs[start])) for start, end in pairwise(ends)]

    def run(self, low: int, high: int, seq: int) -> SegmentRun:
        data, offsets, times, numbers = self.joined(low, high, 0)
        return SegmentRun(
            seq, data, int(self._sums[high] - self._sums[low]), offsets, times, numbers, self.cuts.get(low)
        )


def _of_flows(flow: NDArray[np.intp], rows: NDArray[np.intp]) -> dict[int, list[int]]:
    """The rows of each flow that has any."""
    found: dict[int, list[int]] = {}
    for of, row in zip(flow[rows].tolist(), rows.tolist(), strict=True):
        found.setdefault(of, []).append(row)
    return found


def _ordered(flow: NDArray[np.intp], flows: int, bare: NDArray[np.bool_], relative: Ints) -> NDArray[np.intp]:
    """As np.lexsort((relative, ~bare, flow)). Most flows come in order: only the others are sorted."""
    order = np.argsort(flow.astype(np.uint16) if flows <= 1 << 16 else flow, kind="stable")  # 16 bits: by counting
    of, none, place = flow[order], bare[order], relative[order]
    fine = (of[1:] != of[:-1]) | (none[:-1] & ~none[1:])
    fine |= (none[:-1] == none[1:]) & (place[:-1] <= place[1:])
    if not fine.all():
        odd = np.zeros(flows, bool)
        odd[of[1:][~fine]] = True
        rows = np.flatnonzero(odd[of])
        some = order[rows]
        order[rows] = some[np.lexsort((relative[some], ~bare[some], flow[some]))]
    return order
