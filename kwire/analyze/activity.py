"""When clients say anything at all: a consumer that is silent on every connection is stopped, paused or cut off; one
that goes on fetching while its heartbeats stop is not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

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

Who = tuple[str, str]  # client id and address


class Activity:
    """add(exchange) for all of a capture, in the order of time."""

    def __init__(self) -> None:
        self.last: dict[Who, int] = {}
        self._gaps: dict[Who, deque[tuple[int, int]]] = {}
        self._hosts: dict[str, str] = {}
        self._lacking: set[str] = set()  # connections of which the capture does not hold all
        self._until: dict[str, int] = {}  # when connections were last heard of that were closed, or OPEN
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
        who = request.client_id or "", host
        last = self.last.get(who)
        if last is not None and time - last > QUIET:
            self._gaps.setdefault(who, deque(maxlen=MOST_GAPS)).append((last, time))
        if last is not None or len(self.last) < MOST_CLIENTS:
            self.last[who] = max(time, last or 0)

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
        names, name = batch.client_ids()
        whose = batch.connection[rows] * len(names) + name[rows]
        order = np.lexsort((time[rows], whose))
        whose, time = whose[order], time[rows][order]
        begins = np.flatnonzero(np.diff(whose, prepend=-1))
        hosts = [known.host for known in batch.connections]
        together: dict[Who, list[Ints]] = {}
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(whose)], strict=True):
            at, number = divmod(int(whose[begin]), len(names))
            together.setdefault((names[number] or "", hosts[at]), []).append(time[begin:end])
        for who, parts in together.items():
            self._heard(who, parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts)))

    def _heard(self, who: Who, times: Ints) -> None:
        """A client said something at these times, ascending."""
        last = self.last.get(who)
        if last is None and len(self.last) >= MOST_CLIENTS:
            return
        before = np.concatenate(([times[0] if last is None else last], times[:-1]))
        for at in np.flatnonzero(times - before > QUIET).tolist():
            self._gaps.setdefault(who, deque(maxlen=MOST_GAPS)).append((int(before[at]), int(times[at])))
        self.last[who] = max(int(times[-1]), last or 0)

    def close(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        """A connection that is over: of one of which the capture lacks something, silence proves nothing."""
        name, tcp = f"{connection.capture} {connection.name}", connection.tcp
        if not coverage.whole and len(self._lacking) < MOST_CLIENTS:
            self._lacking.add(name)
        if len(self._until) < MOST_CLIENTS:
            self._until[name] = tcp.last_time if tcp.closing else OPEN

    def went_on(self, connections: Iterable[str], at: int) -> bool:
        """Whether any of these connections, named as a Call names its own, was still open a while after a time, ns:
        who closes a consumer closes its connections too, whatever is opened under its client id later."""
        full = len(self._until) >= MOST_CLIENTS
        ends = (self._until.get(name, 0 if full else OPEN) for name in connections)
        return any((self.last_time if end == OPEN else end) > at + CLOSING for end in ends)

    def is_whole(self, connections: Iterable[str]) -> bool:
        """Whether all that was said on connections, named as a Call names its own, is in the capture."""
        return self._lacking.isdisjoint(connections)

    def silence(self, client_id: str, host: str, at: int) -> tuple[int, int | None] | None:
        """The silence of a client around a time, ns: from when, until when (None: to the end); None when it was not
        silent then, or nothing is known of it."""
        who = client_id, host
        for start, end in self._gaps.get(who, ()):
            if start <= at <= end:
                return start, end
        last = self.last.get(who)
        return (last, None) if last is not None and at - last > QUIET else None
