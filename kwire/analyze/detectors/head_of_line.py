"""Requests that wait for an answer to another one on the same connection.

Sees, of each connection, a request that was sent while an earlier one was being held (a long poll of Fetch) or worked
on, and whose answer came right after that one's: brokers answer a connection's requests in order, one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, answer_of, callers, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, lasted
from kwire.analyze.tally import Tallies
from kwire.analyze.work import HELD, REBALANCE
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch

MS = 1_000_000


class HeadOfLine(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        # ns, by caller, API, the API that it waited for, and whether that one is held by intent
        self.waits: Tallies[tuple[Caller, str, str, bool]] = Tallies()
        self.asked: Counter[tuple[str, str]] = Counter()

    def batch(self, batch: ExchangeBatch) -> None:
        times = self.case.works.of(batch)
        late = np.flatnonzero((times.behind >= self.limit("ms") * MS) & ~times.held)
        if not len(late):
            return
        people, which = callers(batch)
        for place in late.tolist():
            row, before = int(times.rows[place]), times.blocker(place)
            kind = batch.kinds[int(batch.kind[row])]
            if kind is None or before.key < 0 or before.key in REBALANCE or kind.key == before.key:
                continue
            waits = self.waits.of((people[int(which[row])], kind.api, before.api, before.key in HELD))
            if waits is None:
                continue
            waits.add(None, int(batch.request.time[row]), int(times.behind[place]))
            if len(waits.samples) < 6:
                waits.samples += [request_of(batch, row), before.answer(batch, row), answer_of(batch, row)]

    def findings(self) -> Iterator[Finding]:
        cluster = self.case.cluster
        for (caller, api, blocker, held), waits in self.waits.known.items():
            if waits.count < self.limit("least"):
                continue
            what = f"{counted(waits.count, 'time')} {api} of {caller.label} waited behind a "
            what += f"{blocker} on the same connection to {caller.broker}, up to {lasted(waits.most)}"
            what += ": the broker itself was not slow" if held else ""
            cure = "fetch.max.wait.ms (fetch.wait.max.ms)" if held else "the work in one request"
            advice = f"Lower {cure}, or ask over a connection (a client) of its own."
            severity = "warning" if held else "note"  # work that takes long is told by what makes it so
            yield Finding(
                severity, what, tuple(waits.samples), advice, time=waits.first, last=waits.last, count=waits.count,
                about=caller.about | {"broker": caller.broker, "api": api},
                otherwise="the answer was ready before the one in front of it",
                brokers=frozenset() if blocker != "Produce" else cluster.followers_of(caller.broker, waits.first),
            )  # fmt: skip


DETECTOR = Detector(
    "requests that wait behind others on their connection",
    watch=HeadOfLine,
    fields="times of requests and answers on one connection, in order",
    source="kafka.network.SocketServer: one request of a connection at a time, answers in order",
    means="The request's latency is that of the one before it; it was worked on only when that was answered.",
    proof="The request, the answer of the one before, and its own answer right behind that.",
    advice="Shorter long polls, or a connection of its own.",
    thresholds={"ms": 1000, "least": 2},
    batches=True,
)
