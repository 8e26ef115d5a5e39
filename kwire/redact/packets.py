"""Packets made anew around replaced bytes: an IP header of our own, the TCP header as it was, and the stream's bytes.

Link headers, tunnels and IP options go, since they name hosts; ports, sequence numbers, flags, windows, TCP options and
times stay. Checksums are made anew where the whole segment is there. Packets that are not TCP are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import pack, pack_into, unpack, unpack_from
from typing import BinaryIO, NamedTuple

from kwire.capture.ip import MAPPED, RAW_LINK, TCP, Network
from kwire.capture.packets import Columns, Packets
from kwire.capture.tcp import HEADER, Key
from kwire.redact.frames import BLANK
from kwire.redact.names import Pseudonyms

__all__ = ["RAW_LINK", "Made", "Rewriter", "SentStretches", "Stretch"]

WRAP = 1 << 32
CHECKSUM = 16  # where it stands in a TCP header (RFC 9293)
IP_LONGEST = 65535


class Stretch(NamedTuple):
    """A frame of a stream: where it begins there, where its bytes lie in the spool, how many they are."""

    position: int
    offset: int
    length: int


@dataclass(slots=True)
class SentStretches:
    """One direction of a connection. packet: the first with a frame of it; base: the sequence number of position 0."""

    packet: int
    base: int
    stretches: list[Stretch] = field(default_factory=list)
    cursor: int = 0  # the position of the last packet, since sequence numbers wrap


class Made(NamedTuple):
    """A packet: ns since the epoch, its bytes from the IP header on, and their length on the wire."""

    time: int
    data: bytes
    length: int


class Rewriter:
    """packets(block) gives the block's packets anew. said: by flow, its directions in the order of their packets."""

    def __init__(self, said: dict[Key, list[SentStretches]], spool: BinaryIO, names: Pseudonyms) -> None:
        self._said, self._spool, self._names = said, spool, names
        self._network = Network()
        self.left_out = 0  # packets
        self.blanked = 0  # bytes of payload of which no frame was made

    def packets(self, block: Packets) -> Iterator[Made]:
        """In their order; a datagram that came in fragments stands where the last one did."""
        yield from self._block(block)
        whole = self._network.take_whole()
        if whole is not None:
            self.left_out -= len(whole)
            yield from self._block(whole)

    def _block(self, block: Packets) -> Iterator[Made]:
        found = self._network.read(block, Columns(block.buffer))
        self.left_out += len(block) - len(found.index)
        columns = (found.index, found.source_high, found.source, found.target_high, found.target,
                   found.start, found.end, found.have)  # fmt: skip
        rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
        times, numbers = block.time.tolist(), block.number.tolist()
        for index, source_high, source, target_high, target, start, end, have in rows:
            if have - start < HEADER:
                self.left_out += 1
                continue
            ports = unpack_from(">HH", block.buffer, start)
            seq = unpack_from(">I", block.buffer, start + 4)[0]
            head = min((block.buffer[start + 12] >> 4) * 4, have - start)
            key = source_high, source, ports[0], target_high, target, ports[1]
            captured, length = max(0, have - start - head), max(0, end - start - head)
            payload = self._payload(key, numbers[index], seq, captured)
            header = bytearray(block.buffer[start : start + head])
            ends = self._names.address(source_high, source), self._names.address(target_high, target)
            yield _made(times[index], ends, header, payload, length)

    def _payload(self, key: Key, number: int, seq: int, length: int) -> bytes:
        """The replaced bytes of a segment; blank where no frame was read."""
        if not length:
            return b""
        out = bytearray(BLANK * length)
        missing = length
        directions = self._said.get(key)
        if directions:
            said = directions[max(0, bisect_right(directions, number, key=lambda one: one.packet) - 1)]
            near = (seq - said.base) % WRAP + said.cursor // WRAP * WRAP
            position = min((near - WRAP, near, near + WRAP), key=lambda place: abs(place - said.cursor))
            said.cursor = max(said.cursor, position)
            at = max(0, bisect_right(said.stretches, position, key=lambda each: each.position) - 1)
            for stretch in said.stretches[at:]:
                if stretch.position >= position + length:
                    break
                first, last = max(position, stretch.position), min(position + length, stretch.position + stretch.length)
                if first < last:
                    self._spool.seek(stretch.offset + first - stretch.position)
                    out[first - position : last - position] = self._spool.read(last - first)
                    missing -= last - first
        self.blanked += missing
        return bytes(out)


def _made(
    time: int, ends: tuple[tuple[int, int], tuple[int, int]], header: bytearray, payload: bytes, length: int
) -> Made:
    """length: of the payload on the wire."""
    four = all(high == 0 and low >> 32 == MAPPED >> 32 for high, low in ends)
    if four:
        addresses = b"".join(pack(">I", low & 0xFFFFFFFF) for _, low in ends)
    else:
        addresses = b"".join(pack(">QQ", high, low) for high, low in ends)
    size = len(header) + length
    if len(header) >= CHECKSUM + 2:
        pack_into(">H", header, CHECKSUM, 0)
        if len(payload) == length:
            rest = pack(">BBH", 0, TCP, size & 0xFFFF) if four else pack(">II", size, TCP)
            pack_into(">H", header, CHECKSUM, _checksum(addresses + rest + header + payload))
    if four:
        total = size + 20 if size + 20 <= IP_LONGEST else 0  # as segmentation offload leaves it
        ip = bytearray(pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, TCP, 0) + addresses)
        pack_into(">H", ip, 10, _checksum(bytes(ip)))
    else:
        ip = bytearray(pack(">IHBB", 6 << 28, size if size <= IP_LONGEST else 0, TCP, 64) + addresses)
    return Made(time, bytes(ip + header + payload), len(ip) + size)


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    if len(data) & 1:
        data += b"\0"
    total: int = sum(unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
