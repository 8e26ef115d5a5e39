"""Addresses that brokers advertise and clients cannot reach: refused, not answered, meant for the broker's own host, or
names that a client gets again and again and never dials.

Sees Host and Port of Metadata, FindCoordinator and DescribeCluster answers, whom they were told, and SYNs to them with
what became of those. An address is advertised.listeners of the listener that the client came in by.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from kwire.analyze.cluster import MetadataRequests, NodeAddress
from kwire.analyze.connect_attempts import HostAttempts
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, about
from kwire.capture.ip import endpoint
from kwire.counted import counted
from kwire.schema import keys

ADVICE = "Set advertised.listeners of the listener that clients come in by to what they can resolve and reach."
ONLY_ASKS = {keys.METADATA, keys.API_VERSIONS, keys.SASL_HANDSHAKE, keys.SASL_AUTHENTICATE}
SECOND = 1_000_000_000


def is_loopback(host: str) -> bool:
    """Whether an address means the host itself."""
    try:
        found = ip_address(host)
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
    return found.is_loopback or found.is_unspecified


def is_name(host: str) -> bool:
    """Whether it has to be resolved."""
    try:
        ip_address(host)
    except ValueError:
        return True
    return False


class Unreachable(Watch):
    def findings(self) -> Iterator[Finding]:
        for address in self.case.cluster.addresses.values():
            yield from self._own(address)
            yield from self._dialled(address)
        for asking in self.case.cluster.asking.values():
            yield from self._never(asking)

    def _own(self, address: NodeAddress) -> Iterator[Finding]:
        """An address that means the client itself."""
        if not is_loopback(address.host) or not address.port:
            return
        hosts = {
            host: proof for host, proof in address.told.items()
            if not is_loopback(host) and not self._same_host(host, proof.connection)
        }  # fmt: skip
        if hosts:
            proofs = list(hosts.values())
            what = f"node {address.node} is advertised as {address.host}:{address.port} to {_some(list(hosts))}: "
            what += "clients on another host dial themselves"
            yield Finding("error", what, tuple(proofs[:8]), ADVICE, time=proofs[0].time, last=address.last.time,
                          about=self._about(address, list(hosts)), count=len(hosts),
                          otherwise="the client's host has a tunnel or port forward there")  # fmt: skip

    @staticmethod
    def _same_host(host: str, connection: str) -> bool:
        """Whether a connection (client>broker) goes from a host to itself."""
        return connection.partition(">")[2].rpartition(":")[0].strip("[]") == host

    def _dialled(self, address: NodeAddress) -> Iterator[Finding]:
        """An address that was told and dialled in vain by hosts that never reached it."""
        failing: list[HostAttempts] = []
        for attempts in self._candidates(address):
            told = address.told.get(attempts.host)
            if attempts.host in self.case.attempts.before:
                continue  # it may have reached it before the capture began: see broker-gone
            silent = attempts.silent if self.case.coverage.answers_seen(attempts.host) else 0
            if told is not None and told.time <= attempts.last and not attempts.connected and attempts.refused + silent:
                failing.append(attempts)
        if not failing:
            return
        refused = sum(attempts.refused for attempts in failing)
        failed = sum(attempts.failed for attempts in failing)
        how = "refused" if refused == failed else "not answered" if not refused else "refused or not answered"
        target = failing[0].target
        advertised = f"{address.host}:{address.port}"
        named = advertised if target == endpoint(address.host, address.port) else f"{advertised}, dialled as {target},"
        what = f"node {address.node} is advertised as {named} and cannot be reached there: "
        what += f"{counted(failed, 'connection')} of {_some([attempts.host for attempts in failing])} {how}"
        proofs = [address.told[failing[0].host], *(ref for attempts in failing for ref in attempts.samples)]
        elsewhere = any(attempts.connected for attempts in self.case.attempts.to(target))
        advice = "Others reach it: see the way between these hosts (firewall, routes)." if elsewhere else ADVICE
        yield Finding("error", what, tuple(proofs[:8]), advice, time=min(attempts.first for attempts in failing),
                      last=max(attempts.last for attempts in failing), count=failed,
                      about=self._about(address, [attempts.host for attempts in failing], target),
                      otherwise="a connection to that address came about")  # fmt: skip

    def _candidates(self, address: NodeAddress) -> Iterator[HostAttempts]:
        """Attempts at an address; where it is a name, those at its port of an address that answered to nobody."""
        if not is_name(address.host):
            yield from self.case.attempts.to(endpoint(address.host, address.port))
            return
        for attempts in self.case.attempts.known.values():
            told = address.told.get(attempts.host)
            if told is not None and attempts.target.endswith(f":{address.port}") and attempts.first >= told.time:
                yield attempts

    def _never(self, asking: MetadataRequests) -> Iterator[Finding]:
        """A client that gets addresses again and again and asks nobody anything else."""
        who = self.case.participants.known.get((asking.client_id, asking.host))
        if who is None or asking.most < self.limit("repeats") or asking.most_from is None or asking.most_to is None:
            return
        begun, ended = asking.most_from, asking.most_to
        if who.keys.keys() - ONLY_ASKS or ended.time - begun.time < self.limit("seconds") * SECOND:
            return
        told = [one for one in self.case.cluster.addresses.values() if asking.host in one.told and is_name(one.host)]
        dialled = {attempts.target for attempts in self.case.attempts.known.values() if attempts.host == asking.host}
        if not told or len(dialled) > 1 or begun.connection != ended.connection:
            return
        names = _some(sorted({f"{one.host}:{one.port}" for one in told}))
        answers = counted(asking.most + 1, "answer")
        what = f"{asking.client_id or 'a client'} at {asking.host} got {names} from {answers} "
        what += "and dialled none of them: it cannot resolve the name, or not reach it"
        yield Finding("warning", what, (begun, ended), ADVICE, time=begun.time, last=ended.time, count=asking.most,
                      about=about(client_id=asking.client_id, address=asking.host),
                      otherwise="they were dialled on a port that the capture leaves out")  # fmt: skip

    @staticmethod
    def _about(address: NodeAddress, hosts: list[str], target: str = "") -> dict[str, str | int]:
        host = hosts[0] if len(hosts) == 1 else ""
        return about(broker=target or f"{address.host}:{address.port}", address=host)


def _some(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


DETECTOR = Detector(
    "advertised addresses that clients cannot reach",
    watch=Unreachable,
    fields="Host and Port of Metadata, FindCoordinator, DescribeCluster; SYN, SYN-ACK, RST by address",
    source="KIP-103 (advertised.listeners); org.apache.kafka.clients.Metadata",
    means="Clients reach a bootstrap broker, which tells them addresses that they then cannot reach.",
    proof="The answer that told the address, and the SYNs to it that were refused or not answered.",
    advice=ADVICE,
    thresholds={"repeats": 3, "seconds": 5},
)
