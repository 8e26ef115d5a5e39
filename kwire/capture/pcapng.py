"""pcapng files: sections of blocks; interfaces with their link type and clock, packets in three forms, statistics.

Blocks of unknown types are skipped; sections may differ in byte order; decryption secrets are kept aside (IETF
draft-ietf-opsawg-pcapng, sections 3 and 4). All packets of a window become columns at once, even if interfaces or
sections begin between them: for each packet it is known which interfaces its section had described before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from struct import Struct, unpack_from
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kwire.capture.cuts import Cut, cut_of
from kwire.capture.damage import Damage, stretches_of
from kwire.capture.packets import UNKNOWN_LINK, Ints, Packets
from kwire.errors import CaptureError
from kwire.wire.columns import repeat

MAGIC = b"\x0a\x0d\x0d\x0a"
SECTION, INTERFACE, OLD_PACKET, SIMPLE, STATISTICS, PACKET, SECRETS = 0x0A0D0D0A, 1, 2, 3, 5, 6, 10
BYTE_ORDER = 0x1A2B3C4D
LEAST = {SECTION: 28, INTERFACE: 20, STATISTICS: 24, SECRETS: 20}  # bytes of a block without options
MAX_BLOCK = 1 << 26
AHEAD = 1 << 18  # bytes behind damage that are searched, if there are so many, before blocks are given up
MAX_OFFSET = 1 << 33  # seconds; ns of more do not fit into 64 bits
MOST_INTERFACES = 1 << 16  # of a section
MOST_SECRETS = 32 << 20  # bytes of key logs
SECRET_COST = 100  # bytes of memory that an empty key log takes
TLS_KEY_LOG = 0x544C534B
NEAR = Struct("<8I")  # words behind damage that are searched first
PACKET_SWAPPED = PACKET << 24
COMMENT = 1  # the comment option, of any block
IF_NAME, IF_RESOLUTION, IF_OFFSET, ISB_DROPPED, ISB_OS_DROPPED = 2, 9, 14, 5, 7


class Interface(NamedTuple):
    """resolution: units of a second, as the option's byte says it; offset: seconds to add."""

    link: int
    snaplen: int
    resolution: int
    offset: int


class Described(NamedTuple):
    """State from a packet of the window on: the index of its section's first interface, the number of interfaces
    described so far, and the section's byte order."""

    packet: int
    first: int
    interfaces: int
    order: str


class Blocks(NamedTuple):
    """The packet blocks of a window: where they begin, their types, and the Described state of each."""

    at: list[int]
    kind: list[int]
    described: list[Described]


class PcapngReader:
    """read(view, final) gives the packets of a window and how many bytes of it its blocks took.

    plain: whether reading can begin at any packet with only what stands before the first one.
    """

    def __init__(self, name: str) -> None:
        self.plain = True
        self.name = name
        self.secrets: list[bytes] = []
        self.dropped = 0
        self._damage = Damage()
        self._interfaces: list[Interface] = []  # of the section, and in a window of those before it
        self._first = 0  # among them, of the section
        self._secret_bytes = 0
        self._drops: dict[int, int] = {}  # by interface
        self._dropped = 0  # in the sections before
        self._order = "<"
        self._number = 1
        self._pos = 0
        self._time = 0
        self._begun = False  # with packets

    @property
    def notes(self) -> list[str]:
        """What is damaged or cut, and where."""
        return self._damage.notes

    @property
    def order(self) -> str:
        """The byte order of the section."""
        return self._order

    @property
    def drops(self) -> dict[int, int]:
        """Packets dropped, by interface, as the section's statistics say."""
        return self._drops

    def go_to(self, pos: int) -> None:
        """Continues at this place, behind the first packet; sections and interfaces are known."""
        self._pos, self._begun = pos, True

    def read(self, view: memoryview, final: bool) -> tuple[Iterator[Packets], int]:
        """The packets of the window. final: no more bytes will come."""
        blocks = Blocks([], [], [self._now(0)])
        used = self._walk(view, final, blocks)
        packets = [self._packets(view, blocks)] if blocks.at else []
        del self._interfaces[: self._first]
        self._first = 0
        self._pos += used
        self.dropped = self._dropped + sum(self._drops.values())
        if packets and self.secrets:
            packets[0] = replace(packets[0], secrets=tuple(self.secrets))
            self.secrets, self._secret_bytes = [], 0
        return iter(packets), used

    def _now(self, packet: int) -> Described:
        return Described(packet, self._first, len(self._interfaces) - self._first, self._order)

    def _walk(self, view: memoryview, final: bool, blocks: Blocks) -> int:
        """The number of bytes that the window's whole blocks take."""
        pos, end, order = 0, len(view), self._order
        while end - pos >= 12:
            kind, length = unpack_from(order + "II", view, pos)
            if kind == SECTION:
                marked = _section_order(view, pos)
                if marked is None and self._pos + pos == 0:
                    raise CaptureError(self.name, "the section at byte 0 has no byte-order magic")
                self._order = order = marked or order
                length = unpack_from(order + "I", view, pos + 4)[0] if marked else 0
            if length < 12 or length % 4 or length > MAX_BLOCK:
                if not final and end - pos < AHEAD:
                    break
                pos = self._resync(view, pos, final)
                continue
            if pos + length > end:
                break
            if kind in (PACKET, SIMPLE, OLD_PACKET):
                blocks.at.append(pos)
                blocks.kind.append(kind)
            else:
                self._describe(view, pos, kind, length)
                if kind in (SECTION, INTERFACE):
                    self.plain &= not (self._begun or blocks.at)
                    blocks.described.append(self._now(len(blocks.at)))
            pos += length
        if final and pos < end:
            self._damage.say(f"the file ends in the middle of a block, which begins at byte {self._pos + pos:,}")
            pos = end
        return pos

    def _describe(self, view: memoryview, pos: int, kind: int, length: int) -> None:
        """Takes a block that is no packet."""
        order = self._order
        if length < LEAST.get(kind, 0):
            self._damage.say("the block at byte {:,} is too short", self._pos + pos)
        elif kind == SECTION:
            self._first = len(self._interfaces)
            self._dropped += sum(self._drops.values())
            self._drops = {}
        elif kind == INTERFACE:
            self._interface(view, pos, length)
        elif kind == STATISTICS:
            options = dict(self._options(view, pos + 20, pos + length - 4))
            counts = [options[code] for code in (ISB_DROPPED, ISB_OS_DROPPED) if len(options.get(code, b"")) == 8]
            (interface,) = unpack_from(order + "I", view, pos + 8)
            if len(self._drops) < MOST_INTERFACES or interface in self._drops:
                self._drops[interface] = sum(unpack_from(order + "Q", count)[0] for count in counts)
        elif kind == SECRETS:
            secret, size = unpack_from(order + "II", view, pos + 8)
            self.plain = False  # they hold for packets of other splits too
            if secret == TLS_KEY_LOG:
                self._secret(bytes(view[pos + 16 : pos + min(16 + size, length - 4)]))

    def _interface(self, view: memoryview, pos: int, length: int) -> None:
        if len(self._interfaces) - self._first >= MOST_INTERFACES:
            self._damage.say("the interface at byte {:,} is not read: over {:,}", self._pos + pos, MOST_INTERFACES)
            return
        order = self._order
        link, _, snaplen = unpack_from(order + "HHI", view, pos + 8)
        options = dict(self._options(view, pos + 16, pos + length - 4))
        seconds = options.get(IF_OFFSET, b"")
        offset = int(unpack_from(order + "q", seconds)[0]) if len(seconds) == 8 else 0
        resolution = (options.get(IF_RESOLUTION) or b"\x06")[0]
        self._interfaces.append(Interface(link, snaplen, resolution, offset if abs(offset) < MAX_OFFSET else 0))

    def _secret(self, secret: bytes) -> None:
        """Keeps a key log."""
        if self._secret_bytes + len(secret) + SECRET_COST > MOST_SECRETS:
            most = MOST_SECRETS >> 20
            self._damage.say("TLS keys of {:,} bytes are left out: over {} MiB of them", len(secret), most)
            return
        self._secret_bytes += len(secret) + SECRET_COST
        self.secrets.append(secret)

    def _options(self, view: memoryview, pos: int, end: int) -> Iterator[tuple[int, bytes]]:
        while pos + 4 <= end:
            code, size = unpack_from(self._order + "HH", view, pos)
            if code == 0 or pos + 4 + size > end:
                return
            yield code, bytes(view[pos + 4 : pos + 4 + size])
            pos += 4 + (size + 3 & ~3)

    def _packets(self, view: memoryview, blocks: Blocks) -> Packets:
        """The window's packets as columns."""
        at, kind = np.array(blocks.at, np.int64), np.array(blocks.kind, np.int64)
        described = [known for known, after in zip(blocks.described, blocks.described[1:], strict=False)
                     if known.packet < after.packet] + blocks.described[-1:]  # fmt: skip
        since = np.array([known.packet for known in described])
        counts = np.diff(since, append=len(at))
        first = repeat([known.first for known in described], counts)
        interfaces = repeat([known.interfaces for known in described], counts)
        orders = [known.order for known in described]
        big = repeat([order == ">" for order in orders], counts) if len(set(orders)) == 2 else None
        words = _views(view, 4, big, orders[0])

        def word(offset: int) -> Ints:
            return _pick(words, at + offset, big)

        size, interface, start = word(4), word(8), at + 28
        captured, length = word(20), word(24)
        units = word(12).astype(np.uint64) << np.uint64(32) | word(16).astype(np.uint64)
        old, simple = kind == OLD_PACKET, kind == SIMPLE
        if old.any():  # its interface is a 16-bit number, a count of drops behind it
            half = _pick(_views(view, 2, big, orders[0]), at + 8, big)
            interface = np.where(old, half, interface)
        self._begun = True
        self.plain &= bool((kind == PACKET).all())
        table = np.array([*self._interfaces, (UNKNOWN_LINK, 0, -1, 0)], np.int64).T
        if simple.any():
            interface, length = np.where(simple, 0, interface), np.where(simple, word(8), length)
            start = np.where(simple, at + 12, start)
            snaplen = np.where(interfaces > 0, table[1][first], 0)
            room = np.minimum(size - 16, np.where(snaplen > 0, snaplen, 1 << 30))
            captured = np.where(simple, np.minimum(length, room), captured)
        captured = np.minimum(captured, np.maximum(at + size - 4 - start, 0))  # a block's own length is the bound
        row = np.where(interface < interfaces, first + interface, table.shape[1] - 1)
        time = self._times(units, table[2][row], table[3][row], simple)
        number = np.arange(self._number, self._number + len(at), dtype=np.int64)
        self._number += len(at)
        cuts = _cuts(view, orders[0], at, size, start + captured, kind == PACKET) if big is None else {}
        return Packets(view, number, time, start, captured, np.maximum(length, captured), table[0][row], cuts=cuts)

    def _times(self, units: NDArray[np.uint64], resolution: Ints, offset: Ints, simple: NDArray[np.bool_]) -> Ints:
        """ns since the epoch; 0 for an unknown interface (resolution -1). A simple packet has no time and gets that of
        the packet before it."""
        out = np.zeros(len(units), np.int64)
        for one in np.unique(resolution[resolution >= 0]).tolist():
            mine = resolution == one
            out[mine] = _nanoseconds(units[mine], one) + offset[mine] * 1_000_000_000
        if simple.any():
            out[simple] = 0
            places = np.maximum.accumulate(np.where(simple, -1, np.arange(len(out))))
            out = np.where(places >= 0, out[np.maximum(places, 0)], self._time)
        self._time = int(out[-1])
        return out

    def _resync(self, view: memoryview, pos: int, final: bool) -> int:
        """The next packet block or section with its length at both ends; the end of the window if there is none."""
        rest = len(view) - pos
        if rest > NEAR.size + 4:  # the usual case, quickly
            words = NEAR.unpack_from(view, pos + 4)
            wanted = PACKET if self._order == "<" else PACKET_SWAPPED
            here = pos + 4 + 4 * words.index(wanted) if wanted in words and SECTION not in words else pos
            if here > pos and _whole(view, here, self._order):
                self._damage.skip(self._pos + pos, here - pos)
                return here
        following = len(view) if final else pos + rest // 4 * 4  # blocks begin at multiples of four bytes
        for low, high in stretches_of(pos, len(view) - 12):
            numbers = np.frombuffer(view, self._order + "u4", (high - low + 3) // 4, low)
            places = (low + 4 * np.flatnonzero((numbers == PACKET) | (numbers == SECTION))).tolist()
            found = next((here for here in places if here > pos and _whole(view, here, self._order)), None)
            if found is not None:
                following = found
                break
        self._damage.skip(self._pos + pos, following - pos)
        return following


def _cuts(view: memoryview, order: str, at: Ints, size: Ints, end: Ints, options: NDArray[np.bool_]) -> dict[int, Cut]:
    """The cuts in packets' comments, by row. end: where each packet's bytes end and its options begin, if its type of
    block has any."""
    begin = at + (end - at + 3 & ~3)
    rows = np.flatnonzero(options & (begin + 12 <= at + size))
    if not len(rows):
        return {}
    half = np.ndarray((len(view) - 1,), order + "u2", view, strides=(1,))
    found: dict[int, Cut] = {}
    for row in rows[half[begin[rows]] == COMMENT].tolist():
        pos = int(begin[row])
        length = int(half[pos + 2])
        cut = cut_of(bytes(view[pos + 4 : pos + 4 + length])) if pos + 8 + length <= at[row] + size[row] else None
        if cut is not None:
            found[row] = cut
    return found


def _views(
    view: memoryview, width: int, big: NDArray[np.bool_] | None, order: str
) -> list[NDArray[np.unsignedinteger]]:
    """Numbers of width bytes at every offset of the window, in its byte order; little-endian, then big-endian where
    there are both."""
    orders = order if big is None else "<>"
    return [np.ndarray((len(view) - width + 1,), f"{order}u{width}", view, strides=(1,)) for order in orders]


def _pick(views: list[NDArray[np.unsignedinteger]], offsets: Ints, big: NDArray[np.bool_] | None) -> Ints:
    """The numbers at these offsets; values of blocks that are too short for them are dropped later."""
    offsets = np.minimum(offsets, len(views[0]) - 1)
    found = views[0][offsets] if big is None else np.where(big, views[1][offsets], views[0][offsets])
    return found.astype(np.int64)


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
