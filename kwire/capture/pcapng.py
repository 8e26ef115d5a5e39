"""pcapng files: sections of blocks; interfaces with their link type and clock, packets in three forms, statistics.

Blocks of unknown types are skipped; sections may differ in byte order; decryption secrets are kept aside (IETF
draft-ietf-opsawg-pcapng, sections 3 and 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import NamedTuple

import numpy as np

from kwire.capture.packets import UNKNOWN_LINK, Ints, Packets
from kwire.counted import counted
from kwire.errors import CaptureError

MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION, INTERFACE, OLD_PACKET, SIMPLE, STATISTICS, PACKET, SECRETS = 0x0A0D0D0A, 1, 2, 3, 5, 6, 10
BYTE_ORDER = 0x1A2B3C4D
LEAST = {SECTION: 28, INTERFACE: 20, STATISTICS: 24, SECRETS: 20}  # bytes of a block without options
MAX_BLOCK = 1 << 26
AHEAD = 1 << 18  # bytes that are looked at, when there are so many, before blocks behind damage are given up
STRETCH = 1 << 16  # bytes searched at a time
MAX_OFFSET = 1 << 33  # seconds; ns of more do not fit into 64 bits
TLS_KEY_LOG = 0x544C534B
IF_NAME, IF_RESOLUTION, IF_OFFSET, ISB_DROPPED, ISB_OS_DROPPED = 2, 9, 14, 5, 7


class Interface(NamedTuple):
    """resolution: units of a second, as the option's byte says it; offset: seconds to add."""

    link: int
    snaplen: int
    name: str
    resolution: int
    offset: int


class PcapngReader:
    """read(view, final) gives the packets of a window and how many bytes of it its blocks took.

    plain: all packets could be read by whoever knows what stands before the first one."""

    def __init__(self, name: str) -> None:
        self.plain = True
        self.name = name
        self.notes: list[str] = []
        self.secrets: list[bytes] = []
        self.dropped = 0
        self._interfaces: list[Interface] = []
        self._drops: dict[int, int] = {}  # by interface
        self._dropped = 0  # in the sections before
        self._order = "<"
        self._number = 1
        self._pos = 0
        self._time = 0
        self._begun = False  # with packets

    @property
    def order(self) -> str:
        """The byte order of the section."""
        return self._order

    @property
    def drops(self) -> dict[int, int]:
        """Packets dropped, by interface, as the section's statistics say."""
        return self._drops

    def go_to(self, pos: int) -> None:
        """What is read next begins there, behind the first packet; sections and interfaces are known."""
        self._pos, self._begun = pos, True

    def read(self, view: memoryview, final: bool) -> tuple[Iterator[Packets], int]:
        """The packets of the window. final: no more bytes will come."""
        found: list[Packets] = []
        used = self._walk(view, final, found)
        self._pos += used
        self.dropped = self._dropped + sum(self._drops.values())
        return iter(found), used

    def _walk(self, view: memoryview, final: bool, found: list[Packets]) -> int:
        pos, end, order = 0, len(view), self._order
        blocks: list[tuple[int, int]] = []
        while end - pos >= 12:
            kind, length = unpack_from(order + "II", view, pos)
            if kind == SECTION:
                self._flush(view, blocks, found)
                marked = _section_order(view, pos)
                if marked is None and self._pos + pos == 0:
                    raise CaptureError(self.name, "the section at byte 0 has no byte-order magic")
                self._order = order = marked or order
                length = unpack_from(order + "I", view, pos + 4)[0] if marked else 0
            if length < 12 or length % 4 or length > MAX_BLOCK:
                if not final and end - pos < AHEAD:
                    break
                self._flush(view, blocks, found)
                pos = self._resync(view, pos, final)
                continue
            if pos + length > end:
                break
            if kind in (PACKET, SIMPLE, OLD_PACKET):
                blocks.append((pos, kind))
            elif kind in (SECTION, INTERFACE):
                self.plain &= not (self._begun or blocks)
                self._flush(view, blocks, found)
                self._describe(view, pos, kind, length)
            else:
                self._describe(view, pos, kind, length)
            pos += length
        self._flush(view, blocks, found)
        if final and pos < end:
            self.notes.append(f"the file ends in the middle of a block, which begins at byte {self._pos + pos:,}")
            pos = end
        return pos

    def _describe(self, view: memoryview, pos: int, kind: int, length: int) -> None:
        """Everything but packets."""
        order = self._order
        if length < LEAST.get(kind, 0):
            self.notes.append(f"the block at byte {self._pos + pos:,} is too short")
        elif kind == SECTION:
            self._interfaces = []
            self._dropped += sum(self._drops.values())
            self._drops = {}
        elif kind == INTERFACE:
            link, _, snaplen = unpack_from(order + "HHI", view, pos + 8)
            options = dict(self._options(view, pos + 16, pos + length - 4))
            seconds = options.get(IF_OFFSET, b"")
            offset = int(unpack_from(order + "q", seconds)[0]) if len(seconds) == 8 else 0
            self._interfaces.append(
                Interface(
                    link, snaplen, options.get(IF_NAME, b"").decode("utf-8", "replace"),
                    (options.get(IF_RESOLUTION) or b"\x06")[0], offset if abs(offset) < MAX_OFFSET else 0,
                )
            )  # fmt: skip
        elif kind == STATISTICS:
            options = dict(self._options(view, pos + 20, pos + length - 4))
            counts = [options[code] for code in (ISB_DROPPED, ISB_OS_DROPPED) if len(options.get(code, b"")) == 8]
            (interface,) = unpack_from(order + "I", view, pos + 8)
            self._drops[interface] = sum(unpack_from(order + "Q", count)[0] for count in counts)
        elif kind == SECRETS:
            secret, size = unpack_from(order + "II", view, pos + 8)
            if secret == TLS_KEY_LOG:
                self.secrets.append(bytes(view[pos + 16 : pos + min(16 + size, length - 4)]))

    def _options(self, view: memoryview, pos: int, end: int) -> Iterator[tuple[int, bytes]]:
        while pos + 4 <= end:
            code, size = unpack_from(self._order + "HH", view, pos)
            if code == 0 or pos + 4 + size > end:
                return
            yield code, bytes(view[pos + 4 : pos + 4 + size])
            pos += 4 + (size + 3 & ~3)

    def _flush(self, view: memoryview, blocks: list[tuple[int, int]], found: list[Packets]) -> None:
        """Makes columns of the packet blocks seen so far."""
        if not blocks:
            return
        rows = np.array(blocks, np.int64)
        blocks.clear()
        at, kind = rows[:, 0], rows[:, 1]
        words = np.ndarray((len(view) - 3,), self._order + "u4", view, strides=(1,))
        last = len(words) - 1

        def word(offset: int) -> Ints:
            got: Ints = words[np.minimum(at + offset, last)].astype(np.int64)
            return got

        size, interface, start = word(4), word(8), at + 28
        captured, length = word(20), word(24)
        units = word(12).astype(np.uint64) << np.uint64(32) | word(16).astype(np.uint64)
        if (kind == OLD_PACKET).any():  # its interface is a 16-bit number, a count of drops behind it
            half = np.ndarray((len(view) - 1,), self._order + "u2", view, strides=(1,))
            interface = np.where(kind == OLD_PACKET, half[at + 8], interface)
        simple = kind == SIMPLE
        self._begun = True
        self.plain &= bool((kind == PACKET).all())
        if simple.any():
            interface, length = np.where(simple, 0, interface), np.where(simple, word(8), length)
            start = np.where(simple, at + 12, start)
            snaplen = self._interfaces[0].snaplen if self._interfaces else 0
            room = np.minimum(size - 16, snaplen or 1 << 30)
            captured = np.where(simple, np.minimum(length, room), captured)
        captured = np.minimum(captured, np.maximum(at + size - 4 - start, 0))  # a block's own length is the bound
        time = self._times(interface, units, simple)
        links = np.array([known.link for known in self._interfaces] or [UNKNOWN_LINK], np.int64)
        known = interface < len(self._interfaces)
        link = np.where(known, links[np.where(known, interface, 0)], UNKNOWN_LINK)
        number = np.arange(self._number, self._number + len(at), dtype=np.int64)
        self._number += len(at)
        found.append(Packets(view, number, time, start, captured, np.maximum(length, captured), link))

    def _times(self, interface: Ints, units: np.ndarray, simple: np.ndarray) -> Ints:
        """ns since the epoch; a simple packet has no time of its own and gets that of the packet before it."""
        out = np.zeros(len(units), np.int64)
        for index, known in enumerate(self._interfaces):
            mine = interface == index
            if mine.any():
                out[mine] = _nanoseconds(units[mine], known.resolution) + known.offset * 1_000_000_000
        if simple.any():
            out[simple] = 0
            places = np.maximum.accumulate(np.where(simple, -1, np.arange(len(out))))
            out = np.where(places >= 0, out[np.maximum(places, 0)], self._time)
        if len(out):
            self._time = int(out[-1])
        return out

    def _resync(self, view: memoryview, pos: int, final: bool) -> int:
        """The next packet block or section whose length stands at both its ends; the end of the window when there is
        none."""
        rest = len(view) - pos
        following = len(view) if final else pos + rest // 4 * 4  # blocks begin at multiples of four bytes
        for low in range(pos, len(view) - 12, STRETCH):
            words = np.frombuffer(view, self._order + "u4", min(STRETCH, len(view) - low) // 4, low)
            places = (low + 4 * np.flatnonzero((words == PACKET) | (words == SECTION))).tolist()
            found = next((here for here in places if here > pos and _whole(view, here, self._order)), None)
            if found is not None:
                following = found
                break
        self.notes.append(f"damaged at byte {self._pos + pos:,}: {counted(following - pos, 'byte')} skipped")
        return following


def _section_order(view: memoryview, pos: int) -> str | None:
    return next((order for order in "<>" if unpack_from(order + "I", view, pos + 8)[0] == BYTE_ORDER), None)


def _whole(view: memoryview, pos: int, order: str) -> bool:
    """Whether a block lies here in full, with its length at both ends."""
    if pos + 12 > len(view):
        return False
    (kind,) = unpack_from(order + "I", view, pos)
    if kind == SECTION:
        order = _section_order(view, pos) or order
    (length,) = unpack_from(order + "I", view, pos + 4)
    if length < LEAST.get(kind, 32) or length % 4 or length > MAX_BLOCK or pos + length > len(view):
        return False
    return bool(unpack_from(order + "I", view, pos + length - 4)[0] == length)


def _nanoseconds(units: np.ndarray, resolution: int) -> Ints:
    """if_tsresol: a power of ten, or of two when the highest bit is set."""
    power = resolution & 0x7F
    if not resolution & 0x80:
        scaled = units * np.uint64(10 ** (9 - power)) if power <= 9 else units // np.uint64(10 ** min(power - 9, 19))
        return scaled.astype(np.int64)
    if power > 63:
        return np.zeros(len(units), np.int64)
    seconds = units >> np.uint64(power)
    fraction = units & np.uint64((1 << power) - 1)
    if power > 34:
        fraction, power = fraction >> np.uint64(power - 34), 34
    return (seconds * np.uint64(10**9) + (fraction * np.uint64(10**9) >> np.uint64(power))).astype(np.int64)
