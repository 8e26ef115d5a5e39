"""What sees the bytes of both sides: the capture file, and who shows lines of the client's side.

As the embedded broker's recorder does it, packets are made up around the plain bytes. The capture has two connections
for each client: it and the proxy's port, and the proxy and the broker. What is shown has one, of the client and the
broker, with what the client sent and got. Unless secrets are wanted, they are blanked before they are written: that
takes whole frames of the kinds that may hold some, which wait here and are forwarded all the same.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.broker.recorder import RAW, RecordedStream, Recorder
from kwire.proxy.blank import blanking
from kwire.proxy.cutter import Cutter
from kwire.proxy.link import Link
from kwire.proxy.types import MiB, PeerRefused

if TYPE_CHECKING:
    from kwire.capture.packets import Packets

LOOK = 0.05  # seconds between two looks at what came
TICK = 0.2  # seconds after which time goes on though nothing came
MOST = 16 * MiB  # of packets that wait to be shown
MOST_HELD = 32 * MiB  # of frames that wait to be blanked


class Tap:
    """recorder: the capture; feed: what is shown. largest: a frame, bytes."""

    def __init__(self, recorder: Recorder | None, feed: Feed | None, secrets: bool, largest: int) -> None:
        self.recorder, self.feed, self.secrets, self.largest = recorder, feed, secrets, largest
        self.full: Callable[[str], None] = lambda _: None
        self._streams = 0
        self._held = Held(MOST_HELD)
        if recorder is not None:
            recorder.full = self._full

    @property
    def path(self) -> Path | None:
        return None if self.recorder is None else self.recorder.path

    def open(self) -> None:
        """Begins the capture. Raises OSError, OutputError."""
        if self.recorder is not None:
            self.recorder.open()

    def close(self) -> None:
        if self.recorder is not None:
            self.recorder.close()
        if self.feed is not None:
            self.feed.close()

    def begin(self, client: Any, local: Any, outer: Any, broker: Any) -> tuple[RecordedSide, RecordedSide]:
        """A connection: the addresses of the client, of the port it called, of the proxy's other end, of the broker.
        Gives what the client's side and the broker's side are told to."""
        near: list[TapWriter] = []
        far: list[TapWriter] = []
        if self.recorder is not None:
            near.append(self._writer(self.recorder.begin(client, local)))
            far.append(self._writer(self.recorder.begin(outer, broker)))
        if self.feed is not None:
            self._streams += 1
            shown = RecordedStream(self.feed, *_alike(client, broker), 1_000 * self._streams, summed=False)
            near.append(TapWriter(shown.client, shown.broker, shown.end))
        return RecordedSide(near, asks=True), RecordedSide(far, asks=False)

    def _writer(self, stream: RecordedStream) -> TapWriter:
        plain = TapWriter(stream.client, stream.broker, stream.end)
        return plain if self.secrets else Blanked(plain, self.largest, self._held)

    def _full(self) -> None:
        assert self.recorder is not None
        self.full(f"is full at {self.recorder.limit // MiB:,} MB; what is said from now on is not in it")


def _alike(client: Any, broker: Any) -> tuple[Any, Any]:
    """Both addresses in one family, as packets have them: IPv4 inside of IPv6 (RFC 4291) where only one is IPv6."""
    ends = [(*(end or ("0.0.0.0", 0)),)[:2] for end in (client, broker)]
    if any(":" in host for host, _ in ends):
        ends = [(host if ":" in host else f"::ffff:{host}", port) for host, port in ends]
    return ends[0], ends[1]


class TapWriter:
    """Where one connection goes: request(bytes), response(bytes), end()."""

    def __init__(
        self, request: Callable[[bytes], None], response: Callable[[bytes], None], end: Callable[[], None]
    ) -> None:
        self.request, self.response, self.end = request, response, end


class Held:
    """Bytes of frames that wait to be blanked, on all connections together."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0


class Blanked(TapWriter):
    """A writer that is given everything without its secrets; zeros from where nobody can say what is one: behind what
    is no Kafka, and where too much waits for the rest of its frame."""

    def __init__(self, plain: TapWriter, largest: int, held: Held) -> None:
        self._link = Link(blanking(), largest, lenient=True)
        self._plain, self._held, self._own = plain, held, 0
        self._lost = False
        super().__init__(self._requests, self._responses, self._end)

    def _requests(self, data: bytes) -> None:
        self._pass(data, self._link.requests, self._plain.request)

    def _responses(self, data: bytes) -> None:
        self._pass(data, self._link.responses, self._plain.response)

    def _pass(self, data: bytes, cutter: Cutter, write: Callable[[bytes], None]) -> None:
        if self._lost:
            write(bytes(len(data)))
            return
        before = len(cutter.held)
        try:
            pieces = cutter(data)
        except PeerRefused:
            self._lose(before + len(data), write)
            return
        if pieces:
            write(b"".join(piece for piece in pieces if isinstance(piece, bytes | memoryview)))
        self._count(self._link.held)
        if self._held.size > self._held.most:
            self._lose(len(cutter.held), write)

    def _lose(self, size: int, write: Callable[[bytes], None]) -> None:
        self._lost = True
        write(bytes(size))
        for other, put in ((self._link.requests, self._plain.request), (self._link.responses, self._plain.response)):
            if put is not write and other.held:
                put(bytes(len(other.held)))
            other.held = bytearray()
        self._count(0)

    def _count(self, size: int) -> None:
        self._held.size += size - self._own
        self._own = size

    def _end(self) -> None:
        self._count(0)
        self._plain.end()


class RecordedSide:
    """One of the two connections; asks: its peer is the client."""

    def __init__(self, writers: list[TapWriter], asks: bool) -> None:
        self._writers = writers
        self.came = self._requests if asks else self._responses
        self.went = self._responses if asks else self._requests

    def _requests(self, data: bytes) -> None:
        for writer in self._writers:
            writer.request(data)

    def _responses(self, data: bytes) -> None:
        for writer in self._writers:
            writer.response(data)

    def end(self) -> None:
        for writer in self._writers:
            writer.end()


class Feed:
    """Packets from the proxy's thread for the one that shows them. When that is too slow, packets are left out, and
    counted in dropped, as a kernel does."""

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._rows: deque[tuple[bytes, int, int]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._number = 1
        self.closed = False
        self.dropped = 0

    def takes(self, packets: int) -> bool:
        if self._bytes <= MOST:
            return True
        self.dropped += packets
        return False

    def write(self, packet: bytes) -> None:
        with self._lock:
            if self._bytes > MOST:
                self.dropped += 1
                return
            self._bytes += len(packet)
            self._rows.append((packet, self._now(), RAW))

    def flush(self) -> None:
        """Nothing to do: whoever shows packets looks often enough."""

    def close(self) -> None:
        self.closed = True

    def blocks(self, until: float | None = None) -> Iterator[Packets]:
        """Packets as they come, many at a time, for each block costs; an empty one when none came for a while, so that
        time goes on. Ends when the proxy does. until: by time.monotonic()."""
        from kwire.capture.packets import packets_of

        waited = 0.0
        while until is None or time.monotonic() < until:
            over = self.closed
            with self._lock:
                rows, self._rows, self._bytes = list(self._rows), deque(), 0
            if rows or over or waited >= TICK:
                yield packets_of(rows, self._number)
                self._number += len(rows)
                waited = 0.0
            if over:
                return
            time.sleep(LOOK)
            waited += LOOK
