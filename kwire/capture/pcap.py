"""pcap files: a header, then records; both byte orders, microseconds and nanoseconds.

The record headers are walked many at once (record_starts.py) or, near a window's end and behind damage, one by one;
everything else is read as columns. Where a record header makes no sense, the next
place is searched from which a chain of plausible headers follows (IETF draft-ietf-opsawg-pcap).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from kwire.capture.damage import Damage, stretches_of
from kwire.capture.packets import Ints, Packets
from kwire.capture.record_starts import MAX_PACKET, RECORD, record_starts
from kwire.counted import counted
from kwire.errors import CaptureError

MAGICS = {  # (byte order, ns for each unit of the fraction)
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
HEADER = 24
CHAIN = 4  # record headers in a row that make a place believable
AHEAD = 1 << 18  # bytes behind damage that are checked, if there are so many, before a place is believed
USUAL = 1 << 18  # bytes; what capturing programs keep of a packet at most
WEEK = 7 * 86400
LATEST = 9  # records from whose times that of the newest one is estimated


class PcapReader:
    """read(view, final) gives the packets of a window and how many bytes of it they took."""

    def __init__(self, head: bytes, name: str) -> None:
        if len(head) < HEADER:
            raise CaptureError(name, f"a pcap header takes {HEADER} bytes, there are {len(head)}")
        self.order, self.unit = MAGICS[head[:4]]
        _, _, _, _, snaplen, link = Struct(self.order + "HHiIII").unpack_from(head, 4)
        self.link = link & 0xFFFF
        self.snaplen = snaplen
        self.secrets: list[bytes] = []
        self.dropped = 0
        self._damage = Damage()
        self._number = 1
        self._pos = 0  # in the capture, of the window's first byte
        self._header = True
        self._seconds = 0  # the time of the last packets, about

    @property
    def notes(self) -> list[str]:
        """What is damaged or cut, and where."""
        return self._damage.notes

    def go_to(self, pos: int) -> None:
        """Continues at this place, behind the file's header."""
        self._header, self._pos = False, pos

    def read(self, view: memoryview, final: bool) -> tuple[Iterator[Packets], int]:
        """The packets of the window. final: no more bytes will come, so that a cut record is the last one."""
        begin = HEADER if self._header else 0
        self._header = False
        starts, used, cut = self._walk(view, begin, final)
        self._note_time(view, starts[-LATEST:].tolist())
        self._pos += used
        if not len(starts):
            return iter(()), used
        return iter((self._packets(view, starts, cut),)), used

    def _walk(self, view: memoryview, pos: int, final: bool) -> tuple[Ints, int, bool]:
        """The offsets of the records, the end of the last one, and whether that one is cut."""
        found, pos = record_starts(view, pos, self.order)
        starts = found[-LATEST:].tolist()
        begin = len(starts)
        pos, cut = self._walk_singly(view, pos, final, starts, len(found) - begin)
        return np.concatenate((found, np.array(starts[begin:], np.int64))), pos, cut

    def _walk_singly(self, view: memoryview, pos: int, final: bool, starts: list[int], before: int) -> tuple[int, bool]:
        """As _walk; adds to starts. before: number of records of the window before those."""
        append = starts.append
        length_at = Struct(self.order + "I").unpack_from
        end = len(view)
        last_header = end - RECORD
        while pos <= last_header:
            (captured,) = length_at(view, pos + 8)
            following = pos + RECORD + captured
            if captured > MAX_PACKET:
                if not final and end - pos < AHEAD:
                    break
                self._note_time(view, starts)
                pos = self._resync(view, pos)
                continue
            if following > end:
                if not final:
                    return pos, False
                append(pos)
                early = counted(following - end, "byte")
                number = self._number + before + len(starts) - 1
                self._damage.say(f"packet {number:,} is cut: the file ends {early} early")
                return end, True
            append(pos)
            pos = following
        if final and 0 < end - pos < RECORD:
            self._damage.say(f"the file ends in the middle of a packet header, {end - pos} bytes behind the last one")
            pos = end
        return pos, False

    def _note_time(self, view: memoryview, starts: list[int]) -> None:
        """The middle of the last few packets' times: the last one alone may be damage already."""
        if starts:
            seconds = Struct(self.order + "I").unpack_from
            latest = sorted(seconds(view, start)[0] for start in starts[-LATEST:])
            self._seconds = latest[len(latest) // 2]

    def _packets(self, view: memoryview, at: Ints, cut: bool) -> Packets:
        words = np.ndarray((len(view) - 3,), self.order + "u4", view, strides=(1,))
        captured = words[at + 8].astype(np.int64)
        length = words[at + 12].astype(np.int64)
        if cut:
            captured[-1] = len(view) - (int(at[-1]) + RECORD)
        time = words[at].astype(np.int64) * 1_000_000_000 + words[at + 4].astype(np.int64) * self.unit
        number = np.arange(self._number, self._number + len(at), dtype=np.int64)
        self._number += len(at)
        links = np.full(len(at), self.link, np.int64)
        return Packets(view, number, time, at + RECORD, captured, np.maximum(length, captured), links)

    def _resync(self, view: memoryview, pos: int) -> int:
        """The next offset at which records continue; the end of the window if there is none."""
        found = find_record(view, pos + 1, self.order, self._seconds)
        following = len(view) - RECORD + 1 if found is None else found
        following = max(following, pos + 1)
        self._damage.skip(self._pos + pos, following - pos)
        return following


def find_record(view: memoryview, pos: int, order: str, seconds: int, chain: int = CHAIN) -> int | None:
    """Where at or behind pos a chain of plausible record headers begins; None where there is none.

    seconds: a time near which the packets lie (0: any). A chain may also end exactly at the end of view.
    """
    n = len(view) - pos - RECORD + 1
    if n <= 0:
        return None
    words = np.ndarray((len(view) - 3,), order + "u4", view, strides=(1,))
    header = Struct(order + "IIII").unpack_from
    stretches = (_plausible(words, low, high, seconds) for low, high in stretches_of(pos, pos + n))
    for start in (start for found in stretches for start in found):
        here, first = start, header(view, start)[0]
        for _ in range(chain):
            if here > len(view) - RECORD:
                return start
            found, _, size, full = header(view, here)
            if size > full or size >= MAX_PACKET or abs(found - first) > WEEK:
                break
            here += RECORD + size
        else:
            return start
    return None


def _plausible(words: NDArray[np.uint32], low: int, high: int, seconds: int) -> list[int]:
    """Where between low and high a record header may be."""
    at = np.arange(low, high)
    captured, length = words[at + 8], words[at + 12]
    fine = (captured <= length) & (captured >= 14) & (captured <= USUAL) & (length < MAX_PACKET)
    fine &= words[at + 4] < 1_000_000_000
    if seconds:
        fine &= np.abs(words[at].astype(np.int64) - seconds) < WEEK
    found: list[int] = at[fine].tolist()
    return found
