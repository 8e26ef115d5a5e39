"""What the broker's parts pass to each other: settings, requests, answers that come later, what happened."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kwire.broker.nodes import Listener, NodeSetup
from kwire.coordinator.types import GroupSettings, TransactionSettings

if TYPE_CHECKING:
    from kwire.broker.security import ServerLogin

Body = dict[str, Any]
MiB = 1 << 20
MS = 1_000_000  # ns


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """What hostile or careless clients can take at most; bytes, unless named otherwise.

    connections, per_ip: as max.connections and max.connections.per.ip. frame: one request, as socket.request.max.bytes;
    other: one that is no Produce; login: one before the login, as sasl.server.max.receive.size. elements: in all arrays
    of one request; at_once: of those that are answered in one go, more take turns with others; batches: of one Produce.
    answer: one that is put together from many elements. unfinished: of requests that have not come whole, and unsent:
    of answers that are not read, all connections together. remembered: what groups, offsets and configurations take.
    log: all partitions together, the oldest batches go first. capture: of its file. idle_ms: without a request, as
    connections.max.idle.ms.
    """

    connections: int = 1_000
    per_ip: int = 1_000
    frame: int = 100 * MiB
    other: int = 4 * MiB
    elements: int = 50_000
    at_once: int = 500
    batches: int = 20_000
    answer: int = 32 * MiB
    unfinished: int = 128 * MiB
    unsent: int = 64 * MiB
    remembered: int = 64 * MiB
    log: int = 256 * MiB
    capture: int = 1_024 * MiB
    login: int = 512 << 10
    idle_ms: int = 600_000
    topics: int = 10_000
    partitions: int = 50_000
    groups: int = 10_000
    producers: int = 1_000  # remembered by a partition


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How a broker is made. port: of the first node, the others follow; 0 lets the system choose. setups: the nodes, if
    they are not simply 1 to nodes. listeners: those of every node; none: one at host and port, with TLS if tls says so
    and with a login if there are users. advertise: what clients are told instead of host (and of port, if it is not 0).

    partitions: of a topic that is created when it is first named. era: the release whose API versions are announced,
    as (4, 3); None announces the newest release's and all older versions too. users: (name, password), with whom
    logging in becomes necessary. super_users: names of those who may do everything, whereas others need ACLs; None: no
    authorizer, everybody may. config: a broker's configuration that static_configs.configured() has put in force. data:
    a folder in which all is kept, see storage.py.
    """

    host: str = "127.0.0.1"
    port: int = 0
    nodes: int = 1
    setups: tuple[NodeSetup, ...] = ()
    listeners: tuple[Listener, ...] = ()
    advertise: tuple[str, int] | None = None
    topics: tuple[tuple[str, int], ...] = ()
    partitions: int = 1
    create_topics: bool = True
    era: tuple[int, int] | None = None
    users: tuple[tuple[str, str], ...] = ()
    super_users: tuple[str, ...] | None = None
    tls: bool = False
    config: tuple[tuple[str, str], ...] = ()
    data: str | None = None
    groups: GroupSettings = field(
        default_factory=lambda: GroupSettings(group_initial_rebalance_delay_ms=0, group_max_size=10_000)
    )
    transactions: TransactionSettings = field(default_factory=TransactionSettings)
    limits: BrokerLimits = field(default_factory=BrokerLimits)

    @property
    def all_setups(self) -> tuple[NodeSetup, ...]:
        return self.setups or tuple(NodeSetup(number) for number in range(1, self.nodes + 1))

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        if self.listeners:
            return self.listeners
        protocol = f"{'SASL_' if self.users else ''}{'SSL' if self.tls else 'PLAINTEXT'}"
        return (Listener(protocol, protocol, self.host, self.port, self.advertise),)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time as the broker's parts see it: ns since the Unix epoch, never going back."""

    def now(self) -> int: ...

    def after(self, ns: int, act: Callable[[], None]) -> Timer: ...


def at_once(call: Callable[[], Work[None] | None]) -> None:
    """For a peer without turns."""
    work = call()
    if work is not None:
        finish(work)


class Peer:
    """The client's end of a connection. closing: called once when the connection is gone before the request at hand is
    answered; ending: the same, whenever it goes. soon: calls a function in the connection's next turn, for work that
    somebody else's request has caused. muted: until when nothing that it asks is looked at, ns."""

    __slots__ = (
        "closed", "closing", "ending", "host", "listener", "login", "muted", "name", "node", "number", "port",
        "software", "soon",
    )  # fmt: skip

    def __init__(self, number: int, host: str, port: int, node: int, login: ServerLogin | None = None) -> None:
        self.number, self.node = number, node
        self.came_from(host, port)
        self.login = login
        self.listener = ""  # its name
        self.software = ""
        self.muted = 0
        self.closed = False
        self.closing: list[Callable[[], None]] = []
        self.ending: list[Callable[[], None]] = []
        self.soon: Callable[[Callable[[], Work[None] | None]], None] = at_once

    def came_from(self, host: str, port: int) -> None:
        """Where its end is."""
        self.host, self.port = host, port
        self.name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close(self) -> None:
        """The connection is gone: whatever waits for it is told."""
        self.closed = True
        calls, self.closing, self.ending = [*self.closing, *self.ending], [], []
        for call in calls:
            call()

    @property
    def principal(self) -> str | None:
        return self.login.user if self.login else None

    def __str__(self) -> str:
        return self.name


class Request(NamedTuple):
    """A request as handlers see it. api: "Fetch"; body: the official fields; node: who was asked; time: ns."""

    api: str
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Body
    peer: Peer
    node: int
    time: int


class Seen(NamedTuple):
    """That a request came. client: host:port; software: what ApiVersions v3 and up says."""

    time: int
    api: str
    version: int
    client_id: str | None
    client: str
    software: str
    node: int


class Later:
    """An answer that comes later: give() delivers it once, then() says where to."""

    __slots__ = ("_body", "_given", "_then")

    def __init__(self) -> None:
        self._then: Callable[[Body | None], None] | None = None
        self._body: Body | None = None
        self._given = False

    @property
    def given(self) -> bool:
        return self._given

    def give(self, body: Body | None) -> None:
        """Only the first counts."""
        if self._given:
            return
        self._given, self._body = True, body
        if self._then is not None:
            self._then(body)

    def then(self, call: Callable[[Body | None], None]) -> None:
        self._then = call
        if self._given:
            call(self._body)


T = TypeVar("T")
Work = Generator[None, None, T]  # what is done a little at every step, and comes to a T
Outcome = Body | Later | Work[Any] | None  # Work: to another outcome; None: no answer at all, as to acks=0


def finish(work: Work[T]) -> T:
    """All of it at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found


class Hangup(Exception):
    """The connection must be closed; the text says why. Never leaves the service."""


class Happening(NamedTuple):
    """Something that a person watching wants to see. time: ns. kind: listening, connected, closed, login, refused,
    topic, fault, or the kind of a group's event. who: the connection, or the group; text: in words, from the wire and
    not yet made safe to show."""

    time: int
    kind: str
    who: str
    text: str
    facts: dict[str, Any]
