"""Brokers that are slower than their peers at the same work.

Sees, for each API and client host, how long each broker works on requests: without what a request waits behind others
on its connection, without long polls and joins (see analyze/work.py), and less the shortest time that this broker took
for anything of that host, which holds the network's round trip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from kwire.analyze.callers import answer_of, callers
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, lasted
from kwire.analyze.measures import Latencies, buckets_of
from kwire.analyze.work import WAITS
from kwire.counted import counted

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.batch import ExchangeBatch

MOST = 20_000
MS = 1_000_000
QUANTILES = ((1000, 0.99), (200, 0.9), (0, 0.5))  # from how many exchanges on which one is believed


@dataclass(slots=True)
class Load:
    """One broker's work on one API for one host."""

    took: Latencies = field(default_factory=Latencies)
    first: int = 0
    last: int = 0
    slowest: tuple[int, Reference] | None = None


class SlowBroker(Watch):
    """loads: by API, host and broker; least: the shortest work by host and broker."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.loads: dict[tuple[str, str], dict[str, Load]] = {}
        self.least: dict[tuple[str, str], int] = {}

    def batch(self, batch: ExchangeBatch) -> None:
        times = self.case.works.of(batch)
        waits = np.array([kind is None or kind.key in WAITS for kind in batch.kinds], bool)
        fine = np.flatnonzero(~times.held & ~waits[batch.kind[times.rows]] & (batch.errors[times.rows] == 0))
        if not len(fine):
            return
        rows, work = times.rows[fine], times.work[fine]
        people, which = callers(batch)
        keys, asked = which[rows] * len(batch.kinds) + batch.kind[rows], batch.request.time[rows]
        order = np.lexsort((work, keys))  # of each caller and kind, its shortest work first
        keys, rows, work, asked = keys[order], rows[order], work[order], asked[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        ends = np.append(begins[1:], len(keys))
        buckets = buckets_of(work)
        columns = (keys[begins], np.minimum.reduceat(asked, begins), np.maximum.reduceat(asked, begins),
                   work[begins], work[ends - 1], rows[ends - 1], begins, ends)  # fmt: skip
        for key, first, last, shortest, longest, slowest, begin, end in zip(
            *(c.tolist() for c in columns), strict=True
        ):
            who, kind_at = divmod(key, len(batch.kinds))
            caller, kind = people[who], batch.kinds[kind_at]
            if kind is None or len(self.loads) >= MOST:
                continue
            load = self.loads.setdefault((kind.api, caller.host), {}).setdefault(caller.broker, Load())
            load.took.add(Counter(buckets[begin:end].tolist()), shortest, longest)
            load.first = min(load.first or first, first)
            load.last = max(load.last, last)
            pair = caller.host, caller.broker
            self.least[pair] = min(self.least.get(pair, shortest), shortest)
            if load.slowest is None or longest > load.slowest[0]:
                load.slowest = longest, answer_of(batch, slowest)

    def findings(self) -> Iterator[Finding]:
        worst: dict[str, tuple[float, Finding]] = {}  # by broker: an API is enough to name it
        for (api, host), loads in self.loads.items():
            known = {broker: load for broker, load in loads.items() if load.took.count >= self.limit("least")}
            for broker, load in known.items():
                peers = [other for name, other in known.items() if name != broker]
                if not peers:
                    continue
                count = min(load.took.count, *(peer.took.count for peer in peers))
                share = next(share for enough, share in QUANTILES if count >= enough)
                own = self._time(host, broker, load, share)
                usual = median(self._time(host, name, peer, share) for name, peer in known.items() if name != broker)
                if own < self.limit("ms") * MS or own < self.limit("times") * max(usual, 1):
                    continue
                found = self._finding(api, broker, load, share, own, int(usual), len(peers))
                if broker not in worst or own > worst[broker][0]:
                    worst[broker] = own, found
        yield from (found for _, found in worst.values())

    def _time(self, host: str, broker: str, load: Load, share: float) -> int:
        return max((load.took.percentile(share) or 0) - self.least.get((host, broker), 0), 0)

    def _finding(self, api: str, broker: str, load: Load, share: float, own: int, usual: int, peers: int) -> Finding:
        what = f"broker {broker} takes {lasted(own)} for {api} (p{share * 100:.0f} of {load.took.count:,}), the other "
        what += f"{counted(peers, 'broker')} {lasted(usual)}"
        advice = "Look at that host: disk, CPU, garbage collection, a neighbour; and at whether it leads more "
        advice += "partitions than the others."
        about: dict[str, str | int] = {"address": broker, "api": api}
        node = self.case.cluster.node_at(broker)
        about["broker"] = broker if node is None else node
        proofs = (load.slowest[1],) if load.slowest else ()
        return Finding("warning", what, proofs, advice, time=load.first, last=load.last, about=about,
                       count=load.took.count, otherwise="it gets larger requests than the others")  # fmt: skip


DETECTOR = Detector(
    "brokers that are slower than their peers",
    watch=SlowBroker,
    fields="times of requests and answers, by API and broker",
    source="as Cruise Control's SlowBrokerFinder: one broker against the others",
    means="The same requests take several times longer there: what differs is that broker, or its host.",
    proof="Percentiles of its work beside those of the others; the slowest answer.",
    advice="Look at that broker's host.",
    thresholds={"times": 3, "ms": 10, "least": 20},
    batches=True,
)
