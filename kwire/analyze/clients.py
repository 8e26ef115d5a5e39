"""Who speaks in a capture: each client with its software, addresses, logins, and what it uses of the protocol."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.analyze.client import Client
from kwire.analyze.client_columns import clients_of
from kwire.analyze.tls import findings_of, session_of
from kwire.session.decoded import Decoded

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo

MOST = 10_000
MOST_FACTS = 50


@dataclass(slots=True)
class Secured:
    """Connections that speak TLS: who opened how many, to which name; refused: of these, how many got no ServerHello
    to their ClientHello, so that nothing was encrypted."""

    address: str
    broker: str
    server_name: str | None
    connections: int = 0
    alerts: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    facts: Counter[str] = field(default_factory=Counter)  # what handshakes told
    findings: Counter[str] = field(default_factory=Counter)  # what is wrong with them


class Clients:
    """add(exchange) and close(connection) collect."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, str | None, str | None], Client] = {}
        self._secured: dict[tuple[str, str, str | None], Secured] = {}

    @property
    def all(self) -> list[Client]:
        """As they were met."""
        return list(self._found.values())

    def merge(self, others: list[Client]) -> None:
        """Adds what another one collected."""
        for other in others:
            key = other.client_id, other.software, other.software_version
            known = self._found.get(key)
            if known is not None:
                known.merge(other)
            elif len(self._found) < MOST:
                self._found[key] = other

    @property
    def found(self) -> list[Client]:
        """All clients, the brokers' own last, then by client id and software."""
        return sorted(self._found.values(), key=lambda client: (client.is_broker, *client.names))

    @property
    def secured(self) -> list[Secured]:
        """What cannot be read."""
        return sorted(self._secured.values(), key=lambda found: (found.address, found.broker))

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        self.merge([client for _, client in clients_of(Decoded(batch))])

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over: of TLS all that can be told."""
        if connection.verdict is None or not connection.verdict.is_tls:
            return
        verdict = connection.verdict
        name = verdict.verdict.detail.removeprefix("server name ") if "server name" in verdict.verdict.detail else None
        address, broker = connection.ends
        key = address.rpartition(":")[0].strip("[]"), broker, name
        found = self._secured.setdefault(key, Secured(*key))
        found.connections += 1
        found.refused += verdict.is_refused
        if verdict.answer and "alert" in verdict.answer:
            found.alerts[verdict.answer] += 1
        session = session_of(connection)
        if session is None or len(found.facts) > MOST_FACTS:
            return
        facts = session.facts
        suite = facts.suite.name if facts.suite else ""
        words = [f"{facts.version} {suite}"] if facts.version else []
        words += [f"certificate {facts.certificate.subject}"] if facts.certificate else []
        words += [f"client certificate {facts.client_certificate.subject}"] if facts.client_certificate else []
        found.facts.update(words)
        found.findings.update(one.what for one in findings_of(connection) if "gave up" not in one.what)
