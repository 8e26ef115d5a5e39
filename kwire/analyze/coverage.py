"""How much a capture can show of its connections: what it lacks may still have happened.

A connection may be captured from its SYN or from the middle, in both directions or in one, whole or with holes. Before
a finding says "no answer", "never" or "left without", it asks here whether the capture would show it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kwire.analyze.connect_attempts import packet_of
from kwire.analyze.findings import lasted
from kwire.session.connection_info import BOTH, BROKER_ONLY, CLIENT_ONLY, ConnectionCoverage

if TYPE_CHECKING:
    from kwire.analyze.findings import Reference
    from kwire.capture.segmenter import ClockStep
    from kwire.session.connection_info import ConnectionInfo

STEP = 1_000_000_000  # ns from which times that go back are a clock that was set, and not packets out of order
MOST = 100_000  # connections of which the coverage is kept


class Coverage:
    """close(connection) when nothing more comes of it. of(connection) then tells of one, the rest of all.

    connections counts those that carried anything; negative: answers that stand before their requests; span: the times
    of the first and the last packet, ns.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], ConnectionCoverage] = {}
        self.connections = 0
        self.bytes = 0  # that were captured
        self.counts: Counter[str] = Counter()  # by direction, of connections that carried something
        self.missing = [0, 0]  # bytes of clients and of brokers
        self.lossy = self.skipped = self.repeated = self.midstream = self.encrypted = 0
        self.tunnels: Counter[str] = Counter()
        self.hosts: dict[str, set[str]] = {}  # directions in which connections of a host were seen
        self.cut = 0  # messages cut by the snaplen
        self.messages = 0
        self.negative = 0
        self.most_negative = 0
        # connections that are others, by whether their addresses are others too: how many, the first, which one it is
        self.twins: dict[bool, tuple[int, str, str]] = {}
        self.clock: list[tuple[ClockStep, Reference]] = []  # where a capture's clock went back
        self._told: dict[int, tuple[list[ClockStep], int]] = {}  # captures' steps, and how many of them are in clock

    def close(self, connection: ConnectionInfo) -> ConnectionCoverage:
        """Adds a connection that was read to its end."""
        found = connection.coverage
        _, told = self._told.get(id(connection.clock), ([], 0))
        for step in connection.clock[told:]:
            self.clock.append((step, packet_of(connection, step.packet, step.after, "packet")))
        if connection.clock:
            self._told[id(connection.clock)] = connection.clock, len(connection.clock)
        if connection.twin_of:
            translated = connection.full_name != connection.twin_of
            count, twin, of = self.twins.get(translated, (0, connection.full_name, connection.twin_of))
            self.twins[translated] = count + 1, twin, of
            return found
        if len(self._known) < MOST:
            self._known[connection.capture, connection.name] = found
        host = connection.host
        if len(self.hosts) < MOST or host in self.hosts:
            self.hosts.setdefault(host, set()).add(found.direction)
        if not any(found.said):
            return found
        self.connections += 1
        self.bytes += sum(found.said) - sum(found.missing)
        self.counts[found.direction] += 1
        self.missing[0] += found.missing[0]
        self.missing[1] += found.missing[1]
        self.lossy += any(found.missing)
        self.skipped += found.skipped
        self.repeated += found.repeated
        self.midstream += not found.opened
        self.encrypted += found.encrypted
        if found.tunnel:
            self.tunnels[found.tunnel] += 1
        return found

    def of(self, capture: str, name: str) -> ConnectionCoverage | None:
        """The coverage of a connection, by its capture and name; None if unknown."""
        return self._known.get((capture, name))

    @property
    def one_sided(self) -> str:
        """The only captured direction of most connections; empty if both were captured."""
        for direction in (CLIENT_ONLY, BROKER_ONLY):
            if self.counts[direction] * 2 > self.connections:
                return direction
        return ""

    def stepped(self, first: int, last: int, least: int = STEP) -> tuple[str, Reference] | None:
        """Where the capture's clock was set back between two times, ns, by more than least, in words and with the
        packet: what lies between them is not as long as it seems, nor in the order that it seems to be in. None where
        it ran on."""
        for step, packet in self.clock:
            if step.before - step.after > least and first <= step.before and step.after <= last:
                return f"the capture's clock goes back by {lasted(step.before - step.after)} at packet {packet}", packet
        return None

    @property
    def incomplete(self) -> bool:
        """Whether bytes are missing or cut anywhere, so that what is not seen may have been said."""
        return bool(any(self.missing) or self.skipped or self.cut or self.one_sided)

    def answers_seen(self, host: str) -> bool:
        """Whether packets to a client's host are in the capture, so that an answer to it would be seen too."""
        seen = self.hosts.get(host, set()) - {CLIENT_ONLY}
        return bool(seen) or (not self.one_sided and self.counts[BOTH] > 0)
