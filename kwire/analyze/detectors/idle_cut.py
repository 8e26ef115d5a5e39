"""Connections that something between client and broker cut while they were silent.

Sees a connection that was silent for minutes, and then a request on it that gets no answer, is sent again and again, or
is answered by a reset. Load balancers and NAT gateways forget idle connections (AWS NLB after 350 s, Azure after 240 s)
without a word; brokers themselves close them with a FIN after connections.max.idle.ms, which clients survive at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, callers, request_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo
    from kwire.wire.columns import Ints

MOST = 100_000
SECOND = 1_000_000_000
LONG = 5 * SECOND  # that an answer has to be missing


@dataclass(slots=True)
class Lost:
    """A request behind a silence, ns, that got no answer."""

    caller: Caller
    silence: int
    time: int
    proof: Reference


class IdleCut(Watch):
    """last: when a connection last said anything; lost: by connection; ends: whether
    one was reset, and its last packet's time, of those of which nothing is missing."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.last: dict[tuple[str, str], int] = {}
        self.lost: dict[tuple[str, str], Lost] = {}
        self.ends: dict[tuple[str, str], tuple[bool, int]] = {}

    def batch(self, batch: ExchangeBatch) -> None:
        request, response = batch.request, batch.response
        ends = np.maximum(
            np.where(request.there, request.last_time, 0), np.where(response.there, response.last_time, 0)
        )
        unanswered = request.there & ~response.there & ~batch.silent
        order = np.argsort(batch.connection, kind="stable")
        begins = np.flatnonzero(np.diff(batch.connection[order], prepend=-1))
        latest, open_ = np.maximum.reduceat(ends[order], begins), np.logical_or.reduceat(unanswered[order], begins)
        bounds = zip(begins.tolist(), [*begins[1:].tolist(), len(order)], strict=True)
        for (begin, end), last, lacks in zip(bounds, latest.tolist(), open_.tolist(), strict=True):
            connection = batch.connections[batch.connection[order[begin]]]
            key = connection.capture, connection.name
            before = self.last.get(key, 0)
            if lacks and key not in self.lost:
                rows = order[begin:end]
                rows = rows[np.argsort(batch.time[rows], kind="stable")]
                heard = np.maximum.accumulate(np.concatenate(([before], ends[rows])))[:-1]
                self._look(batch, key, rows[unanswered[rows]], heard[unanswered[rows]])
            if before or len(self.last) < MOST:
                self.last[key] = max(last, before)

    def _look(self, batch: ExchangeBatch, key: tuple[str, str], rows: Ints, heard: Ints) -> None:
        """Requests of a connection without an answer. heard: when it last said anything before each, 0: never."""
        silence = batch.request.time[rows] - heard
        late = np.flatnonzero((heard > 0) & (silence > self.limit("seconds") * SECOND))
        if len(late):
            row = int(rows[late[0]])
            people, which = callers(batch)
            self.lost[key] = Lost(
                people[int(which[row])], int(silence[late[0]]), int(batch.request.time[row]), request_of(batch, row)
            )

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        key = connection.capture, connection.name
        if len(self.ends) < MOST and coverage.whole:
            self.ends[key] = connection.tcp.reset, connection.tcp.last_time

    def findings(self) -> Iterator[Finding]:
        cut = [(lost, *self.ends[key]) for key, lost in self.lost.items() if key in self.ends]
        groups: dict[tuple[tuple[str, str], str], list[tuple[Lost, bool, int]]] = {}
        for lost, reset, until in cut:
            if reset or max(until, self.case.end) - lost.time > LONG:
                groups.setdefault((lost.caller.client, lost.caller.broker), []).append((lost, reset, until))
        for (_, broker), cuts in groups.items():
            first = min(cuts, key=lambda cut: cut[0].time)[0]
            shortest = min(lost.silence for lost, _, _ in cuts)
            resets = sum(reset for _, reset, _ in cuts)
            what = (
                f"{counted(len(cuts), 'connection')} of {first.caller.label} to {broker} did not survive a silence of "
            )
            what += f"{lasted(shortest)}: the next request got "
            what += "a reset" if resets == len(cuts) else "no answer" if not resets else "no answer, or a reset"
            advice = "Something between forgets idle connections (a load balancer, NAT, firewall): set "
            advice += f"connections.max.idle.ms of the client below {lasted(shortest)}, or TCP keepalive "
            advice += "(socket.keepalive.enable)."
            yield Finding(
                "warning", what, tuple(lost.proof for lost, _, _ in cuts[:4]), advice, time=first.time,
                last=max(until for _, _, until in cuts), count=len(cuts), about=first.caller.about | {"broker": broker},
                otherwise="the broker's host was gone at that moment", brokers=self.case.cluster.names_of(broker),
            )  # fmt: skip


DETECTOR = Detector(
    "connections that are cut while they are idle",
    watch=IdleCut,
    fields="times of a connection's messages; requests without an answer; RST",
    source="connections.max.idle.ms=600000 (broker), 540000 (clients); idle timeouts of load balancers",
    means="The connection was dead when the client used it again, and it learns so only by a timeout or a reset.",
    proof="The request behind the silence, without an answer.",
    advice="Close idle connections before the load balancer does, or keep them alive.",
    thresholds={"seconds": 230},
    batches=True,
    connections=True,
    needs=("requests", "answers", "clock"),
)
