"""A proxy for programs without a loop of their own: it runs in a thread, and every call here is a plain one."""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from kwire.broker.context import Seen
from kwire.broker.control import ControlSocket, fault_verbs
from kwire.broker.fault_rules import ONCE
from kwire.broker.faults import Fault, Faults
from kwire.broker.hooks import Control, Hook
from kwire.broker.recorder import Recorder
from kwire.broker.thread import LoopThread
from kwire.client.address import Address
from kwire.errors import KwireError
from kwire.outputs import Output
from kwire.proxy.server import ProxyServer
from kwire.proxy.tap import Feed, Tap
from kwire.proxy.types import Notice, ProxySettings
from kwire.schema.registry import builtin

MOST_NOTICES = 10_000
MOST_SEEN = 5_000  # requests


class Proxy:
    """A proxy on loopback for a with block, in front of a cluster that is there.

    upstream: brokers as bootstrap.servers has them. faults: rules as kwire broker --fault takes them, except forget,
    move and expire. capture: a file, pcapng; one that exists is overwritten; secrets are blanked in it unless
    show_secrets. port: of the first listener, 0 for any. settings: what else, see kwire.proxy.types.ProxySettings.
    feed: where packets go that somebody shows. control: where kwire fault finds it. Raises KwireError for what is no
    address and for a rule that does not parse, OSError for a port that is taken.
    """

    def __init__(
        self,
        upstream: str = "",
        *,
        port: int = 0,
        faults: Iterable[str] = (),
        capture: str | Path | Output | None = None,
        show_secrets: bool = False,
        settings: ProxySettings | None = None,
        feed: Feed | None = None,
        tls: ssl.SSLContext | None = None,
        upstream_tls: ssl.SSLContext | None = None,
        control: str | Path | None = None,
    ) -> None:
        if settings is None:
            settings = ProxySettings(tuple(Address.parse_all(upstream)), Address("127.0.0.1", port))
        elif upstream:
            settings = replace(settings, upstream=tuple(Address.parse_all(upstream)))
        self.settings = settings
        self.faults = Faults(cannot=ONCE)
        for rule in faults:
            self.faults.add(rule)
        self.notices: deque[Notice] = deque(maxlen=MOST_NOTICES)
        self.watching: list[Callable[[Notice], None]] = []
        self.seen: deque[Seen] | None = deque(maxlen=MOST_SEEN)  # None: requests are not remembered
        self._output = Output(capture, private=True) if isinstance(capture, str | Path) else capture
        self._show_secrets, self._feed, self._control = show_secrets, feed, control
        self._tls, self._upstream_tls = tls, upstream_tls
        self.thread = LoopThread("kwire proxy")
        self._server: ProxyServer | None = None

    def start(self) -> Proxy:
        """Listens; returns when clients can connect."""

        async def begin() -> ProxyServer:
            limits = self.settings.limits
            recorder = Recorder(self._output, limit=limits.capture) if self._output else None
            tap = Tap(recorder, self._feed, self._show_secrets, limits.frame) if recorder or self._feed else None
            control = ControlSocket(self._control, fault_verbs(self.faults)) if self._control else None
            saw = None if self.seen is None else self.seen.append
            server = ProxyServer(self.settings, tap, self._tls, self._upstream_tls, self.faults, control, saw)
            server.watching.append(self._noticed)
            await server.start()
            self._server = server
            return server

        self.thread.start(begin)
        return self

    def stop(self) -> None:
        """Closes every connection and the ports; what happened stays to be looked at."""
        self.thread.stop()

    def __enter__(self) -> Proxy:
        return self if self.thread.running else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """host:port of the first port, for bootstrap.servers."""
        routes = self.server.routes
        return str(routes.address(routes.all[0]))

    @property
    def addresses(self) -> list[str]:
        """host:port of the port of every broker that is known so far."""
        return list(self.brokers.values())

    @property
    def brokers(self) -> dict[str, str]:
        """host:port of every broker that is known so far, and of the port that stands for it."""
        routes = self.server.routes
        return self.thread.call(lambda: {str(route): str(routes.address(route)) for route in routes.all})

    def fault(self, rule: str) -> Fault:
        """Adds a rule, as Broker.fault(). Raises KwireError."""
        return Fault(self.faults.add(rule), self.faults)

    def control(self, api: str, hook: Hook) -> Control:
        """As Broker.control(): hook sees each request of an API ("any": of all) in the proxy's thread. It gives None to
        let it pass, a body as the answer, or a rule's actions as text."""
        return self.faults.control(api, hook)

    def events(self, kind: str | None = None) -> list[Notice]:
        """What has happened: ports that were bound, connections, faults, what was refused and why."""
        found = self.thread.call(lambda: list(self.notices))
        return [event for event in found if kind is None or event.kind == kind]

    def requests(self, api: str | None = None) -> list[Seen]:
        """The requests that came, the newest 5,000. Raises UnknownName."""
        api = None if api is None else builtin().find(api).definition.name
        found = self.thread.call(lambda: list(self.seen or ()))
        return [seen for seen in found if api is None or seen.api == api]

    @property
    def server(self) -> ProxyServer:
        """Raises KwireError before start()."""
        if self._server is None:
            raise KwireError("this proxy has not been started")
        return self._server

    def _noticed(self, notice: Notice) -> None:
        self.notices.append(notice)
        for watch in self.watching:
            watch(notice)
