"""A connection: bytes to frames, one request at a time, answers in order.

As in Kafka's SocketServer, the next request of a connection is looked at when the one before it is answered; a long
poll holds up its own connection and no other. What comes meanwhile is kept up to a limit, then nothing more is read.
Whatever a client sends can close its own connection and nothing else.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import TYPE_CHECKING, cast

from kwire.broker.service import Reply, Service, foreign
from kwire.broker.words import MiB, Peer

if TYPE_CHECKING:
    from kwire.broker.recorder import Recorder, Stream
    from kwire.broker.server import Server

SIZE = Struct(">i")
KEPT = 1 * MiB  # unread requests behind the one that is being answered


class Connection(asyncio.Protocol):
    """One client. The server is told when it begins and ends, and counts its bytes."""

    def __init__(self, server: Server, service: Service, node: int, recorder: Recorder | None) -> None:
        self.server, self.service, self.node, self.recorder = server, service, node, recorder
        self.peer: Peer
        self.transport: asyncio.Transport
        self.buffer = bytearray()
        self.busy = False  # a request is being answered
        self.full = False  # the client does not read its answers
        self.paused = False  # we do not read its requests
        self.looping = False
        self.active = 0.0  # the loop's time of the last request
        self.why = "by the client"
        self.stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer = self.server.began(self)
        self.active = self.server.loop.time()
        if self.recorder is not None:
            self.stream = self.recorder.begin(
                transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            )

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None and self.why == "by the client":
            self.why = f"by the client ({exc})" if str(exc) else "by the client"
        self.server.buffered(-len(self.buffer))
        self.buffer.clear()
        self.peer.close()
        self.server.ended(self)
        if self.stream is not None:
            self.stream.end()

    def data_received(self, data: bytes) -> None:
        if self.stream is not None:
            self.stream.client(data)
        if self.transport.is_closing():
            return
        self.buffer += data
        if not self.server.buffered(len(data)):
            self.close("too much is unfinished on all connections together")
            return
        self._look()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self._look()

    def _look(self) -> None:
        """Answers whatever is whole, one request after the other; not recursive, answers come at once or later."""
        if self.looping:
            return
        self.looping = True
        try:
            while not (self.busy or self.full or self.transport.is_closing()):
                frame = self._frame()
                if frame is None:
                    break
                self.busy = True
                self.active = self.server.loop.time()
                self.service.serve(self.peer, frame, self._done)
        except Exception as error:  # a bug of ours: this connection ends, the others live
            self.close(f"a bug in kwire: {type(error).__name__}: {error}")
            self.server.bug(error)
        finally:
            self.looping = False
        self._pace()

    def _frame(self) -> bytes | None:
        """The next request without its size prefix, when it is whole."""
        buffer = self.buffer
        if len(buffer) < 4:
            return None
        (size,) = SIZE.unpack_from(buffer)
        if not 0 <= size <= self.server.limits.frame:
            self.close(f"a request of {size:,} bytes, the limit is {self.server.limits.frame:,}{foreign(size)}")
            return None
        if len(buffer) < 4 + size:
            return None
        with memoryview(buffer) as view:
            frame = bytes(view[4 : 4 + size])
        del buffer[: 4 + size]
        self.server.buffered(-4 - size)
        return frame

    def _pace(self) -> None:
        """Reads no more while answers are due and enough requests are waiting."""
        much = (self.busy or self.full) and len(self.buffer) > KEPT
        if much != self.paused and not self.transport.is_closing():
            self.paused = much
            if much:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def _done(self, reply: Reply) -> None:
        if self.transport.is_closing():
            return
        if reply.data is not None:
            if self.stream is not None:
                self.stream.broker(reply.data)
            self.transport.write(reply.data)
        if reply.close is not None:
            self.close(reply.close)
            return
        self.busy = False
        self._look()

    def close(self, why: str) -> None:
        """Ends the connection; what was answered still goes out."""
        if not self.transport.is_closing():
            self.why = why
            self.transport.close()
