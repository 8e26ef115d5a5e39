"""Clients that open a new connection, and so a new client, for each message.

Sees connections of one client id and host that live for a few seconds and carry a handful of requests, one after the
other. Each costs a handshake, ApiVersions, Metadata, a login, and memory on the broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.analyze.callers import host_of
from kwire.analyze.connect_attempts import opening_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.counted import counted
from kwire.schema.keys import (
    CONSUMER_GROUP_HEARTBEAT,
    JOIN_GROUP,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
)
from kwire.session.connection_info import BOTH

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo

MOST = 10_000
MEMBERSHIP = {JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT}
KEPT = 4096  # times of connections that are kept of a client
SECOND = 1_000_000_000


@dataclass(slots=True)
class Opened:
    """Short connections of one client: when they were opened, ns."""

    count: int = 0
    times: list[int] = field(default_factory=list)
    proofs: list[tuple[int, Reference]] = field(default_factory=list)
    requests: int = 0


class Churn(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.clients: dict[tuple[str, str], Opened] = {}

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        tcp = connection.tcp
        if not coverage.opened or not coverage.ended or not connection.exchanges:
            return
        if tcp.last_time - tcp.first_time > self.limit("seconds") * SECOND:
            return
        mute = coverage.direction == BOTH and not coverage.said[1]
        if connection.foreign or mute or connection.login.active:
            return  # one that failed before any work: others tell why
        who = connection.client_id or "", host_of(connection)
        if who not in self.clients and len(self.clients) >= MOST:
            return
        known = self.clients.setdefault(who, Opened())
        known.count += 1
        known.requests += connection.exchanges
        if len(known.times) < KEPT:
            known.times.append(tcp.first_time)
        if len(known.proofs) < 64:
            known.proofs.append((tcp.first_time, opening_of(connection)))

    def _rejoins(self, client: str, host: str) -> bool:
        """Whether it is a member of groups, whose coming and going rebalance-storm tells."""
        known = self.case.participants.known.get((client, host))
        return known is not None and bool(known.keys.keys() & MEMBERSHIP)

    def findings(self) -> Iterator[Finding]:
        for (client, host), opened in self.clients.items():
            times = sorted(opened.times)
            least = int(self.limit("least"))
            if len(times) < least or self._rejoins(client, host):
                continue
            window = self.limit("window") * SECOND
            densest = max(range(len(times) - least + 1), key=lambda at: (-(times[at + least - 1] - times[at]), -at))
            if times[densest + least - 1] - times[densest] > window:
                continue
            dense = [at for at in range(len(times) - least + 1) if times[at + least - 1] - times[at] <= window]
            first, last = times[dense[0]], times[dense[-1] + least - 1]
            count = dense[-1] + least - dense[0]
            who, each = client or f"a client at {host}", round(opened.requests / opened.count)
            what = f"{who} opened {counted(count, 'connection')} in {lasted(last - first)}, each closed again within "
            what += f"{self.limit('seconds'):.0f} s, with {counted(each, 'request')} each"
            advice = (
                "Make one producer (or consumer, or admin client) for the life of the process and share it: it is made "
            )
            advice += "for that. A health check that connects each second shows like this too."
            about: dict[str, str | int] = {"client_id": client, "address": host} if client else {"address": host}
            proofs = [proof for time, proof in sorted(opened.proofs) if first <= time <= last][:4]
            yield Finding("warning", what, tuple(proofs), advice, time=first, last=last, about=about, count=count,
                          otherwise="they are many processes, each with one short task")  # fmt: skip


DETECTOR = Detector(
    "clients that open a connection for each message",
    watch=Churn,
    fields="connections from SYN to close, by client id and host; requests on each",
    source="KafkaProducer is thread safe and meant to be shared; max.connections.per.ip and quotas of KIP-612",
    means="Most of the work is handshakes; brokers run out of sockets and threads long before they run out of disk.",
    proof="Connections of one client, one after the other, each short and with the same few requests.",
    advice="One client object for the process.",
    thresholds={"least": 20, "window": 20, "seconds": 5},
    connections=True,
    needs=("clock",),
)
