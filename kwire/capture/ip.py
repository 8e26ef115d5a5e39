"""The network layer: IPv4 with options and fragments, IPv6 with extension headers; where in each packet TCP begins.

Addresses are two 64-bit columns each; an IPv4 address stands in the low one as in IPv4-mapped IPv6 (RFC 4291 section
2.5.5.2). Packets with extension headers and fragments are rare and are looked at one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from struct import unpack_from

import numpy as np
from numpy.typing import NDArray

from kwire.capture.links import READ, network_offsets
from kwire.capture.packets import Columns, Ints, Packets

TCP = 6
EXTENSIONS = (0, 43, 60, 135, 139, 140)  # hop by hop, routing, destination, mobility, HIP, shim6: all alike in form
AUTHENTICATION, FRAGMENT = 51, 44
MAPPED = 0xFFFF << 32
MAX_DATAGRAM = 1 << 16
MAX_PENDING = 1024  # datagrams of which some fragments are there
LIFETIME = 30_000_000_000  # ns that fragments wait, as in Linux; later their identification means another datagram
RAW_LINK = 101
IPV4 = np.dtype({  # RFC 791, section 3.1: what is read of 20 bytes
    "names": ["total", "fragment", "protocol", "source", "target"], "formats": [">u2", ">u2", "u1", ">u4", ">u4"],
    "offsets": [2, 6, 9, 12, 16], "itemsize": 20,
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Datagrams:
    """TCP in IP. index: which packet of the block; start, end: of the TCP segment in the buffer, as long as it was on
    the wire; have: where its captured bytes end. Addresses as the module says."""

    index: NDArray[np.intp]
    source_high: NDArray[np.uint64]
    source: NDArray[np.uint64]
    target_high: NDArray[np.uint64]
    target: NDArray[np.uint64]
    start: Ints
    end: Ints
    have: Ints


def address_text(high: int, low: int) -> str:
    """As 10.0.0.7 or ::1."""
    if high == 0 and low >> 32 == 0xFFFF:
        return str(IPv4Address(low & 0xFFFFFFFF))
    return str(IPv6Address(high << 64 | low))


@dataclass(slots=True)
class Network:
    """Takes links and IP off. Keeps fragments until their datagram is whole, and counts what could not be read."""

    unread: dict[int, int] = field(default_factory=dict)  # packets by link type
    pending: dict[tuple[int, int, int], dict[int, bytes]] = field(default_factory=dict)
    totals: dict[tuple[int, int, int], int] = field(default_factory=dict)
    since: dict[tuple[int, int, int], int] = field(default_factory=dict)  # when the first fragment came
    whole: list[tuple[int, int, bytes]] = field(default_factory=list)  # number, time, datagram

    def read(self, packets: Packets, data: Columns) -> Datagrams:
        """The TCP segments of a block."""
        at = network_offsets(packets, data)
        if (at < 0).any():
            self._count_links(packets)
        first = data.u8(np.maximum(at, 0))
        known = at >= 0
        four = known & (first >> 4 == 4)
        if four.all():
            return self._four(packets, data, at, np.arange(len(at)), first)
        parts = []
        if four.any():
            index = np.flatnonzero(four)
            parts.append(self._four(packets, data, at[index], index, first[index]))
        six = np.flatnonzero(known & (first >> 4 == 6))
        if len(six):
            parts.append(self._six(packets, data, at[six], six))
        if len(parts) == 1:
            return parts[0]
        return _joined(parts)

    def _count_links(self, packets: Packets) -> None:
        for link, count in zip(*(found.tolist() for found in np.unique(packets.link, return_counts=True)), strict=True):
            if link not in READ:
                self.unread[link] = self.unread.get(link, 0) + count

    def take_whole(self) -> Packets | None:
        """Datagrams that fragments made whole since the last call, as packets of raw IP."""
        if not self.whole:
            return None
        numbers, times, parts = zip(*self.whole, strict=True)
        self.whole.clear()
        sizes = np.array([len(part) for part in parts], np.int64)
        starts = np.cumsum(sizes) - sizes
        links = np.full(len(parts), RAW_LINK, np.int64)
        return Packets(
            memoryview(b"".join(parts)), np.array(numbers, np.int64), np.array(times, np.int64), starts, sizes, sizes,
            links,
        )  # fmt: skip

    def _four(self, packets: Packets, data: Columns, at: Ints, index: NDArray[np.intp], first: Ints) -> Datagrams:
        captured = packets.start[index] + packets.captured[index]
        header = (first & 15) * 4
        fields = data.records(IPV4, at)
        total = fields["total"].astype(np.int64)
        wire = packets.start[index] + packets.length[index] - at
        total = np.where(total == 0, wire, total)  # segmentation offload: the card was to fill it in
        fragment = fields["fragment"] & 0x3FFF
        fine = (header >= 20) & (total >= header) & (at + header <= captured) & (fields["protocol"] == TCP)
        pieces = fine & (fragment != 0)
        if pieces.any():
            for row in np.flatnonzero(pieces).tolist():
                self._piece_of_four(packets, int(index[row]), int(at[row]), int(header[row]), int(total[row]))
            fine &= ~pieces
        source = fields["source"].astype(np.uint64) | np.uint64(MAPPED)
        target = fields["target"].astype(np.uint64) | np.uint64(MAPPED)
        zeros = np.zeros(len(at), np.uint64)
        end = at + total
        found = Datagrams(index, zeros, source, zeros, target, at + header, end, np.minimum(end, captured))
        return found if fine.all() else _chosen(found, fine)

    def _six(self, packets: Packets, data: Columns, at: Ints, index: NDArray[np.intp]) -> Datagrams:
        captured = packets.start[index] + packets.captured[index]
        payload = data.u16(at + 4)
        wire = packets.start[index] + packets.length[index]
        end = np.where(payload == 0, wire, at + 40 + payload)
        kind, start = data.u8(at + 6), at + 40
        extended = np.isin(kind, (*EXTENSIONS, AUTHENTICATION, FRAGMENT)) & (start <= captured)
        for row in np.flatnonzero(extended).tolist():
            kind[row], start[row] = self._extensions(
                packets, int(index[row]), int(at[row]), int(kind[row]), int(captured[row]), int(end[row])
            )
        fine = (kind == TCP) & (start <= captured) & (start <= end)
        high, low = data.u64(at + 8), data.u64(at + 16)
        target_high, target = data.u64(at + 24), data.u64(at + 32)
        found = Datagrams(index, high, low, target_high, target, start, end, np.minimum(end, captured))
        return found if fine.all() else _chosen(found, fine)

    def _extensions(self, packets: Packets, row: int, at: int, kind: int, have: int, wire: int) -> tuple[int, int]:
        """Goes over extension headers; what comes next, and where. A fragment is put aside: 59, nothing comes next."""
        view, pos, end = packets.buffer, at + 40, min(have, wire)
        while pos + 8 <= end:
            if kind in EXTENSIONS:
                kind, pos = view[pos], pos + 8 * (view[pos + 1] + 1)
            elif kind == AUTHENTICATION:
                kind, pos = view[pos], pos + 4 * (view[pos + 1] + 2)
            elif kind == FRAGMENT:
                place, ident = unpack_from(">HI", view, pos + 2)
                if place & 0xFFF9 == 0:  # an atomic fragment: all there is
                    kind, pos = view[pos], pos + 8
                    continue
                source, target = view[at + 8 : at + 24], view[at + 24 : at + 40]
                key = hash(bytes(source) + bytes(target)), ident, 6
                header = bytes(view[at : at + 6]) + bytes([view[pos]]) + bytes(view[at + 7 : at + 40])
                body = bytes(view[pos + 8 : end])
                self._piece(packets, row, key, header, place & 0xFFF8, bool(place & 1), body, wire - pos - 8)
                return 59, pos
            else:
                return kind, pos
        return 59, pos

    def _piece_of_four(self, packets: Packets, row: int, at: int, header: int, total: int) -> None:
        view = packets.buffer
        end = min(at + total, int(packets.start[row] + packets.captured[row]))
        ident, place = unpack_from(">HH", view, at + 4)
        key = hash(bytes(view[at + 12 : at + 20])), ident, view[at + 9]
        offset, more = (place & 0x1FFF) * 8, bool(place & 0x2000)
        body = bytes(view[at + header : end])
        self._piece(packets, row, key, bytes(view[at : at + header]), offset, more, body, total - header)

    def _piece(
        self, packets: Packets, row: int, key: tuple[int, int, int], header: bytes, offset: int, more: bool,
        body: bytes, size: int,
    ) -> None:  # fmt: skip
        """Keeps a fragment of size bytes, body the captured ones; the datagram goes on its way when no byte of it is
        missing."""
        if offset + len(body) > MAX_DATAGRAM:
            return
        time = int(packets.time[row])
        if time - self.since.setdefault(key, time) > LIFETIME:
            self._forget(key)
            self.since[key] = time
        parts = self.pending.setdefault(key, {})
        if len(body) >= len(parts.get(offset, b"")):
            parts[offset] = body
        if not more:
            self.totals[key] = offset + size
        while len(self.pending) > MAX_PENDING:
            self._forget(next(iter(self.pending)))
        if key not in self.totals or key not in self.pending:
            return
        whole = bytearray()
        for start in sorted(parts):
            if start > len(whole):
                return
            whole[start:] = parts[start] if start + len(parts[start]) >= len(whole) else whole[start:]
        if len(whole) < self.totals[key]:
            return
        self._forget(key)
        four = header[0] >> 4 == 4
        length = len(whole) + (len(header) if four else 0)
        if length > 0xFFFF:  # the ping of death
            return
        written = length.to_bytes(2, "big")
        fixed = header[:2] + written + header[4:6] + b"\0\0" + header[8:] if four else header[:4] + written + header[6:]
        self.whole.append((int(packets.number[row]), time, fixed + bytes(whole)))

    def _forget(self, key: tuple[int, int, int]) -> None:
        for known in (self.pending, self.totals, self.since):
            known.pop(key, None)


def _chosen(found: Datagrams, mask: NDArray[np.bool_]) -> Datagrams:
    return Datagrams(*(getattr(found, name)[mask] for name in Datagrams.__slots__))


def _joined(parts: list[Datagrams]) -> Datagrams:
    if not parts:
        none, words = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        return Datagrams(none.astype(np.intp), words, words, words, words, none, none, none)
    order = np.argsort(np.concatenate([part.index for part in parts]), kind="stable")
    return Datagrams(*(np.concatenate([getattr(part, name) for part in parts])[order] for name in Datagrams.__slots__))
