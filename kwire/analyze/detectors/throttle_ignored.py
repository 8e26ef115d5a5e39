"""Clients that go on asking while they are throttled: they do not know KIP-219.

Sees requests on a connection within the ThrottleTimeMs of an answer there, of a version at which the client is to wait
by itself (AbstractResponse.shouldClientThrottle). What was under way when the answer came does not count: on a
connection where requests overlap, all that comes within a long round trip after it; where each request waits for the
answer before it, as all that were seen did, nothing is under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import host_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, about
from kwire.analyze.tally import Tallies
from kwire.analyze.throttling import throttles
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo

MILLISECOND = 1_000_000
MOST = 10_000  # connections
MOST_WINDOWS = 32  # of a connection
ENOUGH = 5  # requests of a connection that show that it sends one at a time


@dataclass(slots=True)
class Line:
    """A connection that is throttled. windows: from when until when it should be silent, ns."""

    windows: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=MOST_WINDOWS))


ADVICE = (
    "The versions that the client",
    "speaks leave it to wait (KIP-219), and it does not: the broker reads its requests only when the throttle time is "
    "over, and they may time out meanwhile. See whether a newer release waits; else send less, or raise the quota.",
)


class IgnoredThrottles(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.lines: dict[tuple[str, str], Line] = {}  # by capture and connection
        self.tallies: Tallies[tuple[str, str]] = Tallies()

    def batch(self, batch: ExchangeBatch) -> None:
        waits = {one.row: one.ms for one in throttles(batch) if one.waits}
        times = self.case.works.of(batch)
        if not waits and not self.lines:
            return
        throttled = {int(batch.connection[row]) for row in waits}
        touched = [at in throttled or _key(known) in self.lines for at, known in enumerate(batch.connections)]
        rows = np.array(touched, bool)[batch.connection]
        chosen = np.flatnonzero(rows & batch.request.there)
        alone = np.zeros(len(batch), bool)  # each request so far, as many as that shows, waited for the answer before
        alone[times.rows] = ~times.overlaps & (times.count >= ENOUGH)
        for row in chosen[np.argsort(batch.request.time[chosen], kind="stable")].tolist():
            self._asked(batch, row, waits.get(row, 0), bool(alone[row]))
        if len(self.lines) >= MOST:
            now = int(batch.time.max())
            self.lines = {key: line for key, line in self.lines.items() if any(end > now for _, end in line.windows)}

    def _asked(self, batch: ExchangeBatch, row: int, ms: int, alone: bool) -> None:
        connection = batch.connections[batch.connection[row]]
        time = int(batch.request.time[row])
        line = self.lines.get(_key(connection))
        if line is None:
            if len(self.lines) >= MOST:
                return
            line = self.lines[_key(connection)] = Line()
        under_way = 0 if alone else int(self.limit("under_way_ms") * MILLISECOND)
        ends = [
            until for since, until in line.windows if since + under_way < time < until - (until - since) // 10
        ]  # fmt: skip
        if ends:
            client = batch.client_id(row) or ""
            request = batch[row].request
            assert request is not None
            early = (max(ends) - time) // MILLISECOND
            self.tallies.add((client, host_of(connection)), Reference.of(request), time, early)
        if ms:
            answered = int(batch.response.time[row])
            line.windows.append((answered, answered + ms * MILLISECOND))

    def findings(self) -> Iterator[Finding]:
        for (client, host), tally in self.tallies.known.items():
            if tally.count < self.limit("least"):
                continue
            who = client or f"a client at {host}"
            what = f"{who} sent {counted(tally.count, 'request')} while throttled, up to {tally.most:,} ms too early"
            known = self.case.participants.known.get((client, host))
            software = f" ({known.software})" if known and known.software else ""
            yield Finding(
                "warning", what, tuple(tally.samples), f"{ADVICE[0]}{software} {ADVICE[1]}",
                time=tally.first, last=tally.last, count=tally.count,
                about=about(client_id=client, address=host),
                otherwise="these were under way when the answer came, over a network slower than under_way_ms",
            )  # fmt: skip


def _key(connection: ConnectionInfo) -> tuple[str, str]:
    return connection.capture, connection.name


DETECTOR = Detector(
    "clients that do not wait while they are throttled",
    watch=IgnoredThrottles,
    fields="ThrottleTimeMs, and the times of the next requests on the connection",
    source="KIP-219; org.apache.kafka.common.requests.AbstractResponse.shouldClientThrottle",
    means="The client sends on while the broker has muted it: requests wait in the broker and time out.",
    proof="Requests on one connection, within the throttle time of an answer there.",
    advice="See whether a newer client waits. Its requests are read only when the throttle time is over, and may time "
    "out meanwhile: send less, or raise the quota.",
    thresholds={"least": 1, "under_way_ms": 200},
    batches=True,
)
