"""Listens: a port for each node, connections with their limits, and the line that each of them is worth.

Only this file and connection.py know sockets. Loopback unless another host is given.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import time
import traceback
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from kwire.broker.budgets import Pool, TurnQueue
from kwire.broker.connection import ServedConnection
from kwire.broker.context import BrokerSettings, MiB, Peer, Timer
from kwire.broker.control import ControlSocket
from kwire.broker.faults import Faults
from kwire.broker.nodes import Endpoint, Listener, NodeSetup
from kwire.broker.recorder import Recorder
from kwire.broker.scheduling import Turns
from kwire.broker.security import ServerLogin
from kwire.broker.service import Service
from kwire.broker.state import BrokerState

SILENT = 2.0  # seconds without a request after which a connection may have to make room for a new one
LINGER = 2.0  # seconds for what is still being sent when all ends


class LoopClock:
    """Wall time that never goes back, and the loop's timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._base = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        return self._base + time.monotonic_ns()

    def after(self, ns: int, act: Callable[[], Any]) -> Timer:
        return self._loop.call_later(ns / 1e9, act)


class BrokerServer:
    """A broker with its listeners. start() and stop() are its life; state is what it knows."""

    def __init__(
        self, settings: BrokerSettings, faults: Faults | None = None, recorder: Recorder | None = None,
        tls: ssl.SSLContext | None = None, control: ControlSocket | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.limits = settings, settings.limits
        self.loop = asyncio.get_running_loop()
        self.recorder, self.tls, self.control = recorder, tls, control
        if recorder is not None:
            recorder.full = self._full
        self.loop.set_exception_handler(self._failed)
        clock = LoopClock(self.loop)
        self.state = BrokerState(settings, clock, faults or Faults())
        self.state.stop_node, self.state.start_node = self.stop_node, self._start_node_soon
        self.service = Service(self.state)
        self.connections: set[ServedConnection] = set()
        self.turns = Turns(time.monotonic_ns, self.loop.call_soon)
        self.lane = TurnQueue[ServedConnection](lambda connection: self.turns.want(connection.turn))
        holders = self.connections.copy
        self.unfinished = Pool(
            self.limits.unfinished, holders, lambda each: (len(each.received), each.began), "of requests are unfinished"
        )
        self.unsent = Pool(
            self.limits.unsent, holders, lambda each: (each.unsent, each.stuck), "of answers are not read"
        )
        self._numbers = count(1)
        self._listening: dict[int, list[asyncio.Server]] = {}  # by node; nothing there for one that is down
        self._bound: dict[tuple[int, str], int] = {}  # ports, by node and listener
        self._places: dict[int, int] = {}  # a node's number among all that there ever were
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Binds every node's ports. Raises OSError, with the reason in a line; KwireError for a port beyond 65535."""
        try:
            for setup in self.settings.all_setups:
                await self._open(setup)
            if self.control is not None:
                await self.control.start()
            if self.recorder is not None:
                self.recorder.open()
        except BaseException:
            await self.stop()
            raise
        for node in self.state.cluster.nodes.values():
            for endpoint in node.endpoints.values():
                self.state.tell("listening", f"node {node.id}", str(endpoint))
        self._sweep = self.loop.call_later(self.pause, self._idle)

    async def _open(self, setup: NodeSetup) -> None:
        """Binds a node's ports, the same as before if it had some."""
        node = self.state.cluster.nodes[setup.id]
        made = self._listening[setup.id] = []
        number = self._places.setdefault(setup.id, len(self._places))
        try:
            for place, listener in enumerate(self.settings.all_listeners):
                port = self._bound.get((setup.id, listener.name)) or listener.port_of(setup, number, place)
                server = await self._listen(setup.id, listener, port)
                made.append(server)
                bound = self._bound[setup.id, listener.name] = server.sockets[0].getsockname()[1]
                node.endpoints[listener.name] = Endpoint(setup.id, *listener.told(number, bound), node.rack)
        except BaseException:
            self._shut(setup.id)
            raise

    async def _listen(self, node: int, listener: Listener, port: int) -> asyncio.Server:
        host, tls = listener.host, self.tls if listener.tls else None
        try:
            return await self.loop.create_server(
                lambda: ServedConnection(self, self.service, node, listener, self.recorder),
                host,
                port,
                ssl=tls,
                backlog=512,
            )
        except OSError as error:
            raise OSError(error.errno, unheard(Endpoint(node, host, port), error)) from error

    def _shut(self, node: int) -> list[asyncio.Server]:
        listening = self._listening.pop(node, [])
        for server in listening:
            server.close()
        return listening

    # ------------------------------------------------------------ nodes that come and go

    async def add_node(self, setup: NodeSetup) -> None:
        """A node more. Raises KwireError, OSError."""
        self.state.topology.add(setup.id, setup.rack)
        try:
            await self._open(setup)
        except BaseException:
            del self.state.cluster.nodes[setup.id]
            raise
        self.state.tell("node", f"node {setup.id}", f"is there, at {self.state.cluster.nodes[setup.id].at()}")

    def remove_node(self, number: int) -> None:
        """A node less, for good. Raises KwireError."""
        self.state.topology.remove(number)
        self._end_node(number, "is removed", abort=False)

    def stop_node(self, number: int, abort: bool = False, notice: float = 0.0) -> None:
        """A node is down: nothing listens there, its connections end, or with abort are reset. notice: seconds until
        the others take note and lead in its place. Raises KwireError."""
        self.state.topology.node(number)
        self._end_node(number, "is killed" if abort else "stops", abort)
        if notice:
            self.loop.call_later(notice, self._noticed, number)
        else:
            self.state.topology.down(number)

    def _noticed(self, number: int) -> None:
        if number in self.state.cluster.nodes and number not in self._listening:
            self.state.topology.down(number)

    def _end_node(self, number: int, why: str, abort: bool) -> None:
        if number not in self._listening:
            return
        self._shut(number)
        for connection in list(self.connections):
            if connection.node == number:
                connection.close(f"node {number} {why}", abort)
        self.state.tell("node", f"node {number}", why)

    async def start_node(self, number: int) -> None:
        """A node that was down is back, at the same ports. Raises KwireError, OSError."""
        node = self.state.topology.node(number)
        if number not in self._listening:
            await self._open(NodeSetup(number, rack=node.rack))
            self.state.tell("node", f"node {number}", f"is back at {node.at()}")
        self.state.topology.up(number)

    def _start_node_soon(self, number: int) -> None:
        self._starting = self.loop.create_task(self.start_node(number))

    async def stop(self) -> None:
        """Closes everything; safe to call twice."""
        if self._sweep is not None:
            self._sweep.cancel()
        listening = [server for node in list(self._listening) for server in self._shut(node)]
        if self.control is not None:
            await self.control.stop()
        self.state.stop()
        for connection in list(self.connections):
            connection.close("the broker stops")
        end = self.loop.time() + LINGER
        while self.connections and self.loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.transport.abort()
        for server in listening:
            await server.wait_closed()
        if self.recorder is not None:
            self.recorder.close()

    # ------------------------------------------------------------ told by connections

    def began(self, connection: ServedConnection) -> Peer:
        """A new connection. Where there are too many, the one that is least missed ends, or else the new one."""
        name = connection.transport.get_extra_info("peername") or ("", 0)
        login = ServerLogin(self.state.users) if connection.listener.sasl else None
        peer = connection.peer = Peer(next(self._numbers), name[0], name[1], connection.node, login)
        peer.listener = connection.listener.name
        same = [each for each in self.connections if each.peer.host == peer.host]
        configs = self.state.cluster.configs
        if len(self.connections) >= int(configs.broker("max.connections")):
            self._make_room(connection, self.connections, "")
        elif len(same) >= int(configs.broker("max.connections.per.ip")):
            self._make_room(connection, same, f" from {peer.host}")
        self.connections.add(connection)
        self.state.tell("connected", str(peer), f"to node {connection.node}")
        return peer

    def _make_room(self, new: ServedConnection, there: Iterable[ServedConnection], whence: str) -> None:
        """Ends the connection on which nothing was ever asked, or nothing for the longest time; Kafka does so where
        listeners compete (SocketServer's closing of the least recently used)."""
        silent = new.active - SILENT
        idle = [each for each in there if not each.busy and (not each.spoke or each.active <= silent)]
        why = f"there are {len(list(there))} connections{whence} already"
        if idle:
            least = min(idle, key=lambda each: (each.spoke, each.active))
            least.close(f"{why}, and this one was idle", abort=True)
            self.connections.discard(least)
        else:
            new.close(why)

    def ended(self, connection: ServedConnection) -> None:
        self.connections.discard(connection)
        self.state.tell("closed", str(connection.peer), connection.why)

    def bug(self, error: Exception) -> None:
        """Our own mistake: kept for whoever looks, and never the client's business."""
        self.state.tell("bug", "kwire", "".join(traceback.format_exception_only(error)).strip(), error=error)

    def _full(self) -> None:
        assert self.recorder is not None
        why = f"is full at {self.recorder.limit // MiB:,} MB; what is said from now on is not in it"
        self.state.tell("capture", str(self.recorder.path), why)

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something went wrong outside of a request, as in a timer."""
        self.bug(context.get("exception") or RuntimeError(context.get("message", "")))

    @property
    def pause(self) -> float:
        configs = self.state.cluster.configs
        often = min(int(configs.broker(name)) for name in ("log.retention.check.interval.ms", "log.cleaner.backoff.ms"))
        return max(0.05, min(self.limits.idle_ms / 4000, often / 1000, 30.0))

    def _idle(self) -> None:
        """Closes what has been silent for too long; a client that waits for its answer is not silent."""
        oldest = self.loop.time() - self.limits.idle_ms / 1000
        for connection in list(self.connections):
            if connection.active < oldest and not connection.busy:
                connection.close(f"idle for {self.limits.idle_ms:,} ms")
        self.state.retain()
        self._sweep = self.loop.call_later(self.pause, self._idle)


def unheard(node: Endpoint, error: OSError) -> str:
    """Why nothing can listen there, in a line."""
    if error.errno == errno.EADDRINUSE:
        return f"{node} is taken by another program"
    if error.errno is None or isinstance(error, socket.gaierror):
        return f"cannot listen on {node}: {error.strerror or error}"
    return f"cannot listen on {node}: {os.strerror(error.errno)}"  # asyncio says it at length
