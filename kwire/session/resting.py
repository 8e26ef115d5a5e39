"""Connections at rest: everything so far was read as columns, both sides are at the beginning of a frame and nothing is
open. They need no Conversation until more bytes come.

Connections that open in a block and are entirely regular are read here at once; then each has its turn, in time order,
like those that are read by conversations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kwire.session.twins import LOOKED_AT, Head, head

if TYPE_CHECKING:
    from kwire.capture.connection import Connection
    from kwire.capture.opened import OpenedConnections
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.roles import Brokers
    from kwire.session.twins import Twins
    from kwire.session.vectorized import ExchangesOfOpened, Vectorized


class Rest(NamedTuple):
    """taken: number of requests and responses read; ends: the stream positions behind them."""

    info: ConnectionInfo
    taken: tuple[int, int]
    ends: tuple[int, int]


class Resting:
    """Call read(opened), then turn() for each connection, then batch() gives their exchanges."""

    def __init__(self, vectorized: Vectorized, brokers: Brokers, twins: Twins | None) -> None:
        self._vectorized, self._brokers, self._twins = vectorized, brokers, twins
        self._known: dict[int, Rest] = {}  # by id(connection)
        self._found: ExchangesOfOpened | None = None
        self._numbers: dict[int, int] = {}  # index in _found by id(connection)
        self._infos: dict[int, ConnectionInfo] = {}  # of those that had their turn, by that index
        self._taken: list[list[int]] = []  # requests and responses read of each
        self._heads: list[Head] = []  # of each side

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._known = {id(rest.info.tcp): rest for rest in self._known.values()}

    @property
    def infos(self) -> list[ConnectionInfo]:
        return [rest.info for rest in self._known.values()]

    def read(self, opened: OpenedConnections) -> None:
        """Reads the entirely regular connections and hands the others back to the ordinary way (settle)."""
        found = self._found = self._vectorized.opened(opened)
        for number in np.flatnonzero(~found.whole).tolist():
            opened.settle(number)
        self._numbers = {id(opened.connections[number]): number for number in np.flatnonzero(found.whole).tolist()}
        data = found.data
        times = data.mark_time[np.searchsorted(data.mark_at, data.base)]
        lengths = np.minimum(data.length, LOOKED_AT)
        self._taken = found.taken.tolist()
        self._heads = [
            head(data.buffer[begin : begin + length], time)
            for begin, length, time in zip(data.base.tolist(), lengths.tolist(), times.tolist(), strict=True)
        ]

    def turn(self, connection: Connection, make: Callable[[Connection], ConnectionInfo]) -> bool:
        """Whether the connection's bytes were read here; then it is at rest."""
        number = self._numbers.pop(id(connection), None)
        if number is None or self._found is None:
            return False
        info = make(connection)
        requests, responses = self._taken[number]
        ends = connection.streams[0].position, connection.streams[1].position
        self._known[id(connection)] = Rest(info, (requests, responses), ends)
        if self._twins is not None:
            info.heads = self._heads[2 * number], self._heads[2 * number + 1]
            info.twin_of = self._twins.of(connection, info.heads, info.capture)
            if info.twin_of:
                return True  # a second recording: the first one is read
        info.client, connection.known = 0, True  # its opener
        info.name, info.exchanges = info.full_name, requests
        self._brokers.add(connection.ends[1])
        self._infos[number] = info
        return True

    def batch(self) -> ExchangeBatch | None:
        """The exchanges of the connections that had their turn; None when there are none."""
        found, self._found = self._found, None
        infos, self._infos = self._infos, {}
        self._taken, self._heads = [], []
        return None if found is None else self._vectorized.named(found, infos)

    def wake(self, connection: Connection) -> Rest | None:
        """Removes a connection from rest and returns its state; None if it was not at rest."""
        return self._known.pop(id(connection), None)

    def __contains__(self, connection: Connection) -> bool:
        return id(connection) in self._known
