"""Captures as blocks of packets, whatever their format; and from there to connections."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kwire.capture import pcap, pcapng
from kwire.capture.packets import Packets, packets_of
from kwire.capture.source import Source
from kwire.counted import counted
from kwire.errors import CaptureError


class Resumption(NamedTuple):
    """A place between two packets of a file, with what a reader must know to go on from there."""

    path: str | Path
    position: int
    reader: pcap.PcapReader | pcapng.PcapngReader
    packets: int


@dataclass(slots=True)
class Capture:
    """A capture that is being read. notes: what is damaged or cut, and where; secrets: TLS key logs it holds; dropped:
    packets that the capturing machine lost; packets and unread: how many there were, and of which unknown links."""

    source: Source
    reader: pcap.PcapReader | pcapng.PcapngReader | None = None
    packets: int = 0
    used: int = 0  # bytes of the window, by the newest block

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def notes(self) -> list[str]:
        notes = [] if self.reader is None else list(self.reader.notes)
        return notes + ([self.source.problem] if self.source.problem else [])

    @property
    def dropped(self) -> int:
        return 0 if self.reader is None else self.reader.dropped

    def blocks(self) -> Iterator[Packets]:
        """Its packets; they can be read once. While a file is followed, an empty block says that none came for a while.
        Raises CaptureError for a file that is no capture."""
        try:
            yield from self._blocks()
        finally:
            self.source.close()

    def behind(self) -> Resumption | None:
        """The place behind the newest block, for open_again; None if reading cannot begin there."""
        position = self.source.behind(self.used)
        if position is None or self.reader is None:
            return None
        return Resumption(self.source.path, position, deepcopy(self.reader), self.packets)

    def _blocks(self) -> Iterator[Packets]:
        view = self.source.window(0)
        if self.reader is None:
            view = self._begin(view)
        assert self.reader is not None
        while True:
            found, self.used = self.reader.read(view, self.source.ended)
            empty = self.source.follows
            for block in found:
                self.packets += len(block)
                empty = False
                yield block
            if empty:
                yield packets_of([], self.packets + 1)
            if self.source.ended and self.used in (0, len(view)):
                return
            view = self.source.window(self.used)

    def _begin(self, view: memoryview) -> memoryview:
        """Recognizes the file's format; returns the first window."""
        while len(view) < 4 and not self.source.ended:
            view = self.source.window(0)
        if not len(view):
            if self.source.problem:
                raise CaptureError(self.name, self.source.problem)
            raise CaptureError(self.name, "is empty")
        while len(view) < pcap.HEADER and not self.source.ended:
            view = self.source.window(0)
        self.reader = _reader(bytes(view[: pcap.HEADER]), self.name)
        return view


def open_capture(path: str | Path, *, follow: bool = False) -> Capture:
    """A capture by its path, - for stdin. Raises OSError, CaptureError."""
    return Capture(Source(path, follow=follow))


def open_again(place: Resumption) -> Capture:
    """Opens a capture at this place. Raises OSError."""
    source = Source(place.path)
    source.go_to(place.position)
    return Capture(source, deepcopy(place.reader), place.packets)


def _reader(head: bytes, name: str) -> pcap.PcapReader | pcapng.PcapngReader:
    if head[:4] in pcap.MAGICS:
        return pcap.PcapReader(head, name)
    if head[:4] == pcapng.MAGIC:
        return pcapng.PcapngReader(name)
    from kwire.codec.verdict import judge

    verdict = judge(head)
    what = f"; it looks like {verdict.what}" if verdict else ""
    hint = "" if verdict else "; kwire decode reads bytes that are no capture"
    raise CaptureError(name, f"neither pcap nor pcapng: it begins with {head[:4].hex(' ')}{what}{hint}")


def packet_notes(counts: dict[str, int]) -> list[str]:
    """Notes on packets that were not read or came through tunnels. counts: as Network.counts gives them."""
    return [f"{counted(count, 'packet')} {what}" for what, count in counts.items()]


def note_kind(note: str) -> str:
    """Of a note on packets or connections: whether it is about a tunnel or about something not read."""
    return "tunnel" if " came through " in note else "not read"
