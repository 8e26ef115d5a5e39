"""Clients that do not read what they asked for: their TCP window is full (RFC 9293, 3.8.6), and the broker waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.analyze.callers import Caller
from kwire.analyze.dials import packet_of
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo

MOST = 10_000  # clients
MS = 1_000_000


@dataclass(slots=True)
class FullWindows:
    """One client's full windows: how often, how long at least, ns."""

    client_id: str
    host: str
    count: int = 0
    total: int = 0
    first: int = 0
    last: int = 0
    proofs: list[Reference] = field(default_factory=list)


class UnreadAnswers:
    """take() notes a connection that is over; findings() tells of clients whose windows were full for so long."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], FullWindows] = {}

    def take(self, connection: ConnectionInfo) -> None:
        stalls = connection.tcp.streams[connection.sides[0]].stalls
        if stalls is None:
            return
        who = connection.client_id or "", connection.host
        known = self._clients.get(who)
        if known is None:
            if len(self._clients) >= MOST:
                return
            known = self._clients[who] = FullWindows(*who, first=stalls.first)
        known.count, known.total = known.count + stalls.count, known.total + stalls.total
        known.first, known.last = min(known.first, stalls.first), max(known.last, stalls.last)
        if len(known.proofs) < 6:
            known.proofs.append(packet_of(connection, stalls.packet, stalls.first, "full window"))

    def findings(self, ms: float) -> Iterator[Finding]:
        """ms: how long windows must have been full altogether."""
        for one in self._clients.values():
            if one.total >= ms * MS:
                caller = Caller(one.client_id, one.host, "")
                yield Finding(
                    "warning", f"{caller.label} does not read the answers that it asked for: its TCP window was full "
                    f"{counted(one.count, 'time')}, for {lasted(one.total)} or longer, and the broker could not send",
                    tuple(one.proofs), "The client's process has no time, or stands still: look at its CPU, its "
                    "garbage collection and at what its network thread does; on slow ways, socket.receive.buffer.bytes "
                    "(receive.buffer.bytes).", time=one.first, last=one.last, count=one.count, about=caller.about,
                    otherwise="what the client reads from was stopped by intent",
                )  # fmt: skip
