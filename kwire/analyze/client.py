"""A client: its software, addresses, logins, and what it uses of the protocol."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.tls import session_of

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.connection_info import ConnectionInfo

# clients inside the broker, by the names of their classes: TransactionMarkerChannelManager, AddPartitionsToTxnManager,
# PersisterStateManager, NodeToControllerChannelManager, ReplicaFetcherThread, KRaft's network client
BROKERS = re.compile(r"broker-\d+-|AddPartitionsManager-client|Persister-client|raft-client|controller-\d+|^\d+$")


@dataclass(slots=True)
class Client:
    """A client id with its software: one that comes with two softwares is two.

    versions: of each API by name; compressions: of the batches it produced, by codec.
    """

    client_id: str | None
    software: str | None
    software_version: str | None
    addresses: Counter[str] = field(default_factory=Counter)
    brokers: Counter[str] = field(default_factory=Counter)
    versions: dict[str, set[int]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    calls: Counter[tuple[str, int]] = field(default_factory=Counter)  # exchanges by API and version
    compressions: Counter[str] = field(default_factory=Counter)
    mechanisms: set[str] = field(default_factory=set)
    principals: set[str] = field(default_factory=set)
    tls: set[str] = field(default_factory=set)  # versions and suites, and subjects of its certificates
    connections: set[str] = field(default_factory=set)
    exchanges: int = 0
    errors: int = 0
    first_time: int = 0
    last_time: int = 0

    @property
    def names(self) -> tuple[str, str, str]:
        """By which clients are put in order."""
        return self.client_id or "", self.software or "", self.software_version or ""

    @property
    def is_broker(self) -> bool:
        """Whether it is a broker that speaks to itself or to another one."""
        return self.client_id is not None and bool(BROKERS.search(self.client_id))

    def meet(
        self, connection: ConnectionInfo, kind: Kind | None, exchanges: int, errors: int, first: int, last: int
    ) -> None:
        """Counts exchanges of a kind in a connection: how many there were, how many with an error, and the times of
        the first and the last request."""
        identity, (address, broker) = connection.identity, connection.ends
        self.addresses[address.rpartition(":")[0].strip("[]")] += exchanges
        self.brokers[broker] += exchanges
        self.connections.add(f"{connection.capture} {connection.name}")
        self.exchanges += exchanges
        self.errors += errors
        self.first_time = min(self.first_time, first)
        self.last_time = max(self.last_time, last)
        session = session_of(connection)
        if session is not None and session.facts.suite is not None:
            self.tls.add(f"{session.facts.version} {session.facts.suite.name}")
            if session.facts.client_certificate is not None:
                self.principals.add(session.facts.client_certificate.subject)
        if identity.mechanism:
            self.mechanisms.add(identity.mechanism)
        if identity.principal:
            self.principals.add(identity.principal)
        if kind is not None:
            self.versions.setdefault(kind.api, set()).add(kind.version)
            self.calls[kind.api, kind.version] += exchanges
            self.keys[kind.api] = kind.key

    def merge(self, other: Client) -> None:
        """Adds what was seen of the same client elsewhere."""
        for mine, theirs in ((self.addresses, other.addresses), (self.brokers, other.brokers)):
            mine.update(theirs)
        self.compressions.update(other.compressions)
        for api, versions in other.versions.items():
            self.versions.setdefault(api, set()).update(versions)
        self.keys.update(other.keys)
        self.calls.update(other.calls)
        self.mechanisms |= other.mechanisms
        self.principals |= other.principals
        self.tls |= other.tls
        self.connections |= other.connections
        self.exchanges += other.exchanges
        self.errors += other.errors
        self.first_time = min(self.first_time, other.first_time)
        self.last_time = max(self.last_time, other.last_time)

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "client_id": self.client_id, "software": self.software, "software_version": self.software_version,
            "broker_itself": self.is_broker, "addresses": sorted(self.addresses), "brokers": sorted(self.brokers),
            "connections": len(self.connections), "exchanges": self.exchanges, "errors": self.errors,
            "first_time": self.first_time, "last_time": self.last_time,
            "versions": {api: sorted(found) for api, found in sorted(self.versions.items(), key=self._key)},
            "compression": dict(sorted(self.compressions.items(), key=lambda codec: (-codec[1], codec[0]))),
            "sasl_mechanisms": sorted(self.mechanisms), "principals": sorted(self.principals),
            "tls": sorted(self.tls),
        }  # fmt: skip

    def _key(self, item: tuple[str, set[int]]) -> int:
        return self.keys[item[0]]
