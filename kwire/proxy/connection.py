"""A client's connection and the one to its broker: two transports around a link.

A side that does not take what is sent to it stops the reading of the other; so does an answer that waits on purpose,
and a broker that is paused. What came is gone through a few frames at a time, in turns with all other connections
(broker/scheduling.py), so that none of them waits for what another one is told at once. Whatever a peer sends can end
this connection and no other.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from struct import pack
from typing import TYPE_CHECKING, Protocol, cast

from kwire.broker.budgets import Pool
from kwire.broker.scheduling import Turns
from kwire.client.address import Address
from kwire.client.security import tls_failure
from kwire.errors import KwireError
from kwire.proxy.cutter import Cutter, End, Piece, Wait
from kwire.proxy.faults import Judge
from kwire.proxy.link import Edits, Link
from kwire.proxy.routes import ProxyRoute
from kwire.proxy.types import PeerRefused, ProxyLimits

if TYPE_CHECKING:
    from kwire.proxy.tap import RecordedSide, Tap

FRAMES = 32  # that begin in a turn


class PairOwner(Protocol):
    """The server, as its connections know it: what they share, and what they ask and tell it."""

    loop: asyncio.AbstractEventLoop
    limits: ProxyLimits
    edits: Edits
    tap: Tap | None
    upstream_tls: ssl.SSLContext | None
    turns: Turns
    held: Pool[Pair]
    unsent: Pool[Pair]

    def judge(self, pair: Pair) -> Judge: ...

    def silence(self, route: ProxyRoute) -> int: ...

    def began(self, pair: Pair) -> bool: ...

    def ended(self, pair: Pair) -> None: ...

    def tell(self, kind: str, who: str, text: str) -> None: ...

    def bug(self, error: BaseException) -> None: ...


class Pair:
    """One client and its broker."""

    def __init__(self, server: PairOwner, route: ProxyRoute) -> None:
        self.server, self.route = server, route
        self.judge = server.judge(self)
        self.link = Link(server.edits, server.limits.frame, self.judge)
        self.client = ProxiedSide(self, self.link.requests)
        self.broker = ProxiedSide(self, self.link.responses)
        self.name = ""
        self.began = server.loop.time()
        self.spoke = False
        self.why = ""
        self.over = False
        self.dead = False  # half-open: its broker is gone, and the client is not told
        self.held = self.unsent = 0  # bytes, as the server's sums have them
        self.held_since = self.stuck = 0.0  # by the loop's clock
        self._dial: asyncio.Task[None] | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None  # at a broker that is paused
        self._late: deque[Piece] = deque()  # for the client, behind an answer that waits
        self._waits: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------ life

    def accepted(self) -> None:
        """The client is there; its broker is called, and until then nothing is read."""
        peer = self.client.transport.get_extra_info("peername") or ("", 0)
        self.name = str(Address(peer[0], peer[1]))
        self.judge.peer.came_from(peer[0], peer[1])
        self.client.transport.pause_reading()
        if self.server.began(self):
            self._dial = self.server.loop.create_task(self._connect())

    async def _connect(self) -> None:
        reasons = []
        for address in self.route.upstream:
            try:
                async with asyncio.timeout(self.server.limits.connect):
                    await self.server.loop.create_connection(
                        lambda: self.broker, address.host, address.port, ssl=self.server.upstream_tls,
                    )  # fmt: skip
            except (OSError, ValueError, KwireError) as error:
                reasons.append(_unreachable(address, error))
                continue
            if self.over:
                self.broker.transport.abort()
                return
            self._joined()
            return
        self.server.tell("unreachable", str(self.route), "; ".join(reasons))
        self.client.reset_at_end()  # as the broker's own machine refuses; an end in peace reads as a refused login
        self.close("its broker cannot be reached", abort=True)

    def _joined(self) -> None:
        client, broker = self.client.transport, self.broker.transport
        tap = self.server.tap
        if tap is not None:
            self.client.side, self.broker.side = tap.begin(
                client.get_extra_info("peername"), client.get_extra_info("sockname"),
                broker.get_extra_info("sockname"), broker.get_extra_info("peername"),
            )  # fmt: skip
        self.server.tell("connected", self.name, f"to {self.route}")
        self.pace()

    def close(self, why: str, abort: bool = False) -> None:
        """Ends both sides; what was taken still goes out, unless it is aborted."""
        if self.over:
            return
        self.over, self.why = True, why
        for end in (self.client, self.broker):
            if end.made:
                end.transport.abort() if abort else end.transport.close()
        if self._dial is not None and not self.broker.made:
            self._dial.cancel()
        for timer in (self._waits, self._look):
            if timer is not None:
                timer.cancel()
        self._linger = self.server.loop.call_later(self.server.limits.linger, self._abort)
        self._let_go()

    @property
    def ending(self) -> bool:
        return self.over

    def give_up(self, why: str) -> None:
        """It holds too much."""
        self.server.tell("refused", self.name, why)
        self.close(why, abort=True)
        self.client.unsent = self.broker.unsent = 0
        self._count()

    def _let_go(self) -> None:
        """Nothing more goes from one side to the other."""
        self._late.clear()
        self.client.came.clear()
        self.broker.came.clear()
        self.link.let_go()
        self._count()

    def _abort(self) -> None:
        for end in (self.client, self.broker):
            if end.made and not end.lost:
                end.transport.abort()

    def lost(self, half: ProxiedSide) -> None:
        """A side is gone; what it said before goes on, and the client learns of a reset what it would without us:
        some take an end in peace, before the first answer, for a refused login and do not try again."""
        while half.came and not self.over:
            self.pass_on(half)
        reset = half.reset and half is self.broker and not (self.over or self.dead)
        if reset:
            self.client.reset_at_end()
        self._count()
        if half is self.broker and self._waits is not None:
            self._late.append(End("closed"))
        elif not (self.dead and half is self.broker):
            self.close("closed", abort=reset and not self.client.unsent)
        if all(each.lost or not each.made for each in (self.client, self.broker)):
            if self._linger is not None:
                self._linger.cancel()
            self.server.ended(self)

    # ------------------------------------------------------------ bytes

    def pass_on(self, half: ProxiedSide) -> None:
        """The next frames that came on a side go to the other."""
        asks = half is self.client
        self.spoke = self.spoke or asks
        try:
            pieces = half.cut()
            made = self.link.responses(b"") if asks else []
        except PeerRefused as refused:
            self.server.tell("refused", self.name, str(refused))
            self.close(str(refused))
            return
        except Exception as error:  # a bug of ours: this connection ends, the others live
            self.server.bug(error)
            self.close("a bug in kwire", abort=True)
            return
        if asks:
            self._send(self.broker, pieces)
            pieces = made
        if self._waits is not None:
            self._late.extend(pieces)
        else:
            self._send(self.client, pieces)
        self._count()

    def _count(self) -> None:
        """Tells the server what is held, and who may hold too much ends."""
        now = self.server.loop.time()
        held, before = self.link.held, self.held
        if held < before or not before:
            self.held_since = now
        self.held = held
        self.server.held.took(held - before)
        unsent, before = self.client.unsent + self.broker.unsent, self.unsent
        if self._late:
            unsent += sum(len(piece) for piece in self._late if isinstance(piece, bytes | memoryview))
        if not before:
            self.stuck = now
        self.unsent = unsent
        self.server.unsent.took(unsent - before)

    def _send(self, half: ProxiedSide, pieces: Iterable[Piece]) -> None:
        """Pieces to one side, as far as none of them says otherwise."""
        ready: list[bytes | memoryview] = []
        pieces = iter(pieces)
        for piece in pieces:
            if isinstance(piece, bytes | memoryview):
                ready.append(piece)
                continue
            self._write(half, ready)
            ready = []
            if isinstance(piece, Wait):
                self._late.extend(pieces)
                self._waits = self.server.loop.call_later(piece.ns / 1e9, self._go_on)
            elif isinstance(piece, End):
                self.close(piece.why)
            else:
                self._die()
            return
        self._write(half, ready)

    def _write(self, half: ProxiedSide, pieces: list[bytes | memoryview]) -> None:
        if not pieces or self.over or self.dead:
            return
        if half.side is not None:
            for piece in pieces:
                half.side.went(bytes(piece))
        if len(pieces) == 1:
            half.transport.write(pieces[0])  # which, unlike writelines, makes no copy
        else:
            half.transport.writelines(pieces)
        half.wrote()

    def _go_on(self) -> None:
        """An answer has waited long enough."""
        self._waits = None
        pieces, self._late = self._late, deque()
        self._send(self.client, pieces)
        self._count()
        self.pace()

    def _die(self) -> None:
        """The connection is half open from here on: what the client says is read and forgotten."""
        self.dead = True
        if self._waits is not None:
            self._waits.cancel()
        self.broker.transport.abort()
        self._let_go()
        self.client.read(True)

    def pace(self) -> None:
        """Reads of each side only while the other takes what comes."""
        if self.over or self.dead or not self.broker.made:
            return
        silence = self.server.silence(self.route)
        if silence and self._look is None:
            self._look = self.server.loop.call_later(silence / 1e9, self._look_again)
        held_back = silence or self.client.full
        due = max(len(self.link.waiting), len(self._late)) >= self.server.limits.pipelined
        self.client.pace(not (held_back or self.broker.full or self.link.ending or due))
        self.broker.pace(not (held_back or self._waits))

    def written(self) -> None:
        """A side has taken all that was sent to it."""
        self._count()
        self.pace()

    def _look_again(self) -> None:
        self._look = None
        self.pace()


class ProxiedSide(asyncio.Protocol):
    """One of the two sides. side: where it is recorded, if it is. came: what it sent and was not gone through yet.
    unsent: bytes; full: these are too many."""

    def __init__(self, pair: Pair, cutter: Cutter) -> None:
        self.pair, self._cutter = pair, cutter
        self.transport: asyncio.Transport
        self.side: RecordedSide | None = None
        self.made = self.lost = self.reset = self.full = False
        self.unsent = 0
        self.came: deque[bytes] = deque()
        self._at = 0  # how far the first of them was gone through
        self._may = False  # go on
        self._turn = pair.server.turns.newcomer(self._step)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=1)  # so that we hear of it when nothing is left
        self.made = True
        if self is self.pair.client:
            self.pair.accepted()
        else:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self.pair.over or self.pair.dead:
            return
        if self.side is not None:
            self.side.came(data)
        self.came.append(data)
        if self._may and len(self.came) == 1:
            self._step()  # the first frames at once
        else:
            self.pace(self._may)

    def pace(self, may: bool) -> None:
        """Goes on with what came, and reads more of it, or does not."""
        self._may = may
        self.read(may and not self.came)
        if may and self.came:
            self.pair.server.turns.want(self._turn)

    def _step(self) -> bool:
        """A turn; whether there is more to do."""
        if self.came and self._may and not (self.pair.over or self.pair.dead):
            self.pair.pass_on(self)
            self.pair.pace()
        return bool(self.came) and self._may and not (self.pair.over or self.pair.dead)

    def cut(self) -> list[Piece]:
        """The next frames of what came. Raises PeerRefused."""
        data = self.came[0]
        pieces = self._cutter(data, self._at, FRAMES)
        self._at = self._cutter.stopped
        if self._at == len(data):
            self.came.popleft()
            self._at = 0
        return pieces

    def read(self, wanted: bool) -> None:
        """Whether more is read."""
        if wanted != self.transport.is_reading() and not self.transport.is_closing():
            self.transport.resume_reading() if wanted else self.transport.pause_reading()

    def wrote(self) -> None:
        """Counts what is left to send."""
        self.unsent = self.transport.get_write_buffer_size()
        self.full = self.unsent > self.pair.server.limits.buffered

    def reset_at_end(self) -> None:
        """The peer shall see a reset (RST) when this is closed, not an end (FIN)."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))

    def resume_writing(self) -> None:
        self.unsent, self.full = 0, False
        self.pair.written()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self.unsent = True, 0
        self.reset = isinstance(exc, ConnectionResetError)
        self.pair.lost(self)
        if self.side is not None:
            self.side.end()


def _unreachable(address: Address, error: Exception) -> str:
    """Why a broker cannot be reached, in words."""
    if isinstance(error, ssl.SSLError):
        return str(tls_failure(address, error))
    if isinstance(error, TimeoutError):
        return f"{address}: no answer"
    if isinstance(error, OSError) and error.errno:
        import os

        return f"{address}: {error.strerror if error.errno < 0 else os.strerror(error.errno)}"
    return f"{address}: {error}"
