"""The network layer: IPv4 with options and fragments, IPv6 with extension headers; where in each packet TCP begins.

Addresses are two 64-bit columns each; an IPv4 address stands in the low one as in IPv4-mapped IPv6 (RFC 4291 section
2.5.5.2). Packets with extension headers and fragments are rare and are looked at one by one. What is inside a tunnel is
another layer of IP headers of the same packets, read in the same way; the addresses are those of the innermost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from struct import unpack_from

import numpy as np
from numpy.typing import NDArray

from kwire.capture.fragments import Fragment, Fragments
from kwire.capture.links import READ, network_offsets
from kwire.capture.packets import Columns, Ints, Packets
from kwire.capture.tunnels import CARRIERS, DEEPEST, Carried, Paths, count_sealed, inside
from kwire.wire.columns import tally

TCP = 6
EXTENSIONS = (0, 43, 60, 135, 139, 140)  # hop by hop, routing, destination, mobility, HIP, shim6: all alike in form
AUTHENTICATION, FRAGMENT = 51, 44
NOTHING = 59  # no next header
MAPPED = 0xFFFF << 32
RAW_LINK = 101
IPV4 = np.dtype({  # RFC 791, section 3.1: what is read of 20 bytes
    "names": ["total", "fragment", "protocol", "source", "target"], "formats": [">u2", ">u2", "u1", ">u4", ">u4"],
    "offsets": [2, 6, 9, 12, 16], "itemsize": 20,
})  # fmt: skip
WANTED = CARRIERS.copy()  # by protocol number: what is put together of fragments
WANTED[TCP] = True


@dataclass(frozen=True, slots=True, eq=False)
class Datagrams:
    """TCP in IP. index: which packet of the block; start, end: of the TCP segment in the buffer, as long as it was on
    the wire; have: where its captured bytes end. Addresses as the module says. tunnel: what it came through, an index
    into Network.paths, 0 for nothing."""

    index: NDArray[np.intp]
    source_high: NDArray[np.uint64]
    source: NDArray[np.uint64]
    target_high: NDArray[np.uint64]
    target: NDArray[np.uint64]
    start: Ints
    end: Ints
    have: Ints
    tunnel: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """IP headers, one in each of these packets. index: the packet of the block; at: where the header begins; captured,
    wire: where its surroundings end, as captured and on the wire; tunnel: as in Datagrams."""

    index: NDArray[np.intp]
    at: Ints
    captured: Ints
    wire: Ints
    tunnel: Ints

    def only(self, rows: NDArray[np.intp]) -> _Layer:
        return _Layer(*(getattr(self, name)[rows] for name in _Layer.__slots__))


@lru_cache(10_000)
def address_text(high: int, low: int) -> str:
    """As 10.0.0.7 or ::1."""
    if high == 0 and low >> 32 == 0xFFFF:
        return str(IPv4Address(low & 0xFFFFFFFF))
    return str(IPv6Address(high << 64 | low))


def endpoint(address: str, port: int) -> str:
    """As 10.0.0.7:9092 or [::1]:9092."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@dataclass(slots=True)
class Network:
    """Takes links, IP and tunnels off. Keeps fragments until their datagram is whole, and counts what deserves a note.

    passed: TCP packets by tunnel; sealed: packets of encrypted tunnels, by name; unread: packets by unknown link type.
    """

    unread: dict[int, int] = field(default_factory=dict)
    sealed: dict[str, int] = field(default_factory=dict)
    paths: Paths = field(default_factory=Paths)
    fragments: Fragments = field(default_factory=Fragments)
    _passed: list[int] = field(default_factory=list)  # by path

    @property
    def passed(self) -> dict[str, int]:
        return {self.paths.texts[path]: count for path, count in enumerate(self._passed) if path and count}

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of packets that deserve a note, by the note."""
        return {
            **{f"of link type {link}, which is not read": count for link, count in self.unread.items()},
            **{f"of {name}, which is encrypted": count for name, count in self.sealed.items()},
            **{f"came through {path}": count for path, count in self.passed.items()},
        }

    @property
    def pending(self) -> int:
        """The number of datagrams that lack fragments."""
        return len(self.fragments.pending)

    def read(self, packets: Packets, data: Columns) -> Datagrams:
        """The TCP segments of a block."""
        at, via = network_offsets(packets, data)
        index: NDArray[np.intp] = np.arange(len(at))
        captured, wire = packets.start + packets.captured, packets.start + packets.length
        tunnel = np.zeros(len(at), np.int64) if via is None else self.paths.further(np.zeros(len(at), np.int64), via)
        layer = _Layer(index, at, captured, wire, tunnel)
        if len(at) and at.min() < 0:
            self._count_links(packets)
            layer = layer.only(np.flatnonzero(at >= 0))
        found: list[Datagrams] = []
        for _ in range(DEEPEST + 1):
            carried = self._headers(packets, data, layer, found)
            inner = [self._inside(one, data) for one in carried if len(one)]
            if not inner:
                break
            layer = _Layer(*(np.concatenate([getattr(one, name) for one in inner]) for name in _Layer.__slots__))
        found = [one for one in found if len(one.index)]
        for one in found:
            self._count_passed(one.tunnel)
        return found[0] if len(found) == 1 else _joined(found)

    def _headers(self, packets: Packets, data: Columns, layer: _Layer, found: list[Datagrams]) -> list[Carried]:
        """Reads a layer: TCP goes to found, what may be a tunnel is returned."""
        first = data.u8(layer.at)
        four = first >> 4 == 4
        if four.all():
            return [self._four(packets, data, layer, first, found)]
        out = []
        rows = np.flatnonzero(four)
        if len(rows):
            out.append(self._four(packets, data, layer.only(rows), first[rows], found))
        rows = np.flatnonzero(first >> 4 == 6)
        if len(rows):
            out.append(self._six(packets, data, layer.only(rows), found))
        return out

    def _inside(self, carried: Carried, data: Columns) -> _Layer:
        """What tunnels hold."""
        for name, count in count_sealed(carried, data).items():
            self.sealed[name] = self.sealed.get(name, 0) + count
        inner = inside(carried, data)
        rows = np.flatnonzero(inner.offset >= 0)
        tunnel = carried.tunnel[rows]
        for via in inner.via:
            tunnel = self.paths.further(tunnel, via[rows])
        return _Layer(carried.index[rows], inner.offset[rows], carried.have[rows], carried.end[rows], tunnel)

    def _count_passed(self, tunnel: Ints) -> None:
        if tunnel.any():
            counts = tally(tunnel, size=len(self._passed))
            counts[: len(self._passed)] += np.array(self._passed, np.int64)
            self._passed = counts.tolist()

    def _count_links(self, packets: Packets) -> None:
        for link, count in zip(*(found.tolist() for found in np.unique(packets.link, return_counts=True)), strict=True):
            if link not in READ:
                self.unread[link] = self.unread.get(link, 0) + count

    def take_whole(self) -> Packets | None:
        """Datagrams that fragments made whole since the last call, as packets of raw IP."""
        whole = self.fragments.take()
        if not whole:
            return None
        numbers, times, parts = zip(*whole, strict=True)
        sizes = np.array([len(part) for part in parts], np.int64)
        starts = np.cumsum(sizes) - sizes
        links = np.full(len(parts), RAW_LINK, np.int64)
        return Packets(
            memoryview(b"".join(parts)), np.array(numbers, np.int64), np.array(times, np.int64), starts, sizes, sizes,
            links,
        )  # fmt: skip

    def _four(self, packets: Packets, data: Columns, layer: _Layer, first: Ints, found: list[Datagrams]) -> Carried:
        at, captured = layer.at, layer.captured
        header = (first & 15) * 4
        fields = data.records(IPV4, at)
        total = fields["total"].astype(np.int64)
        total = np.where(total == 0, layer.wire - at, total)  # segmentation offload: the network card fills it in
        protocol = fields["protocol"]
        fine = (header >= 20) & (total >= header) & (at + header <= captured)
        pieces = fine & (fields["fragment"] & 0x3FFF != 0)
        if pieces.any():
            fine &= ~pieces
            for row in np.flatnonzero(pieces & WANTED[protocol]).tolist():
                self._piece_of_four(packets, layer, row, int(header[row]), int(total[row]))
        mine = fine & (protocol == TCP)
        source = fields["source"].astype(np.uint64) | np.uint64(MAPPED)
        target = fields["target"].astype(np.uint64) | np.uint64(MAPPED)
        zeros = np.zeros(len(at), np.uint64)
        start, end = at + header, at + total
        have = np.minimum(end, captured)
        datagrams = Datagrams(layer.index, zeros, source, zeros, target, start, end, have, layer.tunnel)
        if mine.all():
            found.append(datagrams)
            return _carried(layer, protocol[:0], start, end, have, slice(0), six=False)
        found.append(_chosen(datagrams, mine))
        return _carried(layer, protocol, start, end, have, np.flatnonzero(fine & CARRIERS[protocol]), six=False)

    def _six(self, packets: Packets, data: Columns, layer: _Layer, found: list[Datagrams]) -> Carried:
        at, captured = layer.at, layer.captured
        payload = data.u16(at + 4)
        end = np.where(payload == 0, layer.wire, at + 40 + payload)
        kind, start = data.u8(at + 6), at + 40
        extended = np.isin(kind, (*EXTENSIONS, AUTHENTICATION, FRAGMENT)) & (start <= captured)
        for row in np.flatnonzero(extended).tolist():
            kind[row], start[row] = self._extensions(packets, layer, row, int(kind[row]), int(end[row]))
        fine = (start <= captured) & (start <= end)
        mine = fine & (kind == TCP)
        high, low = data.u64(at + 8), data.u64(at + 16)
        target_high, target = data.u64(at + 24), data.u64(at + 32)
        have = np.minimum(end, captured)
        datagrams = Datagrams(layer.index, high, low, target_high, target, start, end, have, layer.tunnel)
        if mine.all():
            found.append(datagrams)
            return _carried(layer, kind[:0], start, end, have, slice(0), six=True)
        found.append(_chosen(datagrams, mine))
        return _carried(layer, kind, start, end, have, np.flatnonzero(fine & CARRIERS[kind]), six=True)

    def _extensions(self, packets: Packets, layer: _Layer, row: int, kind: int, wire: int) -> tuple[int, int]:
        """Skips extension headers; returns the next protocol and its offset, or NOTHING for a fragment, which is put
        aside."""
        view, at = packets.buffer, int(layer.at[row])
        pos, end = at + 40, min(int(layer.captured[row]), wire)
        while pos + 8 <= end:
            if kind in EXTENSIONS:
                kind, pos = view[pos], pos + 8 * (view[pos + 1] + 1)
            elif kind == AUTHENTICATION:
                kind, pos = view[pos], pos + 4 * (view[pos + 1] + 2)
            elif kind == FRAGMENT:
                place, ident = unpack_from(">HI", view, pos + 2)
                if place & 0xFFF9 == 0:  # an atomic fragment (RFC 6946): the whole datagram
                    kind, pos = view[pos], pos + 8
                    continue
                if WANTED[view[pos]]:
                    key = bytes(view[at + 8 : at + 40]) + ident.to_bytes(4, "big")
                    header = bytes(view[at : at + 6]) + bytes([view[pos]]) + bytes(view[at + 7 : at + 40])
                    self._piece(packets, layer, row, key, header, place & 0xFFF8, place & 1 > 0, pos + 8, wire)
                return NOTHING, pos
            else:
                return kind, pos
        return NOTHING, pos

    def _piece_of_four(self, packets: Packets, layer: _Layer, row: int, header: int, total: int) -> None:
        view, at = packets.buffer, int(layer.at[row])
        (place,) = unpack_from(">H", view, at + 6)
        key = bytes(view[at + 12 : at + 20]) + bytes(view[at + 4 : at + 6]) + bytes(view[at + 9 : at + 10])
        offset, more = (place & 0x1FFF) * 8, place & 0x2000 > 0
        head = bytes(view[at : at + header])
        self._piece(packets, layer, row, key, head, offset, more, at + header, at + total)

    def _piece(
        self, packets: Packets, layer: _Layer, row: int, key: bytes, header: bytes, offset: int, more: bool, start: int,
        end: int,
    ) -> None:  # fmt: skip
        """A fragment whose payload lies from start to end, as far as it was captured."""
        at = int(layer.index[row])
        body = packets.buffer[start : min(end, int(layer.captured[row]))]
        number, time = int(packets.number[at]), int(packets.time[at])
        self.fragments.add(Fragment(key, number, time, header, offset, more, end - start, body))


def _carried(
    layer: _Layer, protocol: NDArray[np.integer], start: Ints, end: Ints, have: Ints, rows: NDArray[np.intp] | slice,
    *, six: bool,
) -> Carried:  # fmt: skip
    return Carried(
        layer.index[rows], protocol[rows].astype(np.int64), start[rows], end[rows], have[rows], six, layer.tunnel[rows]
    )


def _chosen(found: Datagrams, mask: NDArray[np.bool_]) -> Datagrams:
    return Datagrams(*(getattr(found, name)[mask] for name in Datagrams.__slots__))


def _joined(parts: list[Datagrams]) -> Datagrams:
    if not parts:
        none, words = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        return Datagrams(none.astype(np.intp), words, words, words, words, none, none, none, none)
    order = np.argsort(np.concatenate([part.index for part in parts]), kind="stable")
    return Datagrams(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in Datagrams.__slots__))
