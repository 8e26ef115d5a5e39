"""A client's connection and the one to its broker: two transports around a link.

A side that does not take what is sent to it stops the reading of the other. Whatever a peer sends can end this
connection and no other.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from kwire.client.address import Address
from kwire.client.security import tls_failure
from kwire.errors import KwireError
from kwire.proxy.link import Link
from kwire.proxy.routes import Route
from kwire.proxy.words import Refused

if TYPE_CHECKING:
    from kwire.proxy.server import Server
    from kwire.proxy.tap import Side

Cut = Callable[[bytes], Sequence[bytes | memoryview]]


class Pair:
    """One client and its broker."""

    def __init__(self, server: Server, route: Route) -> None:
        self.server, self.route = server, route
        self.link = Link(server.edits, server.limits.frame)
        self.client = End(self, self.link.requests)
        self.broker = End(self, self.link.responses)
        self.name = ""
        self.began = server.loop.time()
        self.spoke = False
        self.why = ""
        self.over = False
        self.counted = 0  # of link.held, in the server's sum
        self._dial: asyncio.Task[None] | None = None
        self._linger: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------ life

    def accepted(self) -> None:
        """The client is there; its broker is called, and until then nothing is read."""
        peer = self.client.transport.get_extra_info("peername") or ("", 0)
        self.name = str(Address(peer[0], peer[1]))
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
        self.close("its broker cannot be reached")

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
        self._linger = self.server.loop.call_later(self.server.limits.linger, self._abort)
        self.server.held(-self.counted)
        self.counted = 0

    def _abort(self) -> None:
        for end in (self.client, self.broker):
            if end.made and not end.lost:
                end.transport.abort()

    def lost(self) -> None:
        """A side is gone."""
        self.close("closed")
        if all(end.lost or not end.made for end in (self.client, self.broker)):
            if self._linger is not None:
                self._linger.cancel()
            self.server.ended(self)

    # ------------------------------------------------------------ bytes

    def pass_on(self, end: End, data: bytes) -> None:
        """What came on a side goes to the other."""
        if self.over:
            return
        self.spoke = self.spoke or end is self.client
        other = self.broker if end is self.client else self.client
        if end.side is not None:
            end.side.came(data)
        try:
            pieces = end.cut(data)
            held = self.link.held
            if held != self.counted:
                self.server.held(held - self.counted)
                self.counted = held
                self.server.bound()
        except Refused as refused:
            self.server.tell("refused", self.name, str(refused))
            self.close(str(refused))
            return
        except Exception as error:  # a bug of ours: this connection ends, the others live
            self.server.bug(error)
            self.close("a bug in kwire", abort=True)
            return
        if pieces and not self.over:
            if other.side is not None:
                for piece in pieces:
                    other.side.went(bytes(piece))
            other.transport.writelines(pieces)
        self.pace()

    def pace(self) -> None:
        """Reads of each side only while the other takes what comes."""
        if self.over or not self.broker.made:
            return
        self.client.read(not self.broker.full and len(self.link.waiting) < self.server.limits.pipelined)
        self.broker.read(not self.client.full)


class End(asyncio.Protocol):
    """One of the two sides. side: where it is recorded, if it is."""

    def __init__(self, pair: Pair, cut: Cut) -> None:
        self.pair, self.cut = pair, cut
        self.transport: asyncio.Transport
        self.side: Side | None = None
        self.made = self.lost = self.full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=self.pair.server.limits.buffered)
        self.made = True
        if self is self.pair.client:
            self.pair.accepted()
        else:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.pair.pass_on(self, data)

    def read(self, wanted: bool) -> None:
        """Whether more is read."""
        if wanted != self.transport.is_reading() and not self.transport.is_closing():
            self.transport.resume_reading() if wanted else self.transport.pause_reading()

    def pause_writing(self) -> None:
        self.full = True
        self.pair.pace()

    def resume_writing(self) -> None:
        self.full = False
        self.pair.pace()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.lost = True
        if self.side is not None:
            self.side.end()
        self.pair.lost()


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
