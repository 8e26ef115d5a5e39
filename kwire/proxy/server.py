"""Listens on the ports of routes.py, counts what connections hold, and tells who watches what happens."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
import traceback
from collections.abc import Callable
from typing import Any

from kwire.broker.budgets import Pool
from kwire.broker.context import Seen
from kwire.broker.control import ControlSocket
from kwire.broker.fault_rules import ONCE
from kwire.broker.faults import Faults
from kwire.broker.scheduling import Turns
from kwire.proxy.connection import Pair
from kwire.proxy.faults import Judge, name_of
from kwire.proxy.rewrite import edits
from kwire.proxy.routes import ProxyRoute, Routes
from kwire.proxy.tap import Tap
from kwire.proxy.types import Notice, ProxySettings


class ProxyServer:
    """A proxy with its listeners; start() and stop() are its life. tls: towards clients; upstream_tls: towards
    brokers. tap: what sees all bytes. faults: made with cannot=ONCE. saw: where the header of each request goes."""

    def __init__(
        self, settings: ProxySettings, tap: Tap | None = None, tls: ssl.SSLContext | None = None,
        upstream_tls: ssl.SSLContext | None = None, faults: Faults | None = None,
        control: ControlSocket | None = None, saw: Callable[[Seen], None] | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.limits = settings, settings.limits
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self._failed)
        self.tap, self.tls, self.upstream_tls = tap, tls, upstream_tls
        self.watching: list[Callable[[Notice], None]] = []
        self.routes = Routes(settings, self._opened)
        self.faults = faults if faults is not None else Faults(cannot=ONCE)
        self.edits = edits(self._told, self.faults.ranges)
        self._control, self._saw = control, saw
        self.pairs: set[Pair] = set()
        self.connections = 0  # ever made
        self.turns = Turns(time.monotonic_ns, self.loop.call_soon)
        holders = self.pairs.copy
        self.held = Pool(
            self.limits.held, holders, lambda each: (each.held, each.held_since), "wait for the rest of their frame"
        )
        self.unsent = Pool(self.limits.unsent, holders, lambda each: (each.unsent, each.stuck), "are not taken")
        self._listeners: list[asyncio.Server] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._stopping = False
        if tap is not None:
            tap.full = lambda why: self.tell("capture", str(tap.path), why)

    async def start(self) -> None:
        """Binds the first port. Raises OSError with the reason in a line."""
        try:
            if self._control is not None:  # before anybody is told that all is ready
                await self._control.start()
            self.routes.begin()
            await asyncio.gather(*self._opening)
            if self.tap is not None:
                self.tap.open()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Closes everything; safe to call twice."""
        self._stopping = True
        if self._control is not None:
            await self._control.stop()
        if self._opening:
            await asyncio.gather(*self._opening, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        for pair in list(self.pairs):
            pair.close("the proxy stops")
        end = self.loop.time() + 1
        while self.pairs and self.loop.time() < end:
            await asyncio.sleep(0.01)
        for pair in list(self.pairs):
            for each in (pair.client, pair.broker):
                if each.made:
                    each.transport.abort()
        await asyncio.sleep(0)
        self._listeners.clear()
        if self.tap is not None:
            self.tap.close()

    def _opened(self, route: ProxyRoute, sock: socket.socket) -> None:
        task = self.loop.create_task(self._listen(route, sock))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _listen(self, route: ProxyRoute, sock: socket.socket) -> None:
        listener = await self.loop.create_server(lambda: Pair(self, route).client, sock=sock, ssl=self.tls)
        self._listeners.append(listener)
        if self._stopping:
            listener.close()
        self.tell("listening", str(self.routes.address(route)), f"for {route}")

    # ------------------------------------------------------------ faults

    def judge(self, pair: Pair) -> Judge:
        """What looks at a connection's requests."""

        def told(api: str, rule: str) -> None:
            self.tell("fault", pair.name, f"{api}: {rule}")

        return Judge(self.faults, lambda: pair.route.node, time.time_ns, told, self._pace, self._saw)

    def silence(self, route: ProxyRoute) -> int:
        """ns until one may look again whether a broker still says nothing; 0: it speaks."""
        return self.faults.silence(route.node, time.time_ns())

    def _pace(self) -> None:
        for pair in list(self.pairs):
            pair.pace()

    def _told(self, key: int, host: str, port: int, node: int) -> tuple[str, int]:
        """What clients are told instead of a broker's address."""
        address = self.routes.local(host, port, node)
        elsewhere = self.faults.advertised(name_of(key))
        return elsewhere.get(node) or elsewhere.get(None) or address

    # ------------------------------------------------------------ told by connections

    def began(self, pair: Pair) -> bool:
        """A new connection; whether there is room for it. One that never said anything makes room, the oldest first."""
        self.connections += 1
        if len(self.pairs) >= self.limits.connections:
            silent = [each for each in self.pairs if each.dead or not each.spoke]
            if not silent:
                self.tell("refused", pair.name, f"there are {len(self.pairs):,} connections already")
                self.pairs.add(pair)
                pair.close("there are too many connections", abort=True)
                return False
            least = min(silent, key=lambda each: each.began)
            least.close("another connection needs its place", abort=True)
            self.pairs.discard(least)
        self.pairs.add(pair)
        return True

    def ended(self, pair: Pair) -> None:
        if pair in self.pairs:
            self.pairs.discard(pair)
            self.tell("closed", pair.name, pair.why)

    def tell(self, kind: str, who: str, text: str) -> None:
        notice = Notice(kind, who, text)
        for watch in self.watching:
            with contextlib.suppress(BrokenPipeError):
                watch(notice)

    def bug(self, error: BaseException) -> None:
        """Our own mistake: told to whoever watches, and never the peer's business."""
        self.tell("bug", "kwire", "".join(traceback.format_exception_only(error)).strip())

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, ssl.SSLError):
            self.tell("refused", "a client", f"TLS failed: {error.reason or error}")
        elif not isinstance(error, OSError):  # as of a client that fails in its TLS handshake
            self.bug(error or RuntimeError(context.get("message", "")))
