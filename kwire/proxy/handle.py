"""A proxy for programs without a loop of their own: it runs in a thread, and every call here is a plain one."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kwire.broker.recorder import Recorder
from kwire.client.address import Address
from kwire.errors import KwireError
from kwire.outputs import Output
from kwire.proxy.server import Server
from kwire.proxy.tap import Feed, Tap
from kwire.proxy.words import Notice, Settings

T = TypeVar("T")
START = 30.0  # seconds


class Proxy:
    """A proxy on loopback for a with block, in front of a cluster that is there.

    upstream: brokers as bootstrap.servers has them. capture: a file, pcapng; one that exists is overwritten; secrets
    are blanked in it unless show_secrets. port: of the first listener, 0 for any. settings: what else there is, see
    kwire.proxy.words.Settings. feed: where packets go that somebody shows. Raises KwireError for what is no address,
    OSError for a port that is taken.
    """

    def __init__(
        self,
        upstream: str = "",
        *,
        port: int = 0,
        capture: str | Path | Output | None = None,
        show_secrets: bool = False,
        settings: Settings | None = None,
        feed: Feed | None = None,
        tls: ssl.SSLContext | None = None,
        upstream_tls: ssl.SSLContext | None = None,
    ) -> None:
        if settings is None:
            settings = Settings(tuple(Address.parse_all(upstream)), Address("127.0.0.1", port))
        elif upstream:
            settings = replace(settings, upstream=tuple(Address.parse_all(upstream)))
        self.settings = settings
        self.notices: list[Notice] = []
        self.watching: list[Callable[[Notice], None]] = []
        self._output = Output(capture, private=True) if isinstance(capture, str | Path) else capture
        self._show_secrets, self._feed = show_secrets, feed
        self._tls, self._upstream_tls = tls, upstream_tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: Server | None = None
        self._failed: BaseException | None = None

    def start(self) -> Proxy:
        """Listens; returns when clients can connect."""
        if self._thread is not None:
            raise KwireError("this proxy runs already")
        ready = threading.Event()
        self._failed = None

        async def run() -> None:
            try:
                limits = self.settings.limits
                recorder = Recorder(self._output, limit=limits.capture) if self._output else None
                tap = Tap(recorder, self._feed, self._show_secrets, limits.frame) if recorder or self._feed else None
                server = Server(self.settings, tap, self._tls, self._upstream_tls)
                server.watching.append(self._noticed)
                await server.start()
            except BaseException as error:
                self._failed = error
                ready.set()
                return
            stopping = asyncio.Event()
            self._loop, self._server, self._stopping = asyncio.get_running_loop(), server, stopping
            ready.set()
            await stopping.wait()
            await server.stop()

        self._thread = threading.Thread(target=lambda: asyncio.run(run()), name="kwire proxy", daemon=True)
        self._thread.start()
        ready.wait(START)
        if self._failed is not None:
            self._thread.join()
            self._thread = None
            raise self._failed
        return self

    def stop(self) -> None:
        """Closes every connection and the ports; what happened stays to be looked at."""
        if self._thread is None or self._loop is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = self._loop = None

    def __enter__(self) -> Proxy:
        return self if self._thread is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """host:port of the first port, for bootstrap.servers."""
        routes = self.server.routes
        return str(routes.address(routes.all[0]))

    @property
    def addresses(self) -> dict[str, str]:
        """host:port of every broker, as it is known so far, and of the port that stands for it."""
        routes = self.server.routes
        return self._call(lambda: {str(route): str(routes.address(route)) for route in routes.all})

    def events(self, kind: str | None = None) -> list[Notice]:
        """What has happened: ports that were bound, connections, what was refused and why."""
        found = self._call(lambda: list(self.notices))
        return [event for event in found if kind is None or event.kind == kind]

    @property
    def server(self) -> Server:
        """Raises KwireError before start()."""
        if self._server is None:
            raise KwireError("this proxy has not been started")
        return self._server

    def _noticed(self, notice: Notice) -> None:
        if len(self.notices) < MOST_NOTICES:
            self.notices.append(notice)
        for watch in self.watching:
            watch(notice)

    def _call(self, act: Callable[[], T]) -> T:
        """In the proxy's thread, while it runs."""
        loop = self._loop
        if loop is None or threading.current_thread() is self._thread:
            return act()

        async def run() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), loop).result()


MOST_NOTICES = 10_000
