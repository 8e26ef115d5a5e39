"""When clients say anything at all: a consumer that is silent on every connection is stopped, paused or cut off; one
that goes on fetching while its heartbeats stop is not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from kwire.schema.keys import FETCH, SHARE_FETCH

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo
    from kwire.session.exchange import Exchange
    from kwire.wire.columns import Ints

QUIET = 2_000_000_000  # ns from which silence is kept
CLOSING = 1_000_000_000  # ns within which a client that closes has closed its connections
OPEN = -1
MOST_CLIENTS = 100_000
MOST_GAPS = 32
FETCHES = {FETCH, SHARE_FETCH}

Who = tuple[str, str]  # client id and address


class Silences:
    """When clients last sent anything, and their earlier silences."""

    def __init__(self) -> None:
        self._last: dict[Who, int] = {}
        self._gaps: dict[Who, deque[tuple[int, int]]] = {}

    def heard(self, who: Who, times: Ints) -> None:
        """A client said something at these times, ascending."""
        last = self._last.get(who)
        if last is None and len(self._last) >= MOST_CLIENTS:
            return
        before = np.concatenate(([times[0] if last is None else last], times[:-1]))
        for at in np.flatnonzero(times - before > QUIET).tolist():
            self._gaps.setdefault(who, deque(maxlen=MOST_GAPS)).append((int(before[at]), int(times[at])))
        self._last[who] = max(int(times[-1]), last or 0)

    def around(self, who: Who, at: int) -> tuple[int, int | None] | None:
        """A client's silence around a time (ns), as (start, end), end None up to the end of the capture; None if it was
        not silent then or is unknown."""
        for start, end in self._gaps.get(who, ()):
            if start <= at <= end:
                return start, end
        last = self._last.get(who)
        return (last, None) if last is not None and at - last > QUIET else None


class Activity:
    """add(exchange) for all of a capture, in the order of time."""

    def __init__(self) -> None:
        self._said = Silences()
        self._fetched = Silences()
        self._hosts: dict[str, str] = {}
        self._lacking: set[str] = set()  # connections of which the capture does not hold all
        self._until: dict[str, int] = {}  # when connections were last used, if they were closed; else OPEN
        self.first_time: int | None = None
        self.last_time = 0

    def add(self, exchange: Exchange) -> None:
        """An exchange."""
        request = exchange.request
        time = exchange.time
        if self.first_time is None:
            self.first_time = time
        self.last_time = max(self.last_time, (exchange.response or exchange.first).time)
        if request is None:
            return
        name = exchange.connection.name
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= MOST_CLIENTS:
                self._hosts.clear()
            host = self._hosts[name] = exchange.connection.host
        who, times = (request.client_id or "", host), np.array([time])
        self._said.heard(who, times)
        if request.api is not None and request.api.key in FETCHES:
            self._fetched.heard(who, times)

    def add_batch(self, batch: ExchangeBatch) -> None:
        """The same, of a batch."""
        if not len(batch):
            return
        time = batch.time
        first = int(time.min())
        self.first_time = first if self.first_time is None else min(self.first_time, first)
        ends = np.where(batch.response.there, batch.response.time, batch.request.time)
        self.last_time = max(self.last_time, int(ends.max()))
        rows = np.flatnonzero(batch.request.there)
        if not len(rows):
            return
        self._heard(self._said, batch, rows)
        fetches = np.array([kind is not None and kind.key in FETCHES for kind in batch.kinds], bool)
        rows = rows[fetches[batch.kind[rows]]]
        if len(rows):
            self._heard(self._fetched, batch, rows)

    def _heard(self, silences: Silences, batch: ExchangeBatch, rows: Ints) -> None:
        """Notes that the clients of these rows sent something."""
        names, name = batch.client_ids()
        time, whose = batch.time[rows], batch.connection[rows] * len(names) + name[rows]
        order = np.lexsort((time, whose))
        whose, time = whose[order], time[order]
        begins = np.flatnonzero(np.diff(whose, prepend=-1))
        hosts = [known.host for known in batch.connections]
        together: dict[Who, list[Ints]] = {}
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(whose)], strict=True):
            at, number = divmod(int(whose[begin]), len(names))
            together.setdefault((names[number] or "", hosts[at]), []).append(time[begin:end])
        for who, parts in together.items():
            silences.heard(who, parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts)))

    def close(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        """Notes a connection that has ended. If the capture lacks parts of it, its silence proves nothing."""
        name, tcp = f"{connection.capture} {connection.name}", connection.tcp
        if not coverage.whole and len(self._lacking) < MOST_CLIENTS:
            self._lacking.add(name)
        if len(self._until) < MOST_CLIENTS:
            self._until[name] = tcp.last_time if tcp.closing else OPEN

    def went_on(self, connections: Iterable[str], at: int) -> bool:
        """Whether any of these connections, named as in Call, was still open a while after a time (ns). Closing a
        consumer closes its connections, so one that stays open shows that it was not closed."""
        full = len(self._until) >= MOST_CLIENTS
        ends = (self._until.get(name, 0 if full else OPEN) for name in connections)
        return any((self.last_time if end == OPEN else end) > at + CLOSING for end in ends)

    def is_whole(self, connections: Iterable[str]) -> bool:
        """Whether the capture holds all bytes of these connections, named as in Call."""
        return self._lacking.isdisjoint(connections)

    def silence(self, client_id: str, host: str, at: int) -> tuple[int, int | None] | None:
        """A client's silence around a time (ns), as (start, end), end None up to the end of the capture; None if it was
        not silent then or is unknown."""
        return self._said.around((client_id, host), at)

    def fetchless(self, client_id: str, host: str, at: int) -> int | None:
        """Since when (ns) a client had not fetched at a time; None if it had just fetched, or never fetches."""
        silence = self._fetched.around((client_id, host), at)
        return None if silence is None else silence[0]
