"""Clients that are far from their broker: most of what they wait is the network's round trip.

Sees the handshake of connections (SYN to SYN/ACK, which is the round trip where the capture is near the client), how
soon at least a client goes on after ApiVersions (which is the round trip where the capture is near the broker), and,
beside it, how long answers to short requests take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import Caller, callers, grouped
from kwire.analyze.connect_attempts import opening_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.analyze.measures import Latencies, buckets_of
from kwire.analyze.work import WAITS
from kwire.counted import counted
from kwire.schema.keys import API_VERSIONS

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo
    from kwire.wire.columns import Ints

MOST = 10_000
MOST_CONNECTIONS = 100_000
MS = 1_000_000


@dataclass(slots=True)
class Path:
    """From one host to one broker: round trips as handshakes show them, ns; reaction: the shortest time from an answer
    to the next request, of so many reactions one after the other, up to reacted; took: answers to short requests."""

    caller: Caller | None = None
    trips: list[int] = field(default_factory=list)
    reaction: int = 1 << 62
    reactions: int = 0
    reacted: int = 0
    first: int = 0
    last: int = 0
    proofs: list[Reference] = field(default_factory=list)
    took: Latencies = field(default_factory=Latencies)


class SlowNetwork(Watch):
    """paths: by host and broker; shaken: handshakes."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.paths: dict[tuple[str, str], Path] = {}
        self.shaken: list[tuple[tuple[str, str], int, int, Reference]] = []

    def _of(self, host: str, broker: str) -> Path | None:
        key = host, broker
        if key not in self.paths and len(self.paths) >= MOST:
            return None
        return self.paths.setdefault(key, Path())

    def batch(self, batch: ExchangeBatch) -> None:
        times = self.case.works.of(batch)
        self._react(batch, times.rows)
        waits = np.array([kind is None or kind.key in WAITS for kind in batch.kinds], bool)
        fine = np.flatnonzero(~times.held & ~waits[batch.kind[times.rows]])
        people, which = callers(batch)
        for who, places in grouped(which[times.rows[fine]]):
            caller = people[who]
            path = self._of(caller.host, caller.broker)
            if path is None:
                continue
            path.caller = path.caller or caller
            mine = times.work[fine[places]]
            buckets, counts = np.unique(buckets_of(mine), return_counts=True)
            path.took.add(dict(zip(buckets.tolist(), counts.tolist(), strict=True)), int(mine.min()), int(mine.max()))
            path.last = max(path.last, int(batch.request.time[times.rows[fine[places]]].max()))

    def _react(self, batch: ExchangeBatch, rows: Ints) -> None:
        """How soon clients go on after ApiVersions, which all do at once if they do it at all."""
        order = rows[np.lexsort((batch.request.time[rows], batch.connection[rows]))]
        starts, ends = batch.request.time[order[1:]], batch.response.last_time[order[:-1]]
        gaps = starts - ends
        greeting = np.array([kind is not None and kind.key == API_VERSIONS for kind in batch.kinds], bool)
        same = (batch.connection[order[1:]] == batch.connection[order[:-1]]) & greeting[batch.kind[order[:-1]]]
        same = np.flatnonzero(same & (gaps >= 0))
        people, which = callers(batch)
        for who, places in grouped(which[order[1:][same]]):
            path = self._of(people[who].host, people[who].broker)
            if path is not None:
                mine = same[places]
                path.reaction = min(path.reaction, int(gaps[mine].min()))
                for answered, asked in sorted(zip(ends[mine].tolist(), starts[mine].tolist(), strict=True)):
                    if answered >= path.reacted:  # those that overlap are one: the program may be busy
                        path.reactions, path.reacted = path.reactions + 1, asked

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        times = connection.tcp.opened_at
        if not coverage.opened or len(times) != 2 or len(self.shaken) >= MOST_CONNECTIONS:
            return
        host, broker = connection.host, connection.ends[1]
        self.shaken.append(((host, broker), times[0], times[1], opening_of(connection)))

    def findings(self) -> Iterator[Finding]:
        for ends, syn, answer, proof in self.shaken:
            path = self._of(*ends)
            if path is None or path.caller is None:
                continue
            beyond = path.reaction if path.reactions >= self.limit("reactions") else 0
            path.trips.append(max(answer - syn, 0) + beyond)
            path.first = min(path.first or syn, syn)
            if len(path.proofs) < 3:
                path.proofs.append(proof)
        for (host, broker), path in self.paths.items():
            if len(path.trips) == 1 and path.reactions >= self.limit("reactions"):
                continue  # one handshake, which the capture saw near the broker: a slow client looks the same
            if path.trips and path.caller is not None and min(path.trips) >= self.limit("ms") * MS:
                found = self._finding(path, path.caller, host, broker)
                if found is not None:
                    yield found

    def _finding(self, path: Path, caller: Caller, host: str, broker: str) -> Finding | None:
        trip, usual = min(path.trips), path.took.percentile(0.5)
        if usual is None or usual < self.limit("share") * trip:
            usual = (usual or 0) + trip  # the capture is near the broker: what the client waits is more than is seen
        share = min(trip / usual, 1.0)
        if share < self.limit("share"):
            return None
        what = f"{caller.label} at {host} is {lasted(trip)} away from broker {broker} (round trip, the shortest of "
        what += f"{counted(len(path.trips), 'handshake')}): {share:.0%} of what it waits for an answer "
        what += f"({lasted(usual)}, the median) is the network's"
        advice = (
            "Move the client nearer, or let it wait for fewer answers: larger batches, several requests in flight, no "
        )
        advice += "synchronous send for each record."
        return Finding(
            "warning", what, tuple(path.proofs), advice, time=path.first, last=max(path.last, path.first),
            count=len(path.trips), about=caller.about | {"broker": broker},
            otherwise="the client waits by itself before each request",
        )  # fmt: skip


DETECTOR = Detector(
    "clients that are far from their broker",
    watch=SlowNetwork,
    fields="times of SYN and SYN/ACK; of requests and answers",
    source="TCP's handshake takes one round trip (RFC 9293)",
    means="Each request takes at least a round trip, whatever the broker does.",
    proof="Handshakes of several connections, the shortest of which is long; answers that take no longer than that.",
    advice="Fewer round trips: batches, pipelining; or a cluster nearby.",
    thresholds={"ms": 50, "share": 0.5, "reactions": 5},
    batches=True,
    connections=True,
    needs=("requests", "answers"),
)
