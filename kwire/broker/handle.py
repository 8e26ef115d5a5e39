"""A broker for programs without a loop of their own: it runs in a thread, and every call here is a plain one."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kwire.broker.cluster_handles import NodeHandle, PartitionHandle
from kwire.broker.context import BrokerSettings, Happening, Seen
from kwire.broker.control import ControlSocket, fault_verbs
from kwire.broker.faults import Fault, Faults
from kwire.broker.hooks import Control, Hook
from kwire.broker.nodes import Listener, NodeSetup, parse_advertised, parse_topic, setups_of
from kwire.broker.recorder import Recorder
from kwire.broker.server import BrokerServer
from kwire.broker.static_configs import configured, plain
from kwire.broker.thread import LoopThread
from kwire.errors import HookFailed, KwireError
from kwire.outputs import Output
from kwire.records import Record
from kwire.schema.registry import builtin

T = TypeVar("T")


def several(given: str | Iterable[T | str]) -> tuple[T | str, ...]:
    """A text alone is one, and not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def _named(topics: Mapping[str, int] | str | Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Raises KwireError."""
    if isinstance(topics, Mapping):
        return tuple(topics.items())
    return tuple(parse_topic(each) for each in several(topics))


class Broker:
    """A broker on loopback, in memory, for a with or async with block: Kafka enough for real clients, failing where it
    is told to.

    nodes: how many, or their ids, or NodeSetup(id, port, rack) each. topics: name to number of partitions, or
    NAME:PARTITIONS each; others are created when they are first named. faults: rules as kwire broker --fault takes
    them. users: name to password, with SASL PLAIN and SCRAM. super_users: an authorizer, for whom all others need ACLs.
    tls: with a certificate of its own, see certificate. listeners: several on every node, as Listener or as kwire
    broker --listener takes them. advertise: the host, or host:port, that clients are told. config: a broker's
    configuration, by Kafka's names. capture: a file, pcapng; one that exists is overwritten. control: the path of a
    socket, for kwire fault. data: a folder in Kafka's own format, from which a later broker goes on. era: a release of
    Kafka, as 3.9, whose APIs and rules it has. settings: what else there is, see kwire.broker.context.BrokerSettings.
    Raises KwireError for what does not parse or does not exist, OSError for a port that is taken.
    """

    def __init__(
        self,
        *,
        nodes: int | Iterable[int | NodeSetup] = 1,
        topics: Mapping[str, int] | str | Iterable[str] = (),
        faults: str | Iterable[str] = (),
        users: Mapping[str, str] | None = None,
        super_users: str | Iterable[str] | None = None,
        tls: bool = False,
        listeners: str | Iterable[str | Listener] = (),
        advertise: str | None = None,
        config: Mapping[str, object] | None = None,
        capture: str | Path | Output | None = None,
        control: str | Path | None = None,
        data: str | Path | None = None,
        era: str | tuple[int, int] | None = None,
        port: int = 0,
        settings: BrokerSettings | None = None,
    ) -> None:
        setups = setups_of(nodes)
        self.settings = replace(
            settings or BrokerSettings(),
            nodes=len(setups),
            setups=setups,
            port=port,
            listeners=tuple(Listener.parse(each) if isinstance(each, str) else each for each in several(listeners)),
            advertise=parse_advertised(advertise) if advertise else None,
            topics=_named(topics),
            users=tuple((users or {}).items()),
            super_users=None if super_users is None else several(super_users),
            tls=tls,
            data=None if data is None else str(data),
            era=None if era is None else builtin().release(era if isinstance(era, str) else ".".join(map(str, era))),
        )
        self.settings = configured(self.settings, config or {})
        self.faults = Faults()
        for rule in several(faults):
            self.faults.add(rule)
        self.certificate: str | None = None
        self._output = Output(capture, private=True) if isinstance(capture, str | Path) else capture
        self._control = control
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.thread = LoopThread("kwire broker")
        self._server: BrokerServer | None = None

    # ------------------------------------------------------------ life

    def start(self) -> Broker:
        """Listens; returns when clients can connect."""
        context = None
        if any(each.tls for each in self.settings.all_listeners) and not self.thread.running:
            from kwire.broker.tls import context as make

            context, self.certificate = make(self.settings.host)

        async def begin() -> BrokerServer:
            recorder = Recorder(self._output, limit=self.settings.limits.capture) if self._output else None
            control = ControlSocket(self._control, fault_verbs(self.faults)) if self._control else None
            self._server = BrokerServer(self.settings, self.faults, recorder, context, control)
            await self._server.start()
            return self._server

        self.thread.start(begin)
        return self

    def stop(self) -> None:
        """Closes every connection and the ports; what was logged and what happened stays to be looked at."""
        self.thread.stop()
        if self._folder is not None:
            self._folder.cleanup()

    def __repr__(self) -> str:
        if self._server is None:
            return "Broker, not started"
        return f"Broker{'' if self.thread.running else ', stopped,'} at {','.join(self.addresses)}"

    def __enter__(self) -> Broker:
        return self if self.thread.running else self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self.check()

    async def __aenter__(self) -> Broker:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await asyncio.to_thread(self.stop)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises HookFailed when a hook did not do what hooks do; each failure once."""
        if self.faults.failures:
            first, more = self.faults.failures[0], len(self.faults.failures) - 1
            self.faults.failures.clear()
            raise HookFailed(f"{first}{f', and {more} more times' if more else ''}") from first

    # ------------------------------------------------------------ where

    @property
    def address(self) -> str:
        """host:port of the first node, for bootstrap.servers."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[str]:
        """host:port of every node."""
        return [str(node.at()) for node in self.server.state.cluster.nodes.values()]

    @property
    def nodes(self) -> list[NodeHandle]:
        return [NodeHandle(number, self.server, self.thread) for number in self.server.state.cluster.nodes]

    def node(self, number: int) -> NodeHandle:
        """Raises KwireError for one that there is not."""
        self.server.state.topology.node(number)
        return NodeHandle(number, self.server, self.thread)

    def add_node(self, number: int, *, port: int = 0, rack: str | None = None) -> NodeHandle:
        """A node more; replicas come to it by reassignment. Raises KwireError, OSError."""
        self.thread.run(lambda: self.server.add_node(NodeSetup(number, port, rack)))
        return self.node(number)

    def remove_node(self, number: int) -> None:
        """A node less, for good. Raises KwireError."""
        self.thread.call(lambda: self.server.remove_node(number))

    def partition(self, topic: str, partition: int = 0) -> PartitionHandle:
        """Raises KwireError for one that there is not."""
        found = self.server.state.cluster.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            raise KwireError(f"no partition {topic}-{partition}")
        return PartitionHandle(f"{topic}-{partition}", found.partitions[partition], self.server, self.thread)

    def coordinator(self, name: str) -> int:
        """The node that coordinates a group or a transactional id; -1: none is up."""
        return self.server.state.cluster.coordinator(name)

    def move_coordinator(self, name: str, node: int) -> None:
        """This node coordinates the group or the transactional id from now on. Raises KwireError."""
        self.server.state.topology.node(node)
        self.thread.call(lambda: self.server.state.groups.move(name, node))

    @property
    def certificate_file(self) -> str:
        """The certificate as a file, for ssl.ca.location and the like; it is gone after stop(). Raises KwireError."""
        if self.certificate is None:
            raise KwireError("this broker has no TLS: Broker(tls=True) or a listener with SSL has")
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
            Path(self._folder.name, "kwire.pem").write_text(self.certificate)
        return str(Path(self._folder.name, "kwire.pem"))

    # ------------------------------------------------------------ what

    def fault(self, rule: str) -> Fault:
        """Adds a rule, as kwire broker --fault takes them; remove() of what comes back takes it away, and so does the
        end of a with block. Raises KwireError."""
        return Fault(self.faults.add(rule), self.faults)

    def control(self, api: str, hook: Hook) -> Control:
        """hook sees each request of an API ("any": of all) in the broker's thread; its request has api, version,
        client_id and body. It gives None to go on, a body as the answer, or a rule's actions as text: "error=NAME",
        "delay=1s", "cut". remove() of what comes back takes it away. Raises UnknownName."""
        return self.faults.control(api, hook)

    def events(self, kind: str | None = None) -> list[Happening]:
        """What has happened: connections, logins, topics, faults, and everything with groups."""
        found = self.thread.call(lambda: list(self.server.state.happenings))
        return [event for event in found if kind is None or event.kind == kind]

    def requests(self, api: str | None = None) -> list[Seen]:
        """The requests that came, the newest 5,000. Raises UnknownName."""
        api = None if api is None else builtin().find(api).definition.name
        found = self.thread.call(lambda: list(self.server.state.requests))
        return [seen for seen in found if api is None or seen.api == api]

    def log(self, topic: str, partition: int = 0, *, committed: bool = False) -> list[Record]:
        """What stands in a partition, decoded, without markers; committed: only what read_committed shows. Raises
        KwireError for one that is not there."""
        return self.partition(topic, partition).records(committed=committed)

    def wait_for(self, api: str, count: int = 1, timeout: float = 10.0) -> list[Seen]:
        """Until so many requests of an API have come. Raises KwireError when they do not in time (seconds), and
        UnknownName."""
        ends = time.monotonic() + timeout
        while len(found := self.requests(api)) < count:
            if time.monotonic() > ends:
                raise KwireError(f"{len(found)} of {count} {api} requests came within {timeout:g} s")
            time.sleep(0.005)
        return found

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replicas: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """config: the topic's, by Kafka's names. Raises KwireError."""
        from kwire.broker.refused import Refused

        values = {key: plain(value) for key, value in (config or {}).items()}
        try:
            self.thread.call(lambda: self.server.state.create(name, partitions, replicas, values))
        except Refused as refused:
            raise KwireError(refused.why) from None

    @property
    def server(self) -> BrokerServer:
        """Raises KwireError before start()."""
        if self._server is None:
            raise KwireError("this broker has not been started")
        return self._server
