"""Captures as blocks of packets, whatever their format; and from there to connections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kwire.capture import pcap, pcapng
from kwire.capture.packets import Packets
from kwire.capture.source import Source
from kwire.counted import counted
from kwire.errors import CaptureError


@dataclass(slots=True)
class Capture:
    """A capture that is being read. notes: what is damaged or cut, and where; secrets: TLS key logs it holds; dropped:
    packets that the capturing machine lost; packets and unread: how many there were, and of which unknown links."""

    source: Source
    reader: pcap.PcapReader | pcapng.PcapngReader | None = None
    packets: int = 0

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
        """Its packets, once. Raises CaptureError for a file that is no capture."""
        try:
            yield from self._blocks()
        finally:
            self.source.close()

    def _blocks(self) -> Iterator[Packets]:
        view = self.source.window(0)
        while len(view) < 4 and not self.source.ended:
            view = self.source.window(0)
        if not len(view):
            if self.source.problem:
                raise CaptureError(self.name, self.source.problem)
            raise CaptureError(self.name, "is empty")
        while len(view) < pcap.HEADER and not self.source.ended:
            view = self.source.window(0)
        self.reader = _reader(bytes(view[: pcap.HEADER]), self.name)
        while True:
            found, used = self.reader.read(view, self.source.ended)
            for block in found:
                self.packets += len(block)
                yield block
            if self.source.ended and used in (0, len(view)):
                return
            view = self.source.window(used)


def open_capture(path: str | Path, *, follow: bool = False) -> Capture:
    """A capture by its path, - for stdin. Raises OSError, CaptureError."""
    return Capture(Source(path, follow=follow))


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
    """What to say of packets, how many there are by what there is to say (ip.Network.counts)."""
    return [f"{counted(count, 'packet')} {what}" for what, count in counts.items()]


def note_kind(note: str) -> str:
    """Whether a note on packets or connections says that something was not read, or through which tunnel it came."""
    return "tunnel" if " came through " in note else "not read"
