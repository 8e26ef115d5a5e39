"""What is known of TLS connections, with or without keys: as rows, as text, and as findings."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kwire.analyze.findings import Finding, Reference, lasted
from kwire.capture.tls.alerts import NAMES, alert_words
from kwire.capture.tls.session import TlsSession
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.capture.tls.certificates import Certificate
    from kwire.capture.tls.facts import ApplicationRecord
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Message

SECOND = 1_000_000_000
SOON = 14 * 86_400 * SECOND  # ns before its end at which a certificate is worth a word
TO_PLAIN = 'a Java client "terminated during authentication", librdkafka "connecting to a PLAINTEXT broker listener?"'
TO_TLS = (
    'the broker logs "SSL handshake failed", librdkafka a disconnect in state APIVERSION_QUERY; a Java client takes '
    "the alert for a size of 352,518,912 bytes, and may run out of heap"
)
SHOWN = 6  # names of a certificate


def session_of(connection: ConnectionInfo) -> TlsSession | None:
    """The TLS session of a connection that speaks TLS."""
    found = connection.tcp.tls
    return found if isinstance(found, TlsSession) else None


def records_of(message: Message) -> list[ApplicationRecord]:
    """The TLS records that brought a frame's bytes; none where it was not encrypted, or where they were not noted."""
    session, client = session_of(message.connection), message.connection.client
    if session is None or client is None:
        return []
    ledger = session.directions[client if message.kind == "request" else 1 - client].inside.ledger or []
    first = max(bisect_right(ledger, message.position, key=lambda entry: entry.position) - 1, 0)
    end = message.position + len(message.data)
    last = bisect_left(ledger, end, first, key=lambda entry: entry.position)
    return [entry for entry in ledger[first:last] if entry.position + entry.size > message.position]


def records_text(message: Message) -> str | None:
    """The same in words, as "TLS record 7 (1,234 bytes)"."""
    found = records_of(message)
    if not found:
        return None
    size = counted(sum(entry.length for entry in found), "byte")
    if len(found) == 1:
        return f"TLS record {found[0].number} ({size})"
    return f"TLS records {found[0].number} to {found[-1].number} ({size})"


def row_of(connection: ConnectionInfo) -> dict[str, Any] | None:
    """All that is known, as JSON shows it; None where nobody speaks TLS."""
    session = session_of(connection)
    if session is None:
        return None
    facts = session.facts
    return {
        "version": facts.version, "suite": facts.suite.name if facts.suite else None,
        "server_name": facts.server_name, "alpn": facts.protocol, "alpn_offered": list(facts.offered_protocols),
        "versions_offered": list(facts.offered_versions), "client_random": facts.client_random.hex() or None,
        "resumed": facts.resumed, "hello_retry": facts.retried, "early_data": facts.early_data or None,
        "certificate": _certificate_row(facts.certificate),
        "client_certificate": _certificate_row(facts.client_certificate),
        "client_certificate_asked": facts.asked_certificate, "renegotiations": facts.renegotiated,
        "key_updates": facts.key_updates, "handshake_ns": facts.took,
        "alerts": [
            {"by": "client" if alert.by_client else "server", "fatal": alert.fatal,
             "alert": NAMES.get(alert.number, str(alert.number)), "time": alert.time}
            for alert in facts.alerts
        ],
        "closed_by": _closer(connection), "decrypted": session.decrypted, "why": session.why,
        "records_lost": facts.lost, "records_not_authentic": facts.unread,
    }  # fmt: skip


def _certificate_row(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "subject": certificate.subject, "issuer": certificate.issuer, "names": list(certificate.names),
        "not_before": certificate.not_before, "not_after": certificate.not_after,
    }  # fmt: skip


def _closer(connection: ConnectionInfo) -> str | None:
    """Who ended the connection first."""
    if connection.tcp.ended_by is None:
        return None
    return "client" if connection.tcp.ended_by[1] == (connection.client or 0) else "server"


def hung_up(connection: ConnectionInfo) -> bool:
    """Whether the server ended the connection, as one does that cannot read what it got."""
    return _closer(connection) == "server"


def facts_of(connection: ConnectionInfo) -> list[str]:
    """What a handshake tells, a line each; nothing where it was not seen."""
    session = session_of(connection)
    if session is None or session.facts.version is None:
        return []
    facts = session.facts
    words = [facts.version, facts.suite.name if facts.suite else ""]
    words += [f"ALPN {facts.protocol}"] if facts.protocol else []
    words += ["resumed"] if facts.resumed else []
    words += ["after a HelloRetryRequest"] if facts.retried else []
    words += [f"early data {facts.early_data}"] if facts.early_data else []
    words += [f"renegotiated {facts.renegotiated} times"] if facts.renegotiated else []
    words += [f"keys changed {facts.key_updates} times"] if facts.key_updates else []
    words += [f"handshake {lasted(facts.took)}"] if facts.took is not None else []
    lines = [" · ".join(filter(None, words))]
    if facts.certificate is not None:
        lines.append(f"certificate {_certificate(facts.certificate)}")
    if facts.client_certificate is not None:
        lines.append(f"client certificate {_certificate(facts.client_certificate)}")
    elif facts.asked_certificate:
        lines.append("the server asked for a client certificate; none was shown")
    closer = _closer(connection)
    if closer:
        lines.append(f"ended first by the {closer}")
    return lines


def _certificate(certificate: Certificate) -> str:
    names = ", ".join(certificate.names[:SHOWN]) + (", …" if len(certificate.names) > SHOWN else "")
    valid = f"valid {_day(certificate.not_before)} to {_day(certificate.not_after)}"
    signed = "signed by itself" if certificate.self_signed else f"by {certificate.issuer}"
    return f"{certificate.subject} {signed}{f' for {names}' if names else ''}, {valid}"


def _day(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment // SECOND, UTC):%Y-%m-%d}"


def findings_of(connection: ConnectionInfo) -> list[Finding]:
    """What is wrong with a TLS connection: its certificate, a handshake that failed, plain text where TLS is spoken and
    the reverse, with what the logs of both sides say."""
    session, verdict = session_of(connection), connection.verdict
    found: list[tuple[str, str, str]] = []
    if verdict is not None and verdict.is_refused and verdict.logged and hung_up(connection):
        what = f"TLS is spoken to a listener without TLS; the broker logs {verdict.logged}, {TO_PLAIN}"
        found.append(("error", what, "Set security.protocol to what the listener speaks."))
    elif session is not None:
        found += _of_certificates(session, connection.tcp.first_time)
        found += [
            ("error", f"the {'client' if alert.by_client else 'server'} gave up: {alert_words(alert.number)}", "")
            for alert in session.facts.failures
        ]
    foreign = connection.foreign
    if foreign[:1] == b"\x15" and foreign[1:2] == b"\x03":
        what = f"plain Kafka is spoken to a listener with TLS; {TO_TLS}"
        found.append(("error", what, "Set security.protocol to SSL or SASL_SSL."))
    place = _place(connection)
    subject = f"TLS {connection.ends[0]} to {connection.ends[1]}"
    time = connection.tcp.first_time
    return [Finding(severity, what, place, advice, subject, time) for severity, what, advice in found]


def _of_certificates(session: TlsSession, time: int) -> list[tuple[str, str, str]]:
    facts, found = session.facts, []
    for whose, certificate in (("server's", facts.certificate), ("client's", facts.client_certificate)):
        if certificate is None:
            continue
        name = f"the {whose} certificate, {certificate.subject},"
        if certificate.expired(time):
            found.append(("error", f"{name} was expired: valid to {_day(certificate.not_after)}", "Renew it."))
        elif time < certificate.not_before:
            found.append(
                ("error", f"{name} was not yet valid: from {_day(certificate.not_before)}", "Check the clocks.")
            )
        elif certificate.not_after - time < SOON:
            days = (certificate.not_after - time) // (86_400 * SECOND)
            found.append(("warning", f"{name} ends in {days} days, on {_day(certificate.not_after)}", "Renew it."))
    asked, shown = facts.server_name, facts.certificate
    if asked and shown is not None and not shown.holds(asked):
        names = ", ".join(shown.names[:SHOWN]) or shown.subject
        advice = "Clients that check names (ssl.endpoint.identification.algorithm=https) refuse it."
        found.append(
            ("error", f"the server's certificate is for {names}, and not for {asked}, which was asked", advice)
        )
    return found


def _place(connection: ConnectionInfo) -> tuple[Reference, ...]:
    packet = next(iter(connection.tcp.opening), None)
    if packet is None:
        return ()
    capture, number = connection.places.of(packet)
    time = connection.tcp.first_time
    several = connection.places.several
    return (Reference(capture or connection.capture, number, time, connection.name, "SYN", several),)
