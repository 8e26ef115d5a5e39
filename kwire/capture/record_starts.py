"""Where the records of a pcap file begin, for many of them at once.

Each record's header gives its length, so records are usually followed one by one. Here many places of a window that
look like headers are starts of lanes, and all lanes step together as columns. A lane's records count only if the lane
before it arrives exactly at its beginning, so the result equals a walk one by one, or ends earlier.
"""

from __future__ import annotations

from struct import Struct

import numpy as np

from kwire.capture.packets import Ints

RECORD = 16  # bytes of a record's header
MAX_PACKET = 1 << 22  # bytes; a record that claims more is damage
SAMPLE = 64  # records whose size gives that of lanes
LANE = 128  # records of a lane, about
LANES = 8  # fewer do not pay
LONGEST = 4  # times as many records has the longest lane
DAY = 86400  # seconds; records further apart do not belong together
REACH = 4  # records' sizes within which a lane's beginning is looked for
TRIES = 8  # places that are looked at for a beginning
SECOND = 1_000_000_000  # ns; a fraction of it is less
HOPS = 3  # headers in a row that make a lane's beginning


def record_starts(view: memoryview, pos: int, order: str, lane: int = LANE) -> tuple[Ints, int]:
    """The offsets of records from pos on that lie whole in the view and claim no more than MAX_PACKET, and the offset
    behind them. Stops early, perhaps at once, where lanes do not join. lane: records of a lane."""
    nothing = np.zeros(0, np.int64), pos
    end = len(view)
    size = _usual(view, pos, order)
    stride = size * lane
    if not size or (end - pos) // stride < LANES:
        return nothing
    captured = np.ndarray((end - RECORD + 1,), order + "u4", view, 8, (1,))  # of the record that begins there
    begins = np.array([pos, *_begins(view, pos, range(pos + stride, end - stride, stride), REACH * size, order)])
    limits = np.append(begins[1:], end)
    last = end - RECORD
    at, within = begins, np.minimum(limits, last + 1)
    steps = [at]
    for _ in range(LONGEST * lane):
        goes = at < within
        if not goes.any():
            break
        at = np.where(goes, at + captured[np.minimum(at, last)] + RECORD, at)
        steps.append(at)
    breaks = np.flatnonzero(at[:-1] != begins[1:])
    lanes = int(breaks[0]) + 1 if len(breaks) else len(begins)
    walked = np.array(steps)[:, :lanes].T
    starts: Ints = walked[:, :-1][walked[:, 1:] != walked[:, :-1]]
    ends = np.append(starts[1:], at[lanes - 1])
    damaged = np.flatnonzero((ends - starts > RECORD + MAX_PACKET) | (ends > end))
    if len(damaged):
        return starts[: damaged[0]], int(starts[damaged[0]])
    return starts, int(at[lanes - 1])


def _usual(view: memoryview, pos: int, order: str) -> int:
    """The size of a record, about: the mean of the first ones; 0 where they make no sense."""
    length_at = Struct(order + "I").unpack_from
    at = pos
    for _ in range(SAMPLE):
        if at > len(view) - RECORD:
            return 0
        (captured,) = length_at(view, at + 8)
        if captured > MAX_PACKET:
            return 0
        at += RECORD + captured
    return (at - pos) // SAMPLE


def _begins(view: memoryview, pos: int, seeds: range, width: int, order: str) -> list[int]:
    """The first place from each seed on, within width bytes, that looks like a header with others behind it. Seeds
    without one are left out."""
    header = Struct(order + "IIII").unpack_from
    seconds = header(view, pos)[0]
    shift = 2 if order == "<" else 0  # to the two bytes of a time that stay the same for hours
    mark = bytes(view[pos + shift : pos + shift + 2])
    last = len(view) - RECORD
    found = []
    for seed in seeds:
        near = bytes(view[seed : seed + width])
        at = near.find(mark, shift)
        for _ in range(TRIES):
            if at < 0:
                break
            here = begin = seed + at - shift
            for _ in range(HOPS):
                if here > last:
                    break
                time, fraction, captured, length = header(view, here)
                if captured > length or captured > MAX_PACKET or fraction >= SECOND or abs(time - seconds) > DAY:
                    break
                here += RECORD + captured
            else:
                found.append(begin)
                break
            at = near.find(mark, at + 1)
    return found
