"""Clients that do not read what they asked for: their TCP window is full (RFC 9293, 3.8.6), and the broker waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.analyze.callers import Caller
from kwire.analyze.connect_attempts import packet_of
from kwire.analyze.findings import Finding, lasted
from kwire.analyze.tally import Tallies
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.session.connection_info import ConnectionInfo

MS = 1_000_000


class UnreadAnswers:
    """take() notes a connection that is over; findings() tells of clients whose windows were full for so long."""

    def __init__(self) -> None:
        self._clients: Tallies[tuple[str, str]] = Tallies()  # full windows, ns, by client id and host

    def take(self, connection: ConnectionInfo) -> None:
        stalls = connection.tcp.streams[connection.sides[0]].stalls
        if stalls is None:
            return
        who = self._clients.of((connection.client_id or "", connection.host))
        if who is not None:
            proof = packet_of(connection, stalls.packet, stalls.first, "full window")
            who.add(proof, stalls.first, stalls.total, stalls.count, last=stalls.last)

    def findings(self, ms: float) -> Iterator[Finding]:
        """ms: how long windows must have been full altogether."""
        for (client_id, host), one in self._clients.known.items():
            if one.total >= ms * MS:
                caller = Caller(client_id, host, "")
                yield Finding(
                    "warning", f"{caller.label} does not read the answers that it asked for: its TCP window was full "
                    f"{counted(one.count, 'time')}, for {lasted(one.total)} or longer, and the broker could not send",
                    tuple(one.samples), "The client's process has no time, or stands still: look at its CPU, its "
                    "garbage collection and at what its network thread does; on slow ways, socket.receive.buffer.bytes "
                    "(receive.buffer.bytes).", time=one.first, last=one.last, count=one.count, about=caller.about,
                    otherwise="what the client reads from was stopped by intent",
                )  # fmt: skip
