"""A capture in numbers: counts, bytes, errors and latencies by API, client, broker and topic; connections.

Latencies go into a histogram whose buckets are 4% wide, so that any number of them takes the same room and percentiles
are right to two digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.analyze.tls import row_of, session_of
from kwire.session.record import error_name
from kwire.session.select import WRONG

if TYPE_CHECKING:
    from kwire.session.conversation import Conversation
    from kwire.session.exchange import Exchange

STEP = math.log(1.04)
MOST_NAMES = 10_000  # clients, topics, …; the rest is counted together
OTHERS = "(others)"
BUCKETS = 4096  # of the timeline; when they do not suffice, each becomes twice as long
CUT = ("truncated", "gap")  # an answer of which a part is missing
WAITS = {"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"}  # the broker holds these until there is something to say


class Latencies:
    """ns; negative ones count as none at all."""

    __slots__ = ("buckets", "count", "highest", "lowest")

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0
        self.lowest = self.highest = 0

    def add(self, latency: int) -> None:
        if not self.count or latency < self.lowest:
            self.lowest = latency
        self.buckets[int(math.log(latency) / STEP) if latency > 0 else 0] += 1
        self.count += 1
        if latency > self.highest:
            self.highest = latency

    def percentile(self, share: float) -> int | None:
        """The latency below which that share (0 to 1) lies, to 2%; None without any."""
        if not self.count:
            return None
        wanted, seen = share * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= wanted:
                return max(min(round(math.exp((bucket + 0.5) * STEP)), self.highest), self.lowest)
        return self.highest


class Timeline:
    """Counts over time, in buckets of equal length, ns."""

    __slots__ = ("counts", "length")

    def __init__(self) -> None:
        self.length = 100_000_000
        self.counts: Counter[int] = Counter()

    def add(self, time: int) -> None:
        self.counts[time // self.length] += 1
        if len(self.counts) > BUCKETS:
            self.length *= 2
            doubled: Counter[int] = Counter()
            for bucket, count in self.counts.items():
                doubled[bucket // 2] += count
            self.counts = doubled

    def over(self, start: int, end: int, parts: int) -> list[int]:
        """The counts in so many equal parts of the time from start to end."""
        out = [0] * parts
        span = max(end - start, 1)
        for bucket, count in self.counts.items():
            at = (bucket * self.length + self.length // 2 - start) * parts // span
            out[min(max(at, 0), parts - 1)] += count
        return out


@dataclass(slots=True)
class Measure:
    """Of some exchanges: how many, how many bytes in requests and responses (frames, size prefix included), which
    errors how often, how many without an answer, of how many the capture cut off what it said, and how long the answers
    took."""

    count: int = 0
    sent: int = 0
    got: int = 0
    unanswered: int = 0
    unseen: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    latencies: Latencies = field(default_factory=Latencies)
    timeline: Timeline = field(default_factory=Timeline)

    def add(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        self.count += 1
        self.timeline.add(exchange.time)
        if request is not None:
            self.sent += request.size + 4
        if response is None:
            self.unanswered += not exchange.silent
            return
        self.got += response.size + 4
        if response.errors:
            self.errors[response.errors[0]] += 1
        elif response.quality in CUT:
            self.unseen += 1
        if request is not None:
            self.latencies.add(response.time - request.last_time)

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        times = {f"p{share}_ns": self.latencies.percentile(share / 100) for share in (50, 90, 99)}
        errors = {error_name(code): count for code, count in self.errors.most_common()}
        return {
            "count": self.count, "sent_bytes": self.sent, "got_bytes": self.got, "unanswered": self.unanswered,
            "outcome_not_captured": self.unseen,
            "errors": errors, **times, "max_ns": self.latencies.highest if self.latencies.count else None,
        }  # fmt: skip


@dataclass(slots=True)
class ConnectionRow:
    """A connection: its name, what it is, and how well it could be read."""

    name: str
    first_time: int
    last_time: int
    exchanges: int
    what: str
    missing: int
    repeated: int
    skipped: int
    ending: str
    qualities: dict[str, int]
    tls: dict[str, Any] | None = None


class Stats:
    """add(exchange) and close(conversation) collect; the rest is read."""

    def __init__(self) -> None:
        self.total = Measure()
        self.apis: dict[str, Measure] = {}
        self.clients: dict[str, Measure] = {}
        self.brokers: dict[str, Measure] = {}
        self.topics: dict[str, Measure] = {}
        self.connections: list[ConnectionRow] = []
        self.qualities: dict[int, Counter[str]] = {}
        self.oddities: Counter[tuple[str, str]] = Counter()  # how often messages of a name were of a quality
        self.first_time: int | None = None
        self.last_time = 0

    def add(self, exchange: Exchange) -> None:
        """An exchange."""
        time = exchange.time
        self.first_time = time if self.first_time is None else min(self.first_time, time)
        self.last_time = max(self.last_time, (exchange.response or exchange.first).last_time)
        version = exchange.api_version
        api = exchange.api if version is None else f"{exchange.api} v{version}"
        names = [(self.apis, api), (self.brokers, exchange.conversation.ends[1])]
        names.append((self.clients, exchange.client_id or "(no client id)"))
        names += [(self.topics, topic) for topic in exchange.about.topics]
        self.total.add(exchange)
        for group, name in names:
            _of(group, name).add(exchange)
        for message in (exchange.request, exchange.response):
            if message is not None and message.quality in WRONG:
                self.qualities.setdefault(id(exchange.conversation), Counter())[message.quality] += 1
                if len(self.oddities) < MOST_NAMES:
                    self.oddities[message.quality, message.name] += 1

    def close(self, conversation: Conversation) -> None:
        """A connection that is over."""
        self.connections.append(self._row(conversation))
        self.qualities.pop(id(conversation), None)

    def connections_of(self, conversations: Iterable[Conversation]) -> None:
        """Takes the connections that are not over in place of all."""
        self.connections = [self._row(conversation) for conversation in conversations]

    def _row(self, conversation: Conversation) -> ConnectionRow:
        connection = conversation.connection
        client, broker = conversation.ends
        what = conversation.verdict.verdict.what if conversation.verdict else "Kafka"
        session = session_of(conversation)
        if session is not None and session.encrypted and conversation.verdict is not None:
            what = f"{session.facts.version or 'TLS'}, encrypted"
        if what == "Kafka" and not conversation.exchanges and not conversation.pairing.open:
            what = "refused" if connection.reset and connection.segments < 4 else "nothing said"
        ending = "reset" if connection.reset else "closed" if connection.closed else "open"
        streams = connection.streams
        return ConnectionRow(
            f"{client}>{broker}#{connection.epoch}", connection.first_time, connection.last_time,
            conversation.exchanges, what, sum(stream.missing for stream in streams),
            sum(stream.repeated for stream in streams), conversation.lost, ending,
            dict(self.qualities.get(id(conversation), {})), row_of(conversation),
        )  # fmt: skip

    def groups(self) -> Iterator[tuple[str, dict[str, Measure]]]:
        """What is counted, by what."""
        yield "api", self.apis
        yield "client", self.clients
        yield "broker", self.brokers
        yield "topic", self.topics


def _of(group: dict[str, Measure], name: str) -> Measure:
    known = group.get(name)
    if known is None:
        if len(group) >= MOST_NAMES:
            name = OTHERS
        known = group.setdefault(name, Measure())
    return known
