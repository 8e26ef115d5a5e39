"""Nodes: which there are, where each listens, and where clients are told that it does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import uuid4

from kwire.errors import KwireError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ANY_ADDRESS = ("", "0.0.0.0", "::")
LAST_PORT = 65_535


class Endpoint(NamedTuple):
    """A node as clients are told of it."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class NodeSetup(NamedTuple):
    """How a node is made. port: of its first listener, its others follow; 0: as Listener says."""

    id: int
    port: int = 0
    rack: str | None = None


class Listener(NamedTuple):
    """A listener that every node has. port: of the first node, the others follow; 0: any free ones. advertised: what
    clients are told instead of host and port; of its port as of port."""

    name: str
    protocol: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    advertised: tuple[str, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Listener:
        """[NAME=]PROTOCOL://HOST:PORT[,advertise=HOST[:PORT]]; the name is the protocol's unless given. Raises
        KwireError."""
        listed, _, rest = text.partition(",")
        named, _, where = listed.partition("://")
        name, equals, protocol = named.partition("=")
        protocol = protocol if equals else name
        if protocol not in PROTOCOLS or not name:
            raise KwireError(f"listener {text}: write [NAME=]PROTOCOL://HOST:PORT, with {', '.join(PROTOCOLS)}")
        host, port = _host_port(where, f"listener {text}")
        word, _, told = rest.partition("=")
        if rest and (word != "advertise" or not told):
            raise KwireError(f"listener {text}: after the comma goes advertise=HOST:PORT")
        return cls(name, protocol, host, port, parse_advertised(told) if told else None)

    @property
    def tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def port_of(self, setup: NodeSetup, number: int, place: int) -> int:
        """Where node number (from 0) listens, 0 for any port; place: which of the listeners this is, from 0. Raises
        KwireError for a port that cannot be."""
        port = setup.port + place if setup.port else self.port + number if self.port else 0
        if port > LAST_PORT:
            raise KwireError(f"no port {port} for node {setup.id}")
        return port

    def told(self, number: int, bound: int) -> tuple[str, int]:
        """Host and port that clients are told of node number, which listens on bound."""
        if self.advertised is None:
            return reachable(self.host), bound
        host, port = self.advertised
        return host, port + number if port else bound


class Node:
    """A broker of the cluster. endpoints: by the listener's name, when it is known where that is. directory: the id of
    its log directory; votes: whether it is one of the controllers that elect."""

    __slots__ = ("alive", "directory", "endpoints", "id", "rack", "votes")

    def __init__(self, number: int, rack: str | None = None) -> None:
        self.id, self.rack, self.alive = number, rack, True
        self.directory, self.votes = uuid4(), True
        self.endpoints: dict[str, Endpoint] = {}

    def at(self, listener: str = "") -> Endpoint:
        """As clients of a listener are told; "": of the first."""
        found = self.endpoints.get(listener) or next(iter(self.endpoints.values()), None)
        return found or Endpoint(self.id, "127.0.0.1", 0, self.rack)


def parse_topic(text: str) -> tuple[str, int]:
    """NAME[:PARTITIONS]. Raises KwireError."""
    name, _, count = text.partition(":")
    if count and not (count.isdecimal() and 0 < int(count) <= 10_000):
        raise KwireError(f"topic {text}: write NAME:PARTITIONS, 1 to 10,000")
    return name, int(count or 1)


def parse_advertised(text: str) -> tuple[str, int]:
    """HOST[:PORT]; port 0: that which is listened on. Raises KwireError."""
    return _host_port(text, f"advertise {text}")


def _host_port(text: str, what: str) -> tuple[str, int]:
    """An IPv6 host is in brackets; port 0 where there is none."""
    bare = text[1:].partition("]") if text.startswith("[") else text.partition(":")
    host, port = bare[0], bare[2].removeprefix(":")
    if not host or not (port or "0").isdecimal() or not int(port or 0) <= LAST_PORT:
        raise KwireError(f"{what}: write HOST:PORT")
    return host, int(port or 0)


def setups_of(nodes: int | Iterable[int | NodeSetup]) -> tuple[NodeSetup, ...]:
    """So many nodes from 1 on, or those of the ids. Raises KwireError for none, or two with one id."""
    if isinstance(nodes, int):
        nodes = range(1, nodes + 1)
    made = tuple(each if isinstance(each, NodeSetup) else NodeSetup(each) for each in nodes)
    twice = next((each.id for each in made if sum(one.id == each.id for one in made) > 1), None)
    if twice is not None:
        raise KwireError(f"two nodes have the id {twice}")
    if not made or not all(0 <= each.id < 1 << 31 for each in made):
        raise KwireError("there must be a node, and ids are 0 to 2147483647")
    return made


def counted_nodes(ids: Iterable[int]) -> str:
    """Which there are, after the word there."""
    known = sorted(ids)
    if len(known) == 1:
        return f"is node {known[0]} alone"
    if known == list(range(known[0], known[0] + len(known))):
        return f"are nodes {known[0]} to {known[-1]}"
    return f"are nodes {', '.join(map(str, known))}"


def reachable(host: str) -> str:
    """An address of this machine for what listens on host, which may be all of them."""
    return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
