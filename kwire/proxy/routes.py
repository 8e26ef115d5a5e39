"""Which local port stands for which broker. A port is bound when a broker is first named, and stays the broker's."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

from kwire.broker.nodes import reachable
from kwire.client.address import Address
from kwire.errors import KwireError
from kwire.proxy.types import PeerRefused, ProxySettings

TRIES = 200  # ports one after another that may be taken by others
LAST_PORT = 65_535
BACKLOG = 512


@dataclass(eq=False, slots=True)
class ProxyRoute:
    """A local port and the brokers behind it, tried in their order: several only of the first port. number counts from
    1, 0 is the first port. node: the broker's id, below zero while no answer has named it."""

    number: int
    upstream: tuple[Address, ...]
    local: Address
    node: int

    def __str__(self) -> str:
        return ", ".join(map(str, self.upstream))


class Routes:
    """opened(route, socket) is called for each new one; its socket is bound already, so that its port is known."""

    def __init__(self, settings: ProxySettings, opened: Callable[[ProxyRoute, socket.socket], None]) -> None:
        self.settings = settings
        self.by_broker: dict[tuple[str, int], ProxyRoute] = {}
        self.all: list[ProxyRoute] = []
        self._opened = opened
        self._next = 0

    def begin(self) -> ProxyRoute:
        """The first port. Raises OSError with the reason in a line."""
        listen, upstream = self.settings.listen, self.settings.upstream
        try:
            sock = _bound(listen.host, listen.port)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "is taken by another program" if taken else os.strerror(error.errno or 0)
            raise OSError(error.errno, f"{listen} {why}") from error
        self._next = listen.port and listen.port + 1
        route = self._add(upstream, sock)
        if len(upstream) == 1:
            self.by_broker[upstream[0]] = route
        return route

    def local(self, host: str, port: int, node: int) -> tuple[str, int]:
        """What clients are told instead of a broker's address. Raises PeerRefused when there are too many."""
        known = self.by_broker.get((host, port))
        if known is None:
            limit = self.settings.limits.brokers
            if len(self.by_broker) >= limit:
                raise PeerRefused(f"the cluster names more than {limit} brokers; no port for {host}:{port}")
            known = self.by_broker[host, port] = self._add((Address(host, port),), self._free())
        known.node = node
        return self._advertised(known)

    def _advertised(self, route: ProxyRoute) -> tuple[str, int]:
        return self.settings.advertise or route.local.host, route.local.port

    def address(self, route: ProxyRoute) -> Address:
        """Where clients reach it."""
        return Address(*self._advertised(route))

    def _add(self, upstream: tuple[Address, ...], sock: socket.socket) -> ProxyRoute:
        port = sock.getsockname()[1]
        route = ProxyRoute(
            len(self.all), upstream, Address(reachable(self.settings.listen.host), port), -1 - len(self.all)
        )
        self.all.append(route)
        self._opened(route, sock)
        return route

    def _free(self) -> socket.socket:
        """The next port that nobody has; any when the system chooses. Raises PeerRefused."""
        host = self.settings.listen.host
        try:
            if not self._next:
                return _bound(host, 0)
            for _ in range(TRIES):
                port, self._next = self._next, self._next + 1
                if port > LAST_PORT:
                    break
                try:
                    return _bound(host, port)
                except OSError as error:
                    if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                        raise
        except OSError as error:
            raise PeerRefused(f"no port for another broker: {error.strerror}") from error
        raise PeerRefused("no port for another broker: all behind the first one are taken")


def _bound(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise KwireError(f"no address {host}: {error}") from error
    family, address = found[0][0], found[0][4]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
