"""TLS where none is spoken, plain text where TLS is, handshakes that fail, certificates that do not hold.

Sees the ClientHello that gets no ServerHello, alerts that are not encrypted, certificates with their dates and names
(RFC 8446 sections 4 and 6), and the bytes with which a TLS listener answers plain Kafka. What both logs say is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, about
from kwire.analyze.tally import Tallies
from kwire.analyze.tls import findings_of
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo

SIZE = re.compile(r"size = \d+")
Key = tuple[str, str]  # what is wrong, with which broker
ADVICE = {  # by the alert that ends a handshake (RFC 8446 section 6)
    "unknown_ca": "Give that side the authority that signed the other's certificate: ssl.truststore.location, or "
                  "ssl.ca.location of librdkafka.",
    "bad_certificate": "Look at the certificate, which kwire clients names: its host names, dates and chain.",
    "certificate_expired": "Renew the certificate; kwire clients names it.",
    "certificate_unknown": "That side's own log says what it does not like of the certificate.",
    "certificate_required": "The listener wants a certificate of the client (ssl.client.auth): give it one.",
    "handshake_failure": "Compare ssl.enabled.protocols, ssl.cipher.suites and ssl.client.auth of both sides.",
    "protocol_version": "Compare ssl.enabled.protocols of both sides.",
    "decode_error": "The other side does not speak TLS: set security.protocol to what the listener speaks.",
}  # fmt: skip


class Mismatch(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.tallies: Tallies[Key] = Tallies()
        self.first: dict[Key, Finding] = {}
        self.hosts: dict[Key, set[str]] = {}

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        if any(coverage.missing):  # a handshake with holes in it proves nothing
            return
        host, broker = connection.host, connection.ends[1]
        for finding in findings_of(connection):
            key = SIZE.sub("size = …", finding.what), broker  # which differs from one ClientHello to the next
            tally = self.tallies.of(key)
            if tally is None:
                continue
            tally.add(next(iter(finding.evidence), None), finding.time)
            self.first.setdefault(key, finding)
            self.hosts.setdefault(key, set()).add(host)

    def findings(self) -> Iterator[Finding]:
        for key, tally in self.tallies.known.items():
            first, hosts = self.first[key], self.hosts[key]
            what, broker = first.what, key[1]
            who = next(iter(hosts)) if len(hosts) == 1 else counted(len(hosts), "host")
            times = f", {counted(tally.count, 'time')}" if tally.count > 1 else ""
            yield replace(
                first, what=f"{who} to {broker}{times}: {what}", evidence=tuple(tally.samples), time=tally.first,
                last=tally.last, count=tally.count,
                about=about(broker=broker, address=who if len(hosts) == 1 else ""),
                advice=first.advice or next((advice for alert, advice in ADVICE.items() if alert in what), ""),
                otherwise="a later handshake of the same client with that broker succeeds",
            )  # fmt: skip


DETECTOR = Detector(
    "TLS against plain text, handshakes and certificates",
    watch=Mismatch,
    fields="the first bytes of both directions; TLS handshakes, alerts and certificates",
    source="RFC 8446 sections 4 and 6; RFC 5280 for certificates; security.protocol and ssl.* settings",
    means="The client and the listener do not agree on TLS: its presence, its version, or whom to trust.",
    proof="A ClientHello without a ServerHello, an alert in clear text, a certificate that the handshake shows.",
    advice="Set security.protocol to what the listener speaks; give the client the authority that signed.",
    connections=True,
)
