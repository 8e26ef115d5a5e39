"""Writing packets: pcap with nanoseconds, pcapng with an interface for each link type."""

from __future__ import annotations

from struct import pack
from typing import BinaryIO

from kwire.errors import CaptureError

SNAPLEN = 262144
ETHERNET = 1
LONGEST = 60_000  # bytes of a comment
TLS_KEY_LOG = 0x544C534B


def writer_of(file: BinaryIO, form: str, link: int | None = None) -> PcapWriter | PcapngWriter:
    """form: pcap or pcapng. link: the link type of all packets, with which a pcap file can begin at once."""
    return PcapWriter(file, link) if form == "pcap" else PcapngWriter(file)


class PcapWriter:
    """One link type for the whole file, which begins with the first packet unless link says it before."""

    def __init__(self, file: BinaryIO, link: int | None = None) -> None:
        self._file = file
        self._link: int | None = None
        if link is not None:
            self._begin(link)

    def close(self) -> None:
        """A file without packets is a capture too."""
        if self._link is None:
            self._begin(ETHERNET)

    def _begin(self, link: int) -> None:
        self._link = link
        self._file.write(pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPLEN, link))

    def write(self, time: int, data: bytes, length: int, link: int) -> None:
        """Raises CaptureError for a second link type."""
        if self._link is None:
            self._begin(link)
        elif self._link != link:
            raise CaptureError("pcap", "packets of several link types need --format pcapng")
        seconds, rest = divmod(time, 1_000_000_000)
        self._file.write(pack("<IIII", seconds, rest, len(data), length) + data)


class PcapngWriter:
    """Packets of any link types, in one section. names: of the interfaces, by link type, where they are known."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._interfaces: dict[tuple[int, str], int] = {}
        self._block(0x0A0D0D0A, pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + _option(4, b"kwire") + _option(0, b""))

    def write(
        self, time: int, data: bytes, length: int, link: int, name: str = "", comment: str = "", note: str = ""
    ) -> None:
        """comment, note: two comments on the packet, the first of which kwire reads again."""
        interface = self._interfaces.get((link, name))
        if interface is None:
            interface = self._interfaces[link, name] = len(self._interfaces)
            options = (_option(2, name.encode()) if name else b"") + _option(9, b"\x09") + _option(0, b"")
            self._block(1, pack("<HHI", link, 0, SNAPLEN) + options)
        head = pack("<IIIII", interface, time >> 32 & 0xFFFFFFFF, time & 0xFFFFFFFF, len(data), length)
        said = [_option(1, text.encode(errors="replace")[:LONGEST]) for text in (comment, note) if text]
        options = b"".join(said) + _option(0, b"") if said else b""
        self._block(6, head + data + bytes(-len(data) % 4) + options)

    def secrets(self, lines: list[str]) -> None:
        """Adds lines of a key log, with which readers of the file decrypt TLS; best before the packets."""
        text = "".join(f"{line}\n" for line in lines).encode()
        self._block(10, pack("<II", TLS_KEY_LOG, len(text)) + text + bytes(-len(text) % 4))

    def close(self) -> None:
        """All was written as it came."""

    def _block(self, kind: int, body: bytes) -> None:
        size = 12 + len(body)
        self._file.write(pack("<II", kind, size) + body + pack("<I", size))


def _option(code: int, value: bytes) -> bytes:
    return pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
