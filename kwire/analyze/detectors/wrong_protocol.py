"""Something else than Kafka spoken to a broker, or something else than a broker that answers a Kafka client.

Sees the first bytes of both directions: HTTP, SSH, ZooKeeper's words, PROXY headers, AMQP, MQTT and others (see
codec/verdict.py), with the size that a broker reads in them and logs (org.apache.kafka.common.network.NetworkReceive).
TLS is tls-mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.connect_attempts import packet_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, about
from kwire.analyze.tally import Tallies
from kwire.codec.verdict import judge
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo

KAFKA_PORTS = {9092, 9093, 9094, 9095, 9096, 9098, 19092, 29092}  # where Kafka is expected though nobody speaks it
Key = tuple[bool, str, str, str, str, str]  # whether the server speaks it, what, detail, log, advice, address
BROKEN = "Whatever listens there is no broker: check bootstrap.servers, the port, and what stands between."


class Foreign(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.tallies: Tallies[Key] = Tallies()
        self.hosts: dict[Key, dict[str, None]] = {}

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        verdict = connection.verdict
        if verdict is not None:
            found = verdict.verdict
            if found.known and coverage.opened and not verdict.is_tls:
                self._note(connection, (False, found.what, found.detail, verdict.logged or "", found.advice))
            return
        foreign = judge(connection.foreign)
        if foreign is not None and not foreign.what.startswith("TLS"):
            self._note(connection, (True, foreign.what, foreign.detail, "", BROKEN))

    def _note(self, connection: ConnectionInfo, what: tuple[bool, str, str, str, str]) -> None:
        key: Key = (*what, connection.ends[1])
        self.tallies.add(key, first_bytes(connection), connection.tcp.first_time)
        hosts = self.hosts.setdefault(key, {})
        if len(hosts) < 100:
            hosts[connection.host] = None

    def findings(self) -> Iterator[Finding]:
        for key, tally in self.tallies.known.items():
            server, what, detail, logged, advice, target = key
            known = target in self.case.participants.brokers or int(target.rpartition(":")[2]) in KAFKA_PORTS
            if not (known or server):
                continue
            hosts = list(self.hosts[key])
            who = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3:,} more" if len(hosts) > 3 else "")
            said = f"{what}{f' ({detail})' if detail else ''}"
            times = f" {counted(tally.count, 'time')}" if tally.count > 1 else ""
            if server:
                text = f"{target} answers Kafka clients at {who} with {said}{times}"
            else:
                text = f"{who} sent the broker at {target} what is not Kafka: {said}{times}"
                text += f"; the broker logs {logged}" if logged else ""
            yield Finding(
                "error" if server else "warning", text, tuple(tally.samples), advice, time=tally.first, last=tally.last,
                about=about(broker=target, address=hosts[0] if len(hosts) == 1 else ""), count=tally.count,
                otherwise="a listener there speaks that protocol on purpose",
            )  # fmt: skip


def first_bytes(connection: ConnectionInfo) -> Reference:
    """The packet that opened the connection."""
    opening = next(iter(connection.tcp.opening), 0)
    return packet_of(connection, opening, connection.tcp.first_time, "SYN")


DETECTOR = Detector(
    "something else than Kafka on a broker's port",
    watch=Foreign,
    fields="the first bytes of both directions of a connection",
    source="the signatures in codec/verdict.py; socket.request.max.bytes for what the broker refuses",
    means="Bytes that are no Kafka reach a broker, which reads them as a size; or a client reaches no broker.",
    proof="The first bytes, which begin as that protocol's do, on a connection that is there from its SYN on.",
    advice="Point the health check, proxy or client at the right port. A broker hangs up on what it cannot read.",
    connections=True,
)
