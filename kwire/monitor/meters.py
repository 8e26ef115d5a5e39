"""What is counted of live traffic, by API, client id and broker, as Prometheus wants it: only ever growing.

Label values come from the wire: of each label the first so many are kept, and of their combinations; all others count
as "other". Times go into histograms of fixed buckets; what a broker keeps by its rules (a Fetch until there is enough,
a JoinGroup until the others are there) has a histogram of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kwire.analyze.doctor import Doctor
from kwire.analyze.throttling import throttles
from kwire.analyze.work import HELD
from kwire.schema import keys
from kwire.session.record import error_name
from kwire.wire.columns import Ints, tally
from kwire.wire.visible import clean

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange

OTHER = "other"
LONGEST = 200  # characters of a label's value
MOST_TOGETHER = 5_000  # clients with a broker and an API
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
WINDOW = 60_000_000_000  # ns of traffic that the doctor looks at together
Labels = tuple[str, str, str]  # api, client id, broker


class Values:
    """The values of a label: of(text) is what it is counted under."""

    def __init__(self, most: int) -> None:
        self._most, self._known = most, set[str]()

    def of(self, text: str) -> str:
        text = clean(text)[:LONGEST]
        if text not in self._known and len(self._known) < self._most:
            self._known.add(text)
        return text if text in self._known else OTHER


class Histogram:
    """counts: how many in each bucket of BOUNDS and beyond, not summed up; total: seconds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: NDArray[np.float64]) -> None:
        """Times, of one batch."""
        found = tally(np.searchsorted(BOUNDS, seconds), size=len(self.counts))
        self.counts = [one + other for one, other in zip(self.counts, found.tolist(), strict=True)]
        self.total += float(seconds.sum())


class Meters:
    """add(batch) counts; close(connection) tells of one that is over. most: values of each label.

    exchanges, sent, got (bytes), unanswered, throttled, throttle (seconds): by labels; errors: by labels and name;
    latency, held: histograms by labels; rebalances: by group; findings: by detector, severity and client id.
    """

    def __init__(self, most: int = 100, diagnosed: bool = True) -> None:
        self.apis, self.client_ids, self.brokers, self.groups = (Values(most) for _ in range(4))
        self._together = set[Labels]()
        self.exchanges: Counter[Labels] = Counter()
        self.sent: Counter[Labels] = Counter()
        self.got: Counter[Labels] = Counter()
        self.unanswered: Counter[Labels] = Counter()
        self.throttled: Counter[Labels] = Counter()
        self.throttle: dict[Labels, float] = {}
        self.errors: Counter[tuple[str, str, str, str]] = Counter()
        self.latency: dict[Labels, Histogram] = {}
        self.held: dict[Labels, Histogram] = {}
        self.rebalances: Counter[str] = Counter()
        self.findings: Counter[tuple[str, str, str]] = Counter()
        self.connections = 0
        self._generations: dict[str, int] = {}
        self._doctor = Doctor() if diagnosed else None
        self._until: int | None = None

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        if not len(batch):
            return
        names, client = batch.client_ids()
        kinds, brokers = len(batch.kinds), len(batch.connections)
        groups, which = np.unique((client * kinds + batch.kind) * brokers + batch.connection, return_inverse=True)
        labels = [self._labels(batch, names, int(group)) for group in groups.tolist()]
        for number, (api, held, name, broker) in enumerate(labels):
            self._count(batch, np.flatnonzero(which == number), (api, name, broker), held)
        for row in batch.failed:
            if batch.first_error[row]:
                code = error_name(int(batch.first_error[row])) or "unknown"
                api, _, name, broker = labels[int(which[row])]
                self.errors[api, name, broker, code] += 1
        for found in throttles(batch):
            api, _, name, broker = labels[int(which[found.row])]
            self.throttled[api, name, broker] += 1
            self.throttle[api, name, broker] = self.throttle.get((api, name, broker), 0.0) + found.ms / 1000
        for row in np.flatnonzero(self._rebalancing(batch)[batch.kind]).tolist():
            self._rebalance(batch[row])
        self._diagnose(batch)

    def _labels(self, batch: ExchangeBatch, names: list[str | None], group: int) -> tuple[str, bool, str, str]:
        rest, connection = divmod(group, len(batch.connections))
        client, number = divmod(rest, len(batch.kinds))
        kind = batch.kinds[number]
        api, broker = kind.api if kind else "unknown", batch.connections[connection].ends[1]
        held = kind is not None and kind.key in HELD
        found = self.apis.of(api), self.client_ids.of(names[client] or ""), self.brokers.of(broker)
        if found not in self._together:
            if len(self._together) < MOST_TOGETHER:
                self._together.add(found)
            else:
                found = found[0], OTHER, OTHER
        return found[0], held, *found[1:]

    def _count(self, batch: ExchangeBatch, rows: Ints, labels: Labels, held: bool) -> None:
        asked, answered = batch.request.there[rows], batch.response.there[rows]
        self.exchanges[labels] += len(rows)
        self.sent[labels] += int((batch.request.size[rows] + 4)[asked].sum())
        self.got[labels] += int((batch.response.size[rows] + 4)[answered].sum())
        self.unanswered[labels] += int((~answered & ~batch.silent[rows]).sum())
        times = batch.latency[rows][asked & answered]
        if len(times):
            into = self.held if held else self.latency
            into.setdefault(labels, Histogram()).add(np.maximum(times, 0) / 1e9)

    @staticmethod
    def _rebalancing(batch: ExchangeBatch) -> NDArray[np.bool_]:
        wanted = (keys.JOIN_GROUP, keys.CONSUMER_GROUP_HEARTBEAT)
        return np.array([kind is not None and kind.key in wanted for kind in batch.kinds], bool)

    def _rebalance(self, exchange: Exchange) -> None:
        """A group's generation, or its members' epoch, that is higher than any before is a rebalance."""
        if exchange.error is not None or not exchange.about.groups:
            return
        answer = exchange.answer() or {}
        generation = answer.get("GenerationId", answer.get("MemberEpoch", 0))
        group = self.groups.of(exchange.about.groups[0])
        if group != OTHER and generation > self._generations.get(group, 0):
            self._generations[group] = generation
            self.rebalances[group] += 1

    def _diagnose(self, batch: ExchangeBatch) -> None:
        if self._doctor is None:
            return
        latest = int(batch.time.max())
        if self._until is None:
            self._until = latest + WINDOW
        self._doctor.add(batch.in_order())
        if latest > self._until:
            self.finish()
            self._until = latest + WINDOW

    def finish(self) -> None:
        """A window of the doctor is over, or all is."""
        if self._doctor is None or self._until is None:
            return
        for one in self._doctor.diagnose().findings:
            name = self.client_ids.of(str(one.about.get("client_id", "")))
            self.findings[one.detector, one.severity, name] += one.count
        self._doctor, self._until = Doctor(), None

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over."""
        self.connections += 1
        if self._doctor is not None and self._until is not None:
            self._doctor.close(connection)


def cumulated(counts: Iterable[int]) -> Iterator[int]:
    """As Prometheus has buckets: each with all below it."""
    total = 0
    for count in counts:
        total += count
        yield total
