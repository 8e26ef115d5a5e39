"""TCP segments of a block as columns, and which flow each belongs to.

A flow is one direction: source and target address and port. Flows are numbered by hashing the address columns of all
segments at once; if two flows share a hash, they are numbered by comparing addresses, which is slower.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kwire.capture.cuts import Cut, trim
from kwire.capture.ip import Datagrams
from kwire.capture.packets import Columns, Ints, Packets
from kwire.capture.windows import FullWindow

FIN, SYN, RST, ACK = 1, 2, 4, 16
CONTROL = FIN | SYN | RST
HEAD = np.dtype([  # RFC 9293
    ("source", ">u2"), ("target", ">u2"), ("seq", ">u4"), ("ack", ">u4"), ("bits", ">u2"), ("window", ">u2"),
])  # fmt: skip
HEADER = HEAD.itemsize - 2  # bytes that must be there: up to the flags
MOST_FULL = 10_000  # full windows kept of a block
SEED = np.frombuffer(os.urandom(40), np.uint64) | np.uint64(1)  # random, so that no capture can be made to collide

Key = tuple[int, int, int, int, int, int]  # source high, source, source port, target high, target, target port


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Segments that carry bytes or open or close a connection, in the order of the capture.

    number and time are the packet's; seq the sequence number of the first byte; start and have say where the captured
    bytes lie in the buffer, length how many bytes the segment carried on the wire. flow indexes keys. now: the time of
    the block's last segment, if these are not all of the block. tunnels: what flows came through, of those that came
    through any. cuts: of a slice, by row, what was left out before a segment. full: windows of zero, by the flow of the
    side that tells them.
    """

    buffer: memoryview
    number: Ints
    time: Ints
    seq: Ints
    flags: Ints
    start: Ints
    have: Ints
    length: Ints
    flow: NDArray[np.intp]
    keys: list[Key]
    now: int | None = None
    tunnels: dict[Key, str] = field(default_factory=dict)
    cuts: dict[int, Cut] = field(default_factory=dict)
    full: list[tuple[Key, FullWindow]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.number)


def read_segments(
    packets: Packets, found: Datagrams, data: Columns, chosen: ConnectionFilter, paths: Sequence[str] = ()
) -> Segments:
    """The block's segments, without bare acknowledgements. paths: names of the tunnels' numbers."""
    start = found.start
    fields = data.records(HEAD, start)
    source_port, target_port = fields["source"].astype(np.int64), fields["target"].astype(np.int64)
    bits = fields["bits"].astype(np.int64)
    flags = bits & 0xFF
    payload = start + (bits >> 12) * 4
    length = found.end - payload
    fine = (start + HEADER <= found.have) & (payload >= start + 20)
    fine &= chosen.mask(found, source_port, target_port)
    full = np.flatnonzero(fine & (fields["window"] == 0) & (flags & (CONTROL | ACK) == ACK))[:MOST_FULL]
    full = full[(start + HEAD.itemsize <= found.have)[full]]
    fine &= (length > 0) | (flags & CONTROL != 0)
    keep = np.flatnonzero(fine)
    rows = found.index[keep]
    payload, length = payload[keep], np.maximum(length[keep], 0)
    have = np.clip(found.have[keep] - payload, 0, length)
    flow, keys = _flows(
        found.source_high[keep], found.source[keep], source_port[keep],
        found.target_high[keep], found.target[keep], target_port[keep],
    )  # fmt: skip
    seq = fields["seq"][keep].astype(np.int64)
    cuts = (
        {at: packets.cuts[row] for at, row in enumerate(rows.tolist()) if row in packets.cuts} if packets.cuts else {}
    )
    for at, cut in cuts.items():
        trim(cut, at, seq, payload, have, length)
    return Segments(
        packets.buffer, packets.number[rows], packets.time[rows], seq, flags[keep], payload, have, length, flow, keys,
        None, _tunnels(found.tunnel[keep], flow, keys, paths), cuts,
        _full(packets, found, full, fields) if len(full) else [],
    )  # fmt: skip


def _full(
    packets: Packets, found: Datagrams, rows: NDArray[np.intp], fields: NDArray[Any]
) -> list[tuple[Key, FullWindow]]:
    """Full windows that these segments announce, with their flows."""
    key = found.source_high, found.source, fields["source"], found.target_high, found.target, fields["target"]
    of = found.index[rows]
    windows = packets.number[of], packets.time[of], fields["ack"][rows]
    keys = zip(*(column[rows].tolist() for column in key), strict=True)
    return list(zip(keys, map(FullWindow, *(column.tolist() for column in windows)), strict=True))


def _tunnels(tunnel: Ints, flow: NDArray[np.intp], keys: list[Key], paths: Sequence[str]) -> dict[Key, str]:
    """The tunnel of each flow, as of its first segment in one."""
    rows = np.flatnonzero(tunnel)
    if not len(rows) or not paths:
        return {}
    flows, first = np.unique(flow[rows], return_index=True)
    return {keys[which]: paths[path] for which, path in zip(flows.tolist(), tunnel[rows[first]].tolist(), strict=True)}


@dataclass(frozen=True, slots=True)
class ConnectionFilter:
    """Which connections are looked at: those with one of the ports and one of the hosts (none given: all).

    hosts are addresses as (high, low)."""

    ports: frozenset[int] = frozenset()
    hosts: frozenset[tuple[int, int]] = frozenset()

    def mask(self, found: Datagrams, source_port: Ints, target_port: Ints) -> NDArray[np.bool_] | bool:
        """A mask of the wanted segments."""
        if not self.ports and not self.hosts:
            return True
        out = np.ones(len(source_port), bool)
        if self.ports:
            wanted = list(self.ports)
            out &= np.isin(source_port, wanted) | np.isin(target_port, wanted)
        if self.hosts:
            near = np.zeros(len(source_port), bool)
            for high, low in self.hosts:
                near |= (found.source_high == np.uint64(high)) & (found.source == np.uint64(low))
                near |= (found.target_high == np.uint64(high)) & (found.target == np.uint64(low))
            out &= near
        return out


def _flows(
    source_high: NDArray[np.uint64], source: NDArray[np.uint64], source_port: Ints,
    target_high: NDArray[np.uint64], target: NDArray[np.uint64], target_port: Ints,
) -> tuple[NDArray[np.intp], list[Key]]:  # fmt: skip
    """For each segment the number of its flow, and the keys of the flows, numbered by first segment."""
    ports = source_port.astype(np.uint64) << np.uint64(16) | target_port.astype(np.uint64)
    words = [source, target, ports, source_high, target_high]
    with np.errstate(over="ignore"):
        mixed = source * SEED[0] ^ target * SEED[1] ^ ports * SEED[2]
        if source_high.any() or target_high.any():
            mixed ^= source_high * SEED[3] ^ target_high * SEED[4]
    first, flow = _numbered(mixed)
    if any((word[first][flow] != word).any() for word in words):
        _, first, flow = np.unique(np.stack(words, axis=1), axis=0, return_index=True, return_inverse=True)
        flow = flow.reshape(-1)
    order = np.argsort(first)  # in order of appearance: the result must not depend on the seed
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    first, flow = first[order], place[flow]
    keys = zip(
        source_high[first].tolist(), source[first].tolist(), source_port[first].tolist(),
        target_high[first].tolist(), target[first].tolist(), target_port[first].tolist(), strict=True,
    )  # fmt: skip
    return flow, list(keys)


def _numbered(mixed: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """As np.unique with the first index and the inverse, but for the order of the values, and several times as fast:
    numbers of 16 bits are sorted by counting."""
    upper = mixed >> np.uint64(32)
    order = np.lexsort(((upper & np.uint64(0xFFFF)).astype(np.uint16), (upper >> np.uint64(16)).astype(np.uint16)))
    begins, same = np.ones(len(mixed), bool), upper[order]
    values = mixed[order]
    begins[1:] = values[1:] != values[:-1]
    if (begins[1:] & (same[1:] == same[:-1])).any():  # two values have the upper half in common
        _, first, found = np.unique(mixed, return_index=True, return_inverse=True)
        return first, found
    flow = np.empty(len(mixed), np.intp)
    flow[order] = np.cumsum(begins) - 1
    return order[begins], flow
