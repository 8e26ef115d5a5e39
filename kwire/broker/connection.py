"""A client's connection: bytes to requests, one request at a time, answers in the order of the requests.

As in Kafka's SocketServer, a connection's next request is handled when the one before it has its answer; a long poll
delays its own connection and no other. What comes meanwhile is kept up to a limit, then reading is paused. In which
order connections are served is scheduling.py's to say. Of requests that are large in themselves, not by their records,
one is in work at a time on all connections together. Whatever a client sends can close its own connection only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from kwire.broker.answers import ReplyFrame
from kwire.broker.budgets import Pool, TurnQueue
from kwire.broker.context import BrokerLimits, Peer, Work, at_once
from kwire.broker.received import ReceivedBytes
from kwire.broker.scheduling import Turns
from kwire.broker.service import LARGE, Service, foreign, is_large

if TYPE_CHECKING:
    from kwire.broker.nodes import Listener
    from kwire.broker.recorder import RecordedStream, Recorder

KEPT = 64 << 10  # bytes of unread requests behind the one that is being answered
AT_ONCE = 64  # requests that are answered in one turn at most
TOGETHER = 64 << 10  # bytes of answers that are sent in one go


class ConnectionOwner(Protocol):
    """The server, as its connections know it: what they share, and what they tell it. unfinished: bytes of requests;
    unsent: of answers; lane: the place of the one large request that is in work."""

    loop: asyncio.AbstractEventLoop
    limits: BrokerLimits
    turns: Turns
    unfinished: Pool[ServedConnection]
    unsent: Pool[ServedConnection]
    lane: TurnQueue[ServedConnection]

    def began(self, connection: ServedConnection) -> Peer: ...

    def ended(self, connection: ServedConnection) -> None: ...

    def bug(self, error: Exception) -> None: ...


class ServedConnection(asyncio.Protocol):
    """One client. The server is told when it begins and ends, and counts its bytes."""

    def __init__(
        self, server: ConnectionOwner, service: Service, node: int, listener: Listener, recorder: Recorder | None
    ) -> None:
        self.server, self.service, self.node, self.recorder = server, service, node, recorder
        self.listener = listener
        self.peer: Peer
        self.transport: asyncio.Transport
        self.received = ReceivedBytes()
        self.busy = False  # a request is being answered
        self.full = False  # the client does not read its answers
        self.paused = False  # we do not read its requests
        self.over = False  # the client sends no more
        self.ended = False  # nothing is served any more
        self.gone = False  # there is no socket any more
        self.spoke = False  # a whole request has come
        self.active = 0.0  # the loop's time of the last request
        self.began = 0.0  # since when there is a request that is not whole
        self.unsent = 0  # bytes of answers
        self.stuck = 0.0  # since when there are some
        self.why = "by the client"
        self.stream: RecordedStream | None = None
        self.turn = server.turns.newcomer(self._step)
        self._work: Work[None] | None = None
        self._calls: deque[Callable[[], Work[None] | None]] = deque()
        self._stepping = False
        self._answers: list[bytes] = []  # of this step
        self._answered = 0  # their bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.active = self.server.loop.time()
        self.peer = self.server.began(self)
        self.peer.soon = self._soon
        if self.recorder is not None:
            self.stream = self.recorder.begin(
                transport.get_extra_info("peername"), transport.get_extra_info("sockname")
            )

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None and self.why == "by the client":
            self.why = f"by the client ({exc})" if str(exc) else "by the client"
        self.gone = True
        if not self.ended and self._is_left():  # TLS is never half open in asyncio, and a reset takes back nothing
            self.over, self.full = True, False
            self.server.turns.want(self.turn)
        else:
            self._end()

    def _end(self) -> None:
        self.ended = True
        self._give_back()
        self.peer.close()
        self.peer.soon = at_once
        self.turn.step = lambda: False  # nothing leads back here, so that it needs no garbage collector
        self.server.ended(self)
        if self.stream is not None:
            self.stream.end()

    def data_received(self, data: bytes) -> None:
        if self.stream is not None:
            self.stream.client(data)
        if self.transport.is_closing():
            return
        if not self.received:
            self.began = self.server.loop.time()
        waits = self._whole()
        self.received.add(data)
        self.server.unfinished.took(len(data))
        if not (self.busy or self.full) and self._whole():
            self.server.turns.now_or_want(self.turn)
        if waits or self.busy or self.full:  # else its turn comes before the sockets are looked at again
            self._pace()

    def eof_received(self) -> bool:
        """What came as a whole is still served, as by Kafka's Selector."""
        self.over = True
        return self._is_left() and self.transport.get_extra_info("sslcontext") is None

    def _is_left(self) -> bool:
        """Whether there is something to do that waits for nobody else."""
        return self._work is not None or (not self.busy and self._whole())

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self._sent()
        self._look()

    # ------------------------------------------------------------ turns

    def _soon(self, call: Callable[[], Work[None] | None]) -> None:
        self._calls.append(call)
        self.server.turns.want(self.turn)

    def _look(self) -> None:
        """In line, when there may be something to do."""
        if self.received.size is not None and not (self.busy or self.full):
            self.server.turns.want(self.turn)

    def _step(self) -> bool:
        """A turn: what others have caused, a step of the request in work, or the next requests."""
        self._stepping = True
        try:
            while self._calls:
                self._begin(self._calls.popleft()())
            if self._work is not None:
                self._go_on()
            for _ in range(AT_ONCE):
                if self.busy or self.full or self.ended:
                    break
                frame = self._frame()
                if frame is None:
                    break
                self._serve(frame)
        except Exception as error:  # a bug of ours: this connection ends, the others live
            self._work = None
            self.close(f"a bug in kwire: {type(error).__name__}: {error}")
            self.server.bug(error)
        self._stepping = False
        self._send()
        self._pace()
        if self.over and not self._is_left():
            self.close("by the client")
        if self.ended:
            return False
        if self._work is not None:
            return self.server.lane.has(self)
        if self.busy or self.full or not self._whole():
            return False
        return self.server.lane.has(self) or not self._is_large()

    def _serve(self, frame: bytes | bytearray) -> None:
        self.busy = self.spoke = True
        self.active = self.server.loop.time()
        self._begin(self.service.serve(self.peer, frame, self._done))
        if self._work is None:
            self.server.lane.leave(self)

    def _begin(self, work: Work[None] | None) -> None:
        if work is not None:
            self._work = work
            self.server.lane.enter(self)

    def _go_on(self) -> None:
        """One step further, when nobody else's large request is in work."""
        assert self._work is not None
        if self.server.lane.enter(self) and next(self._work, self) is self:
            self._work = None
            self.server.lane.leave(self)

    def _whole(self) -> bool:
        """Whether there is something to look at: a request, or what cannot become one."""
        size = self.received.size
        return size is not None and (not 0 <= size <= self._most or len(self.received) >= 4 + size)

    def _is_large(self) -> bool:
        """Whether the next request is taken up on its own."""
        size = self.received.size or 0
        return size > LARGE and is_large(size, self.received.head(2))

    @property
    def _most(self) -> int:
        login, limits = self.peer.login, self.server.limits
        return limits.frame if login is None or login.user is not None else min(limits.login, limits.frame)

    def _frame(self) -> bytes | bytearray | None:
        """The next request without its size prefix, when it is whole and its turn has come."""
        received = self.received
        size = received.size
        if size is None:
            return None
        if not 0 <= size <= self._most:
            self.close(f"a request of {size:,} bytes, the limit is {self._most:,}{foreign(size)}")
            return None
        if len(received) < 4 + size or (self._is_large() and not self.server.lane.enter(self)):
            return None
        frame = received.take()
        if received:
            self.began = self.server.loop.time()
        self.server.unfinished.took(-4 - size)
        return frame

    def _pace(self) -> None:
        """Reads no more while answers are due and enough requests are waiting."""
        if len(self.received) <= KEPT and not self.paused:
            return
        much = len(self.received) > KEPT and (self.busy or self.full or self._whole())
        if much != self.paused and not (self.over or self.transport.is_closing()):
            self.paused = much
            if much:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    # ------------------------------------------------------------ answers

    def _done(self, reply: ReplyFrame) -> None:
        if self.ended:
            return
        if reply.data is not None:
            if self.transport.is_closing():  # as Kafka's Selector: a send that fails is the end
                self.close("by the client")
                return
            if self.stream is not None:
                self.stream.broker(reply.data)
            self._answers.append(reply.data)
            self._answered += len(reply.data)
            if not self._stepping or self._answered > TOGETHER:
                self._send()
        if reply.close is not None:
            self.close(reply.close)
            return
        self.busy = False
        if not self._stepping:
            self._look()

    def _send(self) -> None:
        """What a step has answered, in one go."""
        if self._answers:
            data = b"".join(self._answers)
            self._answers.clear()
            self._answered = 0
            self.transport.write(data)
            self._sent()

    def _sent(self) -> None:
        """Counts what is written and not yet sent."""
        size = self.transport.get_write_buffer_size()
        if size and not self.unsent:
            self.stuck = self.server.loop.time()
        before, self.unsent = self.unsent, size
        if size != before:
            self.server.unsent.took(size - before)

    def close(self, why: str, abort: bool = False) -> None:
        """Ends the connection; what was answered still goes out, unless it is aborted."""
        if not self.ended:
            self.ended = True
            if self.gone:
                self.server.loop.call_soon(self._end)
            elif not self.transport.is_closing():
                self._send()
                self.why = why
                self.transport.close()
        if abort:
            self.transport.abort()
            self._give_back()

    @property
    def ending(self) -> bool:
        return self.ended

    def give_up(self, why: str) -> None:
        self.close(why, abort=True)

    def _give_back(self) -> None:
        """Nothing is held any more, neither bytes nor a place."""
        self.server.unfinished.took(-len(self.received))
        self.server.unsent.took(-self.unsent)
        self.received.clear()
        self.unsent, self._work = 0, None
        self._calls.clear()
        self._answers.clear()
        self.server.lane.leave(self)
