"""Assigns segments to connections, and decides when a connection begins anew and when it ends.

A block's segments are sorted by flow. Consecutive segments of a flow, the usual case, are joined at once. Connections
that a SYN opens or that are out of order are read segment by segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from typing import Any, Protocol

from kwire.capture.connection import Connection
from kwire.capture.flows import Flows
from kwire.capture.ip import address_text
from kwire.capture.opened import OpenedConnections
from kwire.capture.streams import HELD, PATIENCE, WRAP, SegmentRun, cost_of, signed
from kwire.capture.tcp import ACK, FIN, RST, SYN, Key, Segments

IDLE = 15 * 60 * 1_000_000_000  # ns; brokers close idle connections after ten minutes (connections.max.idle.ms)
LINGER = 3_000_000_000  # ns that a closed connection is kept for late segments
HELD_IN_ALL = 256 << 20  # bytes that may wait behind holes in all connections together
MOST_OPEN = 50_000  # connections
MOST_UNKNOWN = 20_000  # connections not yet known to be Kafka
MOST_ENDPOINTS = 100_000  # pairs of endpoints whose epochs are remembered
SWEEP = 1_000_000_000  # ns between two checks for closed and idle connections
LATE_SYN = 1 << 20  # bytes between a late SYN and the first byte seen of the same connection

Runs = tuple[list[SegmentRun], list[SegmentRun]]  # of both sides


class Unwraps(Protocol):
    """Decrypts TLS (capture/tls/layer.py)."""

    def take(self, connection: Connection) -> None: ...

    def woken(self, now: int) -> Iterator[Connection]: ...


class Connections:
    """feed(segments) gives the connections with new bytes, each once; those that ended are finished."""

    def __init__(
        self, held: int = HELD, in_all: int = HELD_IN_ALL, idle: int = IDLE, tls: Unwraps | None = None
    ) -> None:
        self._held, self._in_all, self._idle, self._tls = held, in_all, idle, tls
        self._sides: dict[Key, tuple[Connection, int]] = {}
        self._open: dict[int, Connection] = {}  # by id
        self._waiting: dict[int, Connection] = {}  # those with a hole
        self._epochs: dict[Key, int] = {}  # of connections that are over
        self._swept = 0
        self.now = 0  # the time of the last segment: it goes back where the clock does, or another capture begins
        self._limit = MOST_UNKNOWN
        self.given_up = 0  # connections that ended since there were too many

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open = {id(connection): connection for connection in self._open.values()}
        self._waiting = {id(connection): connection for connection in self._waiting.values()}

    def feed(self, segments: Segments, sweep: bool = True) -> Iterator[Connection]:
        """Adds a block of segments. sweep: end closed and idle connections too."""
        return self._through_tls(self._feed(segments, sweep, None))

    def feed_opened(
        self, segments: Segments, read: Callable[[OpenedConnections], None], sweep: bool = True
    ) -> Iterator[Connection]:
        """As feed, but first calls read with the connections that open in the block and are complete; those that it
        does not settle get no pieces."""
        return self._through_tls(self._feed(segments, sweep, read))

    def _through_tls(self, touched: Iterator[Connection]) -> Iterator[Connection]:
        """The same connections, with TLS decrypted where keys are known."""
        if self._tls is None:
            yield from touched
            return
        for connection in touched:
            self._tls.take(connection)
            yield connection
        yield from self._tls.woken(self.now)

    def _feed(
        self, segments: Segments, sweep: bool, read: Callable[[OpenedConnections], None] | None
    ) -> Iterator[Connection]:
        if not len(segments) and segments.now is None:
            return
        block = Flows(segments)
        opened = OpenedConnections(block)
        self.now = int(segments.time[-1]) if segments.now is None else segments.now
        touched: dict[int, Connection] = {}
        done: set[int] = set()
        for flow, key in enumerate(segments.keys):
            if flow in done:
                continue
            other = block.index.get(_reverse(key))
            if flow in block.syns or other in block.syns:
                flows = [flow] if other is None or other == flow else [flow, other]
                done.update(flows)
                fresh = key not in self._sides
                connection, side = self._sides.get(key) or self._begin(key)
                if fresh and read is not None and block.opened(flow, other):
                    opened.add(connection, flows)
                elif not connection.segments and flow in block.syns and all(map(block.opens.__getitem__, flows)):
                    for turn, one in enumerate(flows):
                        self._add(connection, side ^ turn, block, one)
                else:
                    ended, connection = self._slowly(connection, side, block, flows)
                    for over in ended:
                        touched.pop(id(over), None)
                        yield over
            elif key in self._sides or block.carries(flow):
                connection, side = self._sides.get(key) or self._begin(key)
                self._add(connection, side, block, flow)
            else:
                continue  # a late FIN or RST of an ended connection
            touched[id(connection)] = connection
            if segments.tunnels and not connection.tunnel:
                connection.tunnel = segments.tunnels.get(key, "")
            if len(self._open) > self._limit:
                _open(opened, block)
                opened.settle_all()
                opened = OpenedConnections(block)
                for over in self._trim():
                    touched.pop(id(over), None)
                    yield over
        _open(opened, block)
        for key, window in segments.full:
            if known := self._sides.get(key):
                known[0].streams[known[1]].stall(window)
        for connection in self._patience():
            touched[id(connection)] = connection
        if read is not None and opened.connections:
            read(opened)
        yield from sorted(touched.values(), key=lambda one: one.first_time)
        if sweep:
            yield from self._sweep()

    def tick(self, now: int) -> Iterator[Connection]:
        """Advances the time to now (ns) without segments: gives up holes, ends closed and idle connections."""
        self.now = max(self.now, now)
        return self._through_tls(chain(self._patience(), self._sweep()))

    def finish(self) -> Iterator[Connection]:
        """Ends all connections that are still open."""
        return self._through_tls(self._end(connection) for connection in list(self._open.values()))

    def known(self, key: Key) -> tuple[Connection, int] | None:
        """The open connection between the key's endpoints, and the side that sends from the first to the second."""
        return self._sides.get(key)

    def begin(self, key: Key) -> tuple[list[Connection], Connection]:
        """Opens a connection between these endpoints; returns the one that it replaces, if any, and the new one."""
        known = self._sides.get(key)
        if known is None:
            return [], self._begin(key)[0]
        before = self._end(known[0])
        return [before], self._register(Connection(before.key, before.ends, before.epoch + 1))

    def _begin(self, key: Key) -> tuple[Connection, int]:
        ends = (address_text(key[0], key[1]), key[2]), (address_text(key[3], key[4]), key[5])
        return self._register(Connection(key, ends, self._epochs.get(_pair(key), 0) + 1)), 0

    def _register(self, connection: Connection) -> Connection:
        key = connection.key
        self._sides[_reverse(key)] = connection, 1
        self._sides[key] = connection, 0  # last, as both ends may be the same
        self._open[id(connection)] = connection
        return connection

    def _end(self, connection: Connection) -> Connection:
        """Ends a connection; its endpoints' epoch is remembered."""
        del self._open[id(connection)]
        self._waiting.pop(id(connection), None)
        key = connection.key
        del self._sides[key]
        self._sides.pop(_reverse(key), None)  # gone already where both ends are the same
        if len(self._epochs) >= MOST_ENDPOINTS:
            self._epochs.clear()
        self._epochs[_pair(key)] = connection.epoch
        connection.finish()
        return connection

    def _add(self, connection: Connection, side: int, block: Flows, flow: int) -> None:
        """Adds a flow without a SYN, or with the SYN as its first segment."""
        stream = connection.streams[side]
        low, high = block.bounds[flow], block.bounds[flow + 1]
        _note(connection, block.first_times[flow], block.last_times[flow], high - low)
        for at in block.syns.get(flow, ())[:1]:
            connection.open(side, int(block.seqs[at]), int(block.flags[at]), block.numbers[at], block.times[at])
        data = block.data[flow]
        plain = block.whole[flow] and data not in block.cuts
        if stream.next is None and plain:
            stream.next = stream.first = block.begins[flow]
        if plain and not stream.held and stream.next == block.begins[flow]:
            stream.extend(*block.joined(data, high, stream.position))
        elif data < high:
            self._take(connection, side, block.runs(data, high))
        for at in block.controls.get(flow, ()):
            _control(connection, side, block, at)

    def _take(self, connection: Connection, side: int, runs: list[SegmentRun]) -> None:
        connection.streams[side].take(runs)
        if connection.streams[side].held:
            self._waiting[id(connection)] = connection

    def _slowly(
        self, connection: Connection, first: int, block: Flows, flows: list[int]
    ) -> tuple[list[Connection], Connection]:
        """Adds flows with a SYN, segment by segment in capture order, epoch by epoch. first: the side of the first
        flow. Returns the connections that ended, and the current one."""
        ended = []
        places = [
            (int(block.order[at]), at, first ^ turn)
            for turn, flow in enumerate(flows)
            for at in range(block.bounds[flow], block.bounds[flow + 1])
        ]
        runs: Runs = [], []
        controls: list[tuple[int, int]] = []
        for _, at, side in sorted(places):
            seq, flags = int(block.seqs[at]), int(block.flags[at])
            if not connection.segments and not flags & SYN and not block.lengths[at]:
                continue  # of an ended connection
            if flags & SYN:
                if _begins_anew(connection, side, seq, runs[side], flags & ACK > 0):
                    self._settle(connection, runs, controls, block)
                    runs, controls = ([], []), []
                    ended.append(self._end(connection))
                    connection = self._register(Connection(connection.key, connection.ends, connection.epoch + 1))
                connection.open(side, seq, flags, block.numbers[at], block.times[at])
                seq = (seq + 1) % WRAP
            _note(connection, block.times[at], block.times[at], 1)
            if block.lengths[at]:
                runs[side].append(block.run(at, at + 1, seq))
            if at in block.control:
                controls.append((at, side))
        self._settle(connection, runs, controls, block)
        return ended, connection

    def _settle(self, connection: Connection, runs: Runs, controls: list[tuple[int, int]], block: Flows) -> None:
        for side in (0, 1):
            self._take(connection, side, runs[side])
        for at, side in controls:
            _control(connection, side, block, at)

    @property
    def held_cost(self) -> int:
        """Memory of bytes that wait behind holes, about, in bytes."""
        return sum(stream.held_cost for connection in self._waiting.values() for stream in connection.streams)

    def patience(self, most: int | None = None) -> Iterator[Connection]:
        """Gives up holes that stay too long or hold back too much. most: bound of held_cost, bytes."""
        return self._through_tls(self._patience(most))

    def _patience(self, most: int | None = None) -> Iterator[Connection]:
        most, cost = cost_of(self._in_all) if most is None else most, self.held_cost
        together = sum(stream.held_bytes for one in self._waiting.values() for stream in one.streams)
        for connection in list(self._waiting.values()):
            gave_up = False
            for stream in connection.streams:
                oldest = list(accumulate((run.times[0] for _, run in stream.held), min))  # up to each
                while stream.held and (
                    stream.held_bytes > self._held
                    or stream.held_cost > cost_of(self._held)
                    or together > self._in_all
                    or cost > most
                    or (abs(self.now - oldest[len(stream.held) - 1]) > PATIENCE and not stream.lone)
                ):
                    together, cost = together - stream.held_bytes, cost - stream.held_cost
                    stream.give_up()
                    together, cost = together + stream.held_bytes, cost + stream.held_cost
                    gave_up = True
            if gave_up:
                yield connection
            if not any(stream.held for stream in connection.streams):
                del self._waiting[id(connection)]

    def sweep(self) -> Iterator[Connection]:
        """Ends closed and idle connections, and the idlest if there are too many."""
        return self._through_tls(self._sweep())

    def _sweep(self) -> Iterator[Connection]:
        if abs(self.now - self._swept) < SWEEP and len(self._open) <= self._limit:
            return
        self._swept = self.now
        for connection in list(self._open.values()):
            quiet = self.now - connection.last_time
            if quiet > self._idle or (connection.closed and quiet > LINGER):
                yield self._end(connection)
        if len(self._open) > self._limit:
            yield from self._trim()

    def _trim(self) -> Iterator[Connection]:
        """Ends the idlest half of the connections not known to be Kafka, or of all if these are too many."""
        for kept, unknown in ((MOST_UNKNOWN, True), (MOST_OPEN, False)):
            some = [connection for connection in self._open.values() if not (unknown and connection.known)]
            if unknown or len(some) > kept:
                some.sort(key=lambda connection: -abs(self.now - connection.last_time))
                for connection in some[: max(len(some) - kept // 2, 0)]:
                    self.given_up += 1
                    yield self._end(connection)
        known = sum(connection.known for connection in self._open.values())
        self._limit = min(known + MOST_UNKNOWN, MOST_OPEN)


def _begins_anew(connection: Connection, side: int, seq: int, runs: list[SegmentRun], answer: bool) -> bool:
    """Whether a SYN with this sequence number opens a new connection. answer: it is a SYN-ACK."""
    stream, other = connection.streams[side], connection.streams[1 - side]
    if stream.syn is not None:
        return stream.syn != seq
    firsts = [run.seq for run in runs[:1]] if stream.first is None else [stream.first]
    if firsts:  # a late SYN directly precedes the bytes already seen
        return not 0 <= signed(firsts[0] - seq - 1) <= LATE_SYN
    return not answer and other.syn is None and connection.segments > 0


def _note(connection: Connection, first: int, last: int, segments: int) -> None:
    if not connection.segments:
        connection.first_time = connection.last_time = first
    connection.segments += segments
    connection.first_time = min(connection.first_time, first)
    connection.last_time = max(connection.last_time, last)


def _open(opened: OpenedConnections, block: Flows) -> None:
    for at in opened.open():
        for side in (0, 1):
            for row in block.controls.get(opened.flows[2 * at + side], ()):
                _control(opened.connections[at], side, block, row)


def _control(connection: Connection, side: int, block: Flows, at: int) -> None:
    """Takes a FIN or RST."""
    (flags, end), stream, number = block.control[at], connection.streams[side], block.numbers[at]
    if flags & FIN and at in block.cuts and not block.lengths[at]:  # its cut says what was omitted before it
        stream.take([block.run(at, at + 1, int(block.seqs[at]))])
    if not stream.near(end):
        return
    if len(connection.closing) < 8:
        connection.closing.append((side, number))
    if flags & FIN:
        connection.fins |= 1 << side
        connection.fin = min(number, connection.fin or number)
        stream.close(end)
    if flags & RST:
        connection.reset = True
        connection.rst = min(number, connection.rst or number)
    ended = block.times[at], side
    connection.ended_by = min(connection.ended_by or ended, ended)


def _reverse(key: Key) -> Key:
    return (*key[3:], *key[:3])


def _pair(key: Key) -> Key:
    return min(key, _reverse(key))
