"""A capture of what the broker sees, as pcapng: packets made up around the bytes, so that no root is needed.

Each connection begins with SYN and ends with FIN; sequence numbers, acknowledgements and checksums are right. Above TLS
it is the plain text that is written. A segment holds a write of up to 64 KiB; the file is flushed as it goes.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from struct import pack
from typing import Any, BinaryIO, Protocol

from kwire.capture.save import writer_of
from kwire.outputs import Output

RAW = 101  # LINKTYPE_RAW: packets begin with the IP header
FIN, SYN, PUSH, ACK = 1, 2, 8, 16
MOST = 65_535 - 60  # payload of a packet whose IP length must fit in 16 bits
WINDOW = 65_535
AROUND = 36  # bytes that the file has around a packet
MASK = 0xFFFFFFFF


class Recorder:
    """Writes one file for all connections, pcapng or, x.pcap, pcap. open() is called when the broker listens: before
    that nothing happens to what has the file's name. now: ns since the Unix epoch. limit: bytes; when the file is as
    large, it ends, and full says so, once."""

    def __init__(self, output: Output, now: Callable[[], int] = time.time_ns, limit: int = 1 << 30) -> None:
        self.path, self.limit = output.path, limit
        self.full: Callable[[], None] = lambda: None
        self._output, self._left = output, limit
        self._file: BinaryIO | None = None
        self._early: list[tuple[int, bytes]] = []  # what came before open(): a first client may be quick
        self._now = now
        self._streams = 0

    def open(self) -> None:
        """Begins the file; it has its name at once. Raises OSError, OutputError."""
        self._file = self._output.open()
        form = "pcap" if self._output.path.suffix.lower() in (".pcap", ".cap") else "pcapng"
        self._writer = writer_of(self._file, form, RAW)
        for moment, packet in self._early:
            self._writer.write(moment, packet, len(packet), RAW)
        self._early.clear()
        self._output.place()
        self.flush()

    def begin(self, client: Any, broker: Any) -> RecordedStream:
        """A connection: (host, port, …) of both ends, as sockets give them."""
        self._streams += 1
        return RecordedStream(self, client, broker, 1_000 * self._streams)

    def takes(self, packets: int) -> bool:  # noqa: ARG002 (the sink's)
        return self._left > 0

    def write(self, packet: bytes) -> None:
        if self._left <= 0:
            return
        self._left -= len(packet) + AROUND
        if self._left <= 0:
            self.full()
        elif self._file is None:
            self._early.append((self._now(), packet))
        elif not self._file.closed:
            self._writer.write(self._now(), packet, len(packet), RAW)

    def flush(self) -> None:
        if self._file is not None and not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        self._output.close()


class PacketSink(Protocol):
    """Where packets go. takes(): whether so many more are worth making; if not, they are left out."""

    def takes(self, packets: int) -> bool: ...

    def write(self, packet: bytes) -> None: ...

    def flush(self) -> None: ...


class RecordedStream:
    """One connection's packets. first: a sequence number. summed: with checksums, half of the work."""

    def __init__(self, recorder: PacketSink, client: Any, broker: Any, first: int, summed: bool = True) -> None:
        self._recorder, self._summed = recorder, summed
        self._ends = (_end(client), _end(broker))
        self._sequence = [first, first + 500]
        self._over = False
        self._send(0, SYN)
        self._send(1, SYN | ACK)
        self._send(0, ACK)
        recorder.flush()

    def client(self, data: bytes) -> None:
        self._data(0, data)

    def broker(self, data: bytes) -> None:
        self._data(1, data)

    def end(self) -> None:
        """Both sides say that they are done."""
        if self._over:
            return
        self._over = True
        self._send(0, FIN | ACK)
        self._send(1, FIN | ACK)
        self._send(0, ACK)
        self._recorder.flush()

    def _data(self, side: int, data: bytes) -> None:
        if not self._recorder.takes(-(-len(data) // MOST)):
            self._sequence[side] = (self._sequence[side] + len(data)) & MASK
            return
        for start in range(0, len(data), MOST):
            self._send(side, PUSH | ACK, data[start : start + MOST])
        self._recorder.flush()

    def _send(self, side: int, flags: int, data: bytes = b"") -> None:
        (source, port), (target, to_port) = self._ends[side], self._ends[1 - side]
        acked = self._sequence[1 - side] if flags & ACK else 0
        head = pack(">HHIIBBH", port, to_port, self._sequence[side], acked, 0x50, flags, WINDOW)
        length = 20 + len(data)
        if len(source) == 4:
            pseudo = source + target + pack(">BBH", 0, 6, length)
            checked = pack(">BBHHHBB", 0x45, 0, 20 + length, 0, 0x4000, 64, 6)
            ip = checked + pack(">H", checksum(checked + source + target)) + source + target
        else:
            pseudo = source + target + pack(">II", length, 6)
            ip = pack(">IHBB", 6 << 28, length, 6, 64) + source + target
        tcp = head + pack(">HH", checksum(pseudo + head + data) if self._summed else 0, 0)
        self._recorder.write(b"".join((ip, tcp, data)))
        gone = len(data) + bool(flags & (SYN | FIN))
        self._sequence[side] = (self._sequence[side] + gone) & MASK


def _end(address: Any) -> tuple[bytes, int]:
    """An address as it stands in packets; of a socket that is gone already, none."""
    host, port = address[:2] if address else ("0.0.0.0", 0)
    return ipaddress.ip_address(host.partition("%")[0]).packed, port


def checksum(data: bytes) -> int:
    """The internet checksum (RFC 1071): as 65,536 is 1 modulo 65,535, the words' sum is the number's remainder."""
    if len(data) & 1:
        data += b"\0"
    number = int.from_bytes(data)
    left = number % 0xFFFF
    return 0xFFFF ^ (0xFFFF if left == 0 and number else left)
