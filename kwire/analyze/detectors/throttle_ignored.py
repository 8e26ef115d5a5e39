"""Clients that go on asking while they are throttled: they do not know KIP-219.

Sees requests on a connection within the ThrottleTimeMs of an answer there, of a version at which the client is to wait
by itself (AbstractResponse.shouldClientThrottle). What was under way when the answer came does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, about
from kwire.analyze.tally import Tallies
from kwire.analyze.throttling import throttles
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch

MILLISECOND = 1_000_000
SLACK = 20 * MILLISECOND  # ns that an answer may take to reach the client
MOST = 10_000  # connections


class Ignored(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.until: dict[int, tuple[int, int]] = {}  # by connection: from when until when it should be silent
        self.tallies: Tallies[tuple[str, str]] = Tallies()

    def batch(self, batch: ExchangeBatch) -> None:
        found = [one for one in throttles(batch) if one.waits]
        if not found and not self.until:
            return
        waits = {one.row: one.ms for one in found}
        touched = {id(batch.connections[at]) for at in {int(batch.connection[row]) for row in waits}} | set(self.until)
        rows = np.array([id(known) in touched for known in batch.connections], bool)[batch.connection]
        for row in np.flatnonzero(rows & batch.request.there).tolist():
            self._asked(batch, row, waits.get(row, 0))
        latest = int(batch.time.max())
        self.until = {known: one for known, one in self.until.items() if one[1] > latest}

    def _asked(self, batch: ExchangeBatch, row: int, ms: int) -> None:
        connection = batch.connections[batch.connection[row]]
        time = int(batch.request.time[row])
        since, until = self.until.get(id(connection), (0, 0))
        if since + SLACK < time < until - max((until - since) // 10, SLACK):
            client = batch.client_id(row) or ""
            host = connection.ends[0].rpartition(":")[0].strip("[]")
            request = batch[row].request
            assert request is not None
            self.tallies.add((client, host), Reference.of(request), time, (until - time) // MILLISECOND)
        if ms and len(self.until) < MOST:
            answered = int(batch.response.time[row])
            self.until[id(connection)] = answered, answered + ms * MILLISECOND

    def findings(self) -> Iterator[Finding]:
        for (client, host), tally in self.tallies.known.items():
            if tally.count < self.limit("least"):
                continue
            who = client or f"a client at {host}"
            what = f"{who} sent {counted(tally.count, 'request')} while throttled, up to {tally.most:,} ms too early"
            known = self.case.participants.known.get((client, host))
            software = f" ({known.software})" if known and known.software else ""
            yield Finding(
                "warning", what, tuple(tally.samples), f"The client{software} knows no KIP-219: upgrade it.",
                time=tally.first, last=tally.last, count=tally.count,
                about=about(client_id=client, address=host),
                otherwise="an answer took longer than 20 ms to reach the client",
            )  # fmt: skip


DETECTOR = Detector(
    "clients that do not wait while they are throttled",
    watch=Ignored,
    fields="ThrottleTimeMs, and the times of the next requests on the connection",
    source="KIP-219; org.apache.kafka.common.requests.AbstractResponse.shouldClientThrottle",
    means="The client sends on while the broker has muted it: requests wait in the broker and time out.",
    proof="Requests on one connection, within the throttle time of an answer there.",
    advice="Upgrade the client: its requests are read only when the throttle time is over.",
    thresholds={"least": 1},
    batches=True,
)
