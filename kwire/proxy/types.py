"""What the proxy's parts pass to each other: settings, limits, what happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.client.address import Address
from kwire.codec.frames import MAX_SIZE
from kwire.errors import KwireError

MiB = 1 << 20
LISTEN = Address("127.0.0.1", 19092)


class PeerRefused(KwireError):
    """A peer says what cannot go on; its connection ends, and no other."""


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """What peers can take at most; bytes, unless named otherwise.

    connections: at once. frame: its size prefix. held: of frames that must come whole, and unsent: written and not yet
    taken by a peer, all connections together. buffered: of unsent, what a connection may have before its other side is
    no longer read; all connections have room for that, so that only whole frames can be too much. pipelined: requests
    of a connection without their answers, before no more are read. brokers: addresses that get a port. capture: of its
    file. connect: seconds until a broker must have answered. linger: seconds for what is still to be sent when the
    other side is gone.
    """

    connections: int = 1_000
    frame: int = MAX_SIZE
    held: int = 128 * MiB
    unsent: int = 192 * MiB
    buffered: int = 128 << 10
    pipelined: int = 128
    brokers: int = 256
    capture: int = 1_024 * MiB
    connect: float = 10.0
    linger: float = 5.0


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """How a proxy is made. upstream: brokers to begin with. listen: of the first port, the brokers that are found get
    those behind it; port 0 lets the system choose all. advertise: the host that clients are told; None: that of
    listen."""

    upstream: tuple[Address, ...]
    listen: Address = LISTEN
    advertise: str | None = None
    limits: ProxyLimits = field(default_factory=ProxyLimits)


class Notice(NamedTuple):
    """Something that a person watching wants to see. kind: listening, connected, closed, refused, unreachable, fault,
    capture or bug. who: a connection or an address; text: from the wire, not yet made safe to show."""

    kind: str
    who: str
    text: str
