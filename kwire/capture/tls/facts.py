"""Facts about a TLS connection, most of which need no keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.capture.tls.alerts import CLOSE_NOTIFY
from kwire.capture.tls.certificates import Certificate
from kwire.capture.tls.suites import Suite

MOST_ALERTS = 20


class Alert(NamedTuple):
    """by_client: the client sent it; time: ns since the Unix epoch."""

    by_client: bool
    fatal: bool
    number: int
    time: int


class ApplicationRecord(NamedTuple):
    """A record of application data: where its content begins among all that travelled inside, and how long it is; its
    number in its direction, from 1, and its length on the wire behind the header."""

    position: int
    size: int
    number: int
    length: int


@dataclass(slots=True, eq=False)
class TlsFacts:
    """version as TLS 1.3; offered: the ClientHello's versions and protocols; certificate: the server's own one.

    resumed: by session id, ticket or pre-shared key; retried: a HelloRetryRequest came; early_data: empty, offered,
    taken or refused; asked_certificate: the server wanted one of the client. began and done: when the ClientHello came
    and when the handshake was over, ns since the Unix epoch, 0 where that is not known. extra: what else is odd."""

    version: str | None = None
    suite: Suite | None = None
    server_name: str | None = None
    protocol: str | None = None
    offered_versions: tuple[str, ...] = ()
    offered_protocols: tuple[str, ...] = ()
    client_random: bytes = b""
    resumed: bool = False
    retried: bool = False
    early_data: str = ""
    certificate: Certificate | None = None
    client_certificate: Certificate | None = None
    asked_certificate: bool = False
    renegotiated: int = 0
    key_updates: int = 0
    began: int = 0
    done: int = 0
    alerts: list[Alert] = field(default_factory=list)
    oversized: int = 0
    unread: int = 0  # records that were not authentic
    lost: int = 0  # records that the capture lacks, or not all of them

    @property
    def took(self) -> int | None:
        """How long the handshake took, ns."""
        return self.done - self.began if self.began and self.done else None

    @property
    def failures(self) -> list[Alert]:
        """The alerts other than close_notify: with each a side gave up the connection."""
        return [alert for alert in self.alerts if alert.number != CLOSE_NOTIFY]

    def alert(self, by_client: bool, content: bytes, time: int) -> None:
        """Adds an alert that could be read."""
        if len(content) >= 2 and len(self.alerts) < MOST_ALERTS:
            self.alerts.append(Alert(by_client, content[0] == 2, content[1], time))
