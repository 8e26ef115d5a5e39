"""What is known of a connection: name, ends, identity, coverage. conversation.py fills it in.

Coverage says how much of the connection the capture holds: what is missing may still have happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kwire.capture.ip import endpoint
from kwire.capture.packet_numbers import PacketFiles
from kwire.capture.segmenter import CaptureMoment, ClockStep
from kwire.capture.tls.session import TlsSession
from kwire.session.allowance import OF_CONNECTION, Allowance
from kwire.session.sasl import Identity, Login

if TYPE_CHECKING:
    from kwire.capture.connection import Connection
    from kwire.session.api_versions import Kinds
    from kwire.session.roles import NotKafka
    from kwire.session.topics import Topics
from kwire.session.twins import NOTHING, Head

BOTH, CLIENT_ONLY, BROKER_ONLY, NEITHER = "both", "client only", "broker only", "neither"
DIRECTIONS = {(True, True): BOTH, (True, False): CLIENT_ONLY, (False, True): BROKER_ONLY, (False, False): NEITHER}


class ConnectionCoverage(NamedTuple):
    """How much of a connection a capture holds, up to where it was read.

    opened: the SYN was captured; ended: both sides closed it, or one reset it. direction: whose packets there are, of
    those with data, SYN or FIN. Byte counts as (client's, broker's): said: stream length up to the last byte seen;
    missing: not captured, cut of them by the snaplen; left_out: of a slice. skipped: captured bytes of which no frames
    could be made; repeated: retransmitted bytes. encrypted: TLS that was not decrypted. tunnel: as "VXLAN".
    clock_steps: how often the capture's clock went back meanwhile.
    """

    opened: bool
    direction: str
    missing: tuple[int, int]
    skipped: int
    repeated: int
    encrypted: bool
    tunnel: str
    said: tuple[int, int]
    ended: bool
    cut: tuple[int, int] = (0, 0)
    left_out: tuple[int, int] = (0, 0)
    clock_steps: int = 0

    @property
    def whole(self) -> bool:
        """Whether all known bytes of both sides were captured and can be read."""
        lacks = any(self.missing) or any(self.left_out) or self.skipped > 0
        return self.direction == BOTH and not lacks and not self.encrypted


@dataclass(slots=True, eq=False)
class ConnectionInfo:
    """capture, name: as in the message record. tcp: its packets' streams. client: the index of the client's side in
    tcp, None until it is known. identity: software, mechanism, principal; login: the state of its login; clients: its
    client ids, raw to text. heads: of its streams' first bytes; twin_of: the name of the connection of which this is a
    second recording. verdict: what the connection is when it is not Kafka; foreign: the broker's bytes at the first
    impossible size.

    resumed: its beginning was not read in this run, even if it was captured. exchanges: their number so far; asked:
    whether there was a request, answered or not; lost: captured bytes of which no frames could be made. inferred: the
    budget for naming its orphans.
    """

    capture: str
    tcp: Connection
    kinds: Kinds
    topics: Topics
    places: PacketFiles = field(default_factory=PacketFiles)
    clock: list[ClockStep] = field(default_factory=list)
    name: str = ""
    client: int | None = None
    identity: Identity = field(default_factory=Identity)
    login: Login = field(default_factory=Login)
    clients: dict[bytes, str] = field(default_factory=dict)
    heads: tuple[Head, Head] = (NOTHING, NOTHING)
    twin_of: str = ""
    verdict: NotKafka | None = None
    foreign: bytes = b""
    exchanges: int = 0
    asked: bool = False
    resumed: bool = False
    lost: int = 0
    inferred: Allowance = field(default_factory=lambda: Allowance(*OF_CONNECTION))
    _ends: tuple[int, tuple[str, str]] | None = None  # cache: the client's side, the ends

    @property
    def ends(self) -> tuple[str, str]:
        """Client and broker as "10.0.0.7:51522"; in order of appearance until the sides are known."""
        client = self.client or 0
        if self._ends is None or self._ends[0] != client:
            self._ends = client, (endpoint(*self.tcp.ends[client]), endpoint(*self.tcp.ends[1 - client]))
        return self._ends[1]

    @property
    def host(self) -> str:
        """The client's address, without its port."""
        return self.tcp.ends[self.client or 0][0]

    @property
    def full_name(self) -> str:
        """The name; made from the ends for connections that are not Kafka."""
        return self.name or f"{'>'.join(self.ends)}#{self.tcp.epoch}"

    @property
    def client_id(self) -> str | None:
        """The first client id of its requests."""
        return next(iter(self.clients.values()), None)

    @property
    def is_kafka(self) -> bool:
        """Whether Kafka frames were found."""
        return self.exchanges > 0 or self.asked

    @property
    def answers_missing(self) -> int:
        """Bytes of the broker's stream that were not captured."""
        return 0 if self.client is None else self.tcp.streams[1 - self.client].missing

    @property
    def sides(self) -> tuple[int, int]:
        """The indexes of client and broker in tcp; until they are known, the opener counts as the client."""
        client = self.client if self.client is not None else self.tcp.opener or 0
        return client, 1 - client

    def moment(self, packet: int, time: int) -> CaptureMoment:
        """The moment of a packet of its capture. packet: its number; time: ns since the epoch."""
        return CaptureMoment(sum(step.packet <= packet for step in self.clock), time)

    @property
    def coverage(self) -> ConnectionCoverage:
        """Its coverage so far."""
        tcp = self.tcp
        client, broker = (tcp.streams[side] for side in self.sides)
        closers = {side for side, _ in tcp.closing}
        seen = [
            stream.syn is not None or stream.position > stream.missing or side in closers
            for stream, side in zip((client, broker), self.sides, strict=True)
        ]
        session = tcp.tls if isinstance(tcp.tls, TlsSession) else None
        encrypted = session is not None and session.encrypted and not session.decrypted
        encrypted |= self.verdict is not None and self.verdict.is_tls and not self.verdict.is_refused
        steps = sum(step.after <= tcp.last_time and tcp.first_time <= step.before for step in self.clock)
        return ConnectionCoverage(
            tcp.opener is not None and not self.resumed, DIRECTIONS[seen[0], seen[1]],
            (client.missing, broker.missing), self.lost,
            client.repeated + broker.repeated, encrypted, tcp.tunnel, (client.position, broker.position), tcp.closed,
            (client.cut, broker.cut), (client.left_out, broker.left_out), steps,
        )  # fmt: skip
