"""Connections to the brokers of a cluster, opened when they are first asked, and the versions to speak.

An era is a release whose consumer is played: the versions that it sent, without asking for the broker's. Kafka 0.9's
NetworkClient.nextRequestHeader takes ProtoUtils.latestVersion, the last of each list in its Protocol class: Fetch v1,
OffsetFetch v1, OffsetCommit v2, everything else that a consumer sends v0.
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.client.address import Address
from kwire.client.connection import CLIENT_ID, BrokerConnection
from kwire.client.diagnose import why_closed
from kwire.client.exchange import Body, ClientExchange
from kwire.client.security import Security
from kwire.codec.library import Library, builtin_library
from kwire.errors import Failure, KwireError

ERAS = {
    "0.9": {
        "Metadata": 0, "FindCoordinator": 0, "JoinGroup": 0, "SyncGroup": 0, "Heartbeat": 0, "LeaveGroup": 0,
        "OffsetCommit": 2, "OffsetFetch": 1, "ListOffsets": 0, "Fetch": 1, "DescribeGroups": 0, "Produce": 1,
    },
}  # fmt: skip


class ClusterClient:
    """ask() sends to a broker's address. era: a key of ERAS, or None for what both sides know. highest: by
    API, a version not to go above."""

    def __init__(
        self, security: Security = Security(), client_id: str = CLIENT_ID, timeout: float = 10.0,  # noqa: B008
        library: Library | None = None, era: str | None = None,
    ) -> None:  # fmt: skip
        self.security, self.client_id, self.timeout = security, client_id, timeout
        self.library = library or builtin_library()
        self._versions = ERAS[era] if era else None
        self.highest: dict[str, int] = {}
        self._open: dict[Address, BrokerConnection] = {}
        self._kept: list[ClientExchange] = []

    def connect(self, address: Address) -> BrokerConnection:
        """The connection to a broker, opened where there is none. Raises Failure."""
        known = self._open.get(address)
        if known is not None and not known.closed:
            return known
        negotiate = self._versions is None or self.security.mechanism is not None
        connection = BrokerConnection.open(
            address, self.security, client_id=self.client_id, timeout=self.timeout, library=self.library,
            negotiate=negotiate,
        )  # fmt: skip
        self._open[address] = connection
        return connection

    def version(self, address: Address, api: str) -> int:
        """Raises Failure."""
        if self._versions is not None:
            if api not in self._versions:
                raise KwireError(f"that era had no {api}")
            return self._versions[api]
        return min(self.connect(address).version(api), self.highest.get(api, 1 << 15))

    def ask(
        self, address: Address, api: str, body: Callable[[int], Body], timeout: float | None = None, answer: bool = True
    ) -> ClientExchange:
        """Sends what body makes for the version. A broker that closes is asked why. Raises Failure, EncodeError."""
        connection = self.connect(address)
        version = self.version(address, api)
        try:
            return connection.request(api, version, body(version), timeout, answer)
        except Failure as failure:
            if failure.kind != "closed":
                raise
            why = why_closed(address, self.security, api, version, min(self.timeout, 5.0), self.library)
            raise Failure("closed", address, failure.reason, why or "") from failure
        finally:
            self._kept += connection.take()

    def take(self) -> list[ClientExchange]:
        """What was asked since the last call, logins and ApiVersions included."""
        taken = self._kept + [exchange for connection in self._open.values() for exchange in connection.take()]
        self._kept = []
        return sorted(taken, key=lambda exchange: exchange.time)

    def drop(self, address: Address) -> None:
        """Closes the connection to a broker."""
        connection = self._open.pop(address, None)
        if connection:
            self._kept += connection.take()
            connection.close()

    def close(self) -> None:
        for address in list(self._open):
            self.drop(address)
