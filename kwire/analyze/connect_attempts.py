"""Attempts to connect to brokers, and how they ended.

A refused attempt got a RST for its SYN. An unanswered one repeated its SYN, although the capture holds answers to other
hosts. Both are counted by client host and broker address.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.analyze.findings import Reference

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo

MOST = 50_000  # pairs of a host and a broker
SAMPLES = 6
AGAIN = 500_000_000  # ns after which a SYN that stands again was sent again, and not captured twice
REFUSED, SILENT, CONNECTED, MIDSTREAM, UNSEEN = "refused", "silent", "connected", "midstream", "unseen"


@dataclass(slots=True)
class HostAttempts:
    """Attempts of one host at one address, in the order in which the connections ended. Times are ns: of the first and
    the last attempt that failed, and since when, of the last that did not, and until when it was open."""

    host: str
    target: str
    refused: int = 0
    silent: int = 0
    connected: int = 0
    first: int = 0
    last: int = 0
    reached: int | None = None  # when the last connection that came about was opened
    reached_first: int | None = None
    open_until: int = 0
    samples: list[Reference] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.refused + self.silent

    @property
    def recovered(self) -> bool:
        """Whether a connection came about after the last attempt that failed."""
        return self.reached is not None and self.reached > self.last


def outcome(connection: ConnectionInfo) -> str:
    """How an attempt ended: one of the names above."""
    client, broker = (connection.tcp.streams[side] for side in connection.sides)
    if connection.tcp.opener is None or connection.resumed:
        return MIDSTREAM
    if broker.syn is not None or broker.position or client.position:
        return CONNECTED
    answered = any(side != connection.sides[0] for side, _ in connection.tcp.closing)
    if answered and connection.tcp.reset:
        return REFUSED
    again = connection.tcp.last_time - connection.tcp.first_time >= AGAIN
    return SILENT if again and not connection.tcp.closing else UNSEEN


def opening_of(connection: ConnectionInfo) -> Reference:
    """The first captured packet that opened or closed a connection."""
    first = next(iter(connection.tcp.opening), None)
    word = "SYN"
    if first is None:
        first, word = next((packet for _, packet in connection.tcp.closing), 0), "close"
    return packet_of(connection, first, connection.tcp.first_time, word)


def packet_of(connection: ConnectionInfo, number: int, time: int, word: str) -> Reference:
    """A reference to a packet that holds no frame."""
    places = connection.places
    capture, packet = places.of(number)
    name = connection.name or f"{'>'.join(connection.ends)}#{connection.tcp.epoch}"
    return Reference(capture or connection.capture, packet, time, name, word, places.several)


class ConnectAttempts:
    """close(connection) when nothing more comes of it; known: by host and address; before: hosts that were at work when
    the capture began, and may have reached then what they do not reach now."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], HostAttempts] = {}
        self.before: set[str] = set()

    def close(self, connection: ConnectionInfo) -> str:
        """Counts a connection; gives how the attempt ended."""
        found = outcome(connection)
        host, target = connection.host, connection.ends[1]
        if connection.tcp.opener is None and connection.is_kafka and len(self.before) < MOST:
            self.before.add(host)
        attempts = self.known.get((host, target))
        if attempts is None:
            if len(self.known) >= MOST:
                return found
            attempts = self.known[host, target] = HostAttempts(host, target)
        if found in (REFUSED, SILENT):
            attempts.refused += found == REFUSED
            attempts.silent += found == SILENT
            if not attempts.samples or connection.tcp.first_time < attempts.first:
                attempts.first = connection.tcp.first_time
            attempts.last = max(attempts.last, connection.tcp.first_time)
            if len(attempts.samples) < SAMPLES:
                attempts.samples.append(opening_of(connection))
            else:
                attempts.samples[-1] = opening_of(connection)
        elif found != UNSEEN:  # of a SYN alone, the capture does not show what became
            attempts.connected += 1
            attempts.reached = max(attempts.reached or 0, connection.tcp.first_time)
            attempts.reached_first = min(attempts.reached_first or connection.tcp.first_time, connection.tcp.first_time)
            attempts.open_until = max(attempts.open_until, connection.tcp.last_time)
        return found

    def to(self, target: str) -> list[HostAttempts]:
        """The attempts of all hosts at one address."""
        return [attempts for (_, other), attempts in self.known.items() if other == target]
