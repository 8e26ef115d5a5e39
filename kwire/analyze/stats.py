"""A capture in numbers: by API, client, broker and topic what measures.py measures; and its connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kwire.analyze.failures import Failures
from kwire.analyze.measures import Measure, Measured, merge
from kwire.analyze.throttling import Mutes, throttles
from kwire.analyze.tls import row_of, session_of
from kwire.codec.quality import QUALITIES
from kwire.session.about_columns import abouts_of
from kwire.session.exchange import TOKEN
from kwire.session.select import WRONG_CODES
from kwire.wire.columns import Ints

if TYPE_CHECKING:
    from kwire.session.api_versions import Kind
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo

MOST_NAMES = 10_000  # clients, topics, …; the rest is counted together
OTHERS, NO_CLIENT = "(others)", "(no client id)"
REFUSED = "refused"  # what a connection is that nobody took
SEEN_BEFORE = "seen a second time, and counted once"  # of one that is in the capture under other addresses too
MOST_CONNECTIONS = 100_000  # that are told one by one, of those with exchanges and of those without
MOST_HOSTS = 100_000  # from which connections were refused
MOST_FAILED = 20_000  # exchanges whose errors are told one by one, unless all are asked for


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


@dataclass(slots=True)
class ThrottledAnswers:
    """Answers of one API that told a client to wait: how many, the longest wait and the sum of all, ms, and how many of
    them came in versions in which the client waits by itself (KIP-219)."""

    count: int = 0
    longest: int = 0
    total: int = 0
    by_itself: int = 0


@dataclass(slots=True)
class RefusedConnections:
    """Connections to one address that were refused: how many, from where (some of the hosts, where there are very
    many), from when to when, ns."""

    count: int = 0
    hosts: set[str] = field(default_factory=set)
    first_time: int = 0
    last_time: int = 0


class Stats:
    """add(batch) and close(connection) collect; the rest is read. failed: how many exchanges' errors are told one by
    one. throttled: by client id and API; untold: exchanges with errors beyond those. connections: those that are told
    one by one; kinds: of all, how many are what; missing: bytes of all that the capture lacks; refused: by the address
    that refused them."""

    def __init__(self, failed: int = MOST_FAILED) -> None:
        self.failures, self.untold, self._left = Failures(), 0, failed
        self.throttled: dict[tuple[str, str], ThrottledAnswers] = {}
        self.total = Measure()
        self._mutes = Mutes()
        self.apis: dict[str, Measure] = {}
        self.clients: dict[str, Measure] = {}
        self.brokers: dict[str, Measure] = {}
        self.topics: dict[str, Measure] = {}
        self._forget_connections()
        self.qualities: dict[int, Counter[str]] = {}
        self.oddities: Counter[tuple[str, str]] = Counter()  # how often messages of a name were of a quality
        self.first_time: int | None = None
        self.last_time = 0

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        if not len(batch):
            return
        time, last = batch.time, np.where(batch.response.there, batch.response.last_time, batch.request.last_time)
        first = int(time.min())
        self.first_time = first if self.first_time is None else min(self.first_time, first)
        self.last_time = max(self.last_time, int(last.max()))
        measured, rows = Measured(batch, self._mutes), np.arange(len(batch))
        names, which = batch.client_ids()
        apis = [_api(kind) for kind in batch.kinds]
        brokers: dict[str, int] = {}
        asked = np.array([brokers.setdefault(known.ends[1], len(brokers)) for known in batch.connections], np.int64)
        groups: list[tuple[dict[str, Measure], Sequence[str], Ints, Ints]] = [
            (self.apis, [*apis, TOKEN], np.where(batch.token, len(apis), batch.kind), rows),
            (self.brokers, list(brokers), asked[batch.connection], rows),
            (self.clients, [name or NO_CLIENT for name in names], which, rows),
            (self.topics, *abouts_of(batch).topics()),
        ]
        for group, texts, numbers, of in groups:
            for name, made in measured.of(of, numbers, texts):
                merge(_of(group, name), made)
        for _, made in measured.of(rows, np.zeros(len(rows), np.int64), ["all"]):
            merge(self.total, made)
        self._throttles(batch)
        self._failures(batch)
        for side, kind in ((batch.request, "request"), (batch.response, "response")):
            for row in np.flatnonzero(side.there & WRONG_CODES[side.quality]).tolist():
                quality = QUALITIES[side.quality[row]]
                connection = batch.connections[batch.connection[row]]
                self.qualities.setdefault(id(connection), Counter())[quality] += 1
                if len(self.oddities) < MOST_NAMES:
                    message = getattr(batch[row], kind)
                    self.oddities[quality, message.name] += 1

    def _throttles(self, batch: ExchangeBatch) -> None:
        for row, ms, waits in throttles(batch):
            kind = batch.kinds[batch.kind[row]]
            key = batch.client_id(row) or NO_CLIENT, "" if kind is None else kind.api
            known = self.throttled.get(key)
            if known is None:
                key = key if len(self.throttled) < MOST_NAMES else (OTHERS, "")
                known = self.throttled.setdefault(key, ThrottledAnswers())
            known.count += 1
            known.longest = max(known.longest, ms)
            known.total += ms
            known.by_itself += waits

    def _failures(self, batch: ExchangeBatch) -> None:
        failed = batch.failed
        for exchange in batch.at(failed[: self._left]):
            self.failures.add(exchange)
        told = min(self._left, len(failed))
        self._left -= told
        self.untold += len(failed) - told

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over."""
        self._tell(self.row_of(connection))

    def row_of(self, connection: ConnectionInfo) -> ConnectionRow:
        """The row of a connection that has ended, without counting it."""
        row = self._row(connection)
        self.qualities.pop(id(connection), None)
        return row

    def connections_of(self, conversations: Iterable[ConnectionInfo]) -> None:
        """Takes the connections that are not over in place of all."""
        self._forget_connections()
        for connection in conversations:
            self._tell(self._row(connection))

    def _forget_connections(self) -> None:
        self.connections: list[ConnectionRow] = []
        self.kinds: Counter[str] = Counter()
        self.refused: dict[str, RefusedConnections] = {}
        self.missing = self._hosts = 0
        self._room = {True: MOST_CONNECTIONS, False: MOST_CONNECTIONS}  # for those with exchanges, and those without

    @property
    def connections_untold(self) -> int:
        """How many connections are only counted."""
        return self.kinds.total() - len(self.connections)

    def _tell(self, row: ConnectionRow) -> None:
        self.kinds[row.what if row.what in self.kinds or len(self.kinds) < MOST_NAMES else OTHERS] += 1
        self.missing += row.missing
        if row.what == REFUSED:
            self._refuse(row)
        said = row.exchanges > 0
        if self._room[said]:
            self._room[said] -= 1
            self.connections.append(row)

    def _refuse(self, row: ConnectionRow) -> None:
        client, _, broker = row.name.rpartition("#")[0].partition(">")
        host = client.rpartition(":")[0].strip("[]")
        if broker not in self.refused and len(self.refused) >= MOST_NAMES:
            broker = OTHERS
        one = self.refused.setdefault(broker, RefusedConnections(first_time=row.first_time))
        one.count += 1
        one.first_time, one.last_time = min(one.first_time, row.first_time), max(one.last_time, row.last_time)
        if self._hosts < MOST_HOSTS and host not in one.hosts:
            self._hosts += 1
            one.hosts.add(host)

    def _row(self, connection: ConnectionInfo) -> ConnectionRow:
        client, broker = connection.ends
        what = connection.verdict.verdict.what if connection.verdict else "Kafka"
        session = session_of(connection)
        if session is not None and session.encrypted and connection.verdict is not None:
            what = f"{session.facts.version or 'TLS'}, encrypted"
        if what == "Kafka" and not connection.is_kafka:
            what = REFUSED if connection.tcp.reset and connection.tcp.segments < 4 else "nothing said"
        if connection.twin_of:
            what = SEEN_BEFORE
        ending = "reset" if connection.tcp.reset else "closed" if connection.tcp.closed else "open"
        streams = connection.tcp.streams
        return ConnectionRow(
            f"{client}>{broker}#{connection.tcp.epoch}", connection.tcp.first_time, connection.tcp.last_time,
            connection.exchanges, what, sum(stream.missing for stream in streams),
            sum(stream.repeated for stream in streams), connection.lost, ending,
            dict(self.qualities.get(id(connection), {})), row_of(connection),
        )  # fmt: skip

    def groups(self) -> Iterator[tuple[str, dict[str, Measure]]]:
        """The counters, by what they count."""
        yield "api", self.apis
        yield "client", self.clients
        yield "broker", self.brokers
        yield "topic", self.topics


def _api(kind: Kind | None) -> str:
    return "unknown" if kind is None else f"{kind.api} v{kind.version}"


def _of(group: dict[str, Measure], name: str) -> Measure:
    known = group.get(name)
    if known is None:
        if len(group) >= MOST_NAMES:
            name = OTHERS
        known = group.setdefault(name, Measure())
    return known
