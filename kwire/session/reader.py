"""Reads one capture: from packets to batches of exchanges, in time order.

A block of packets gives a batch: regular exchanges are read as columns (vectorized.py), the others frame by frame
(conversation.py). Exchanges do not become complete in the order in which they began, so those that began later wait for
the ones that are still open (order.py).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kwire.capture.connection import Connection
from kwire.capture.connections import MOST_OPEN, MOST_UNKNOWN, Connections
from kwire.capture.packet_numbers import PacketFiles
from kwire.capture.packets import Packets
from kwire.capture.segmenter import Block, CaptureMoment, ClockStep, Segmenter
from kwire.capture.streams import HELD
from kwire.capture.tcp import ConnectionFilter
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.layer import TlsLayer
from kwire.codec.frames import MAX_SIZE
from kwire.codec.library import Library
from kwire.codec.thresholds import DEFAULT, Thresholds
from kwire.session.api_versions import Kinds
from kwire.session.batch import ExchangeBatch, concatenated, of_exchanges
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.exchange import Exchange
from kwire.session.framing import Skipped
from kwire.session.heap import give_back
from kwire.session.order import Order
from kwire.session.orphans import name_orphan
from kwire.session.resting import Resting
from kwire.session.roles import Brokers
from kwire.session.topic_columns import learn
from kwire.session.topics import Elsewhere, Topics
from kwire.session.twins import Twins
from kwire.session.vectorized import Vectorized

Join = Callable[[], Conversation]
MOST_SKIPPED = 10_000
MOST_STEPS = 100
MOST_OVER = 5_000  # closed connections of a block that are ended together
AT_ONCE = 32 << 20  # bytes of connections that end together, and of their batch: each step copies them


@dataclass(frozen=True, slots=True)
class Settings:
    """How captures are read. ports, hosts: read only these connections; the ports are brokers'. held: bytes of a
    connection that may wait behind a hole. max_size: the largest size prefix accepted, bytes. memory: bytes that may
    wait in all, a quarter of it behind holes. keys: TLS key log; ledger: whether positions of TLS records are kept.
    careful: read everything frame by frame; thresholds: otherwise, from how many items on they are read as columns.
    patience: ns that exchanges wait for an older open one, None: as long as memory allows. twins: whether second
    recordings of a connection under other addresses are read too."""

    ports: frozenset[int] = frozenset()
    hosts: frozenset[tuple[int, int]] = frozenset()
    held: int = HELD
    max_size: int = MAX_SIZE
    library: Library | None = None
    memory: int = 1 << 30
    keys: KeyLog = field(default_factory=KeyLog)
    ledger: bool = False
    careful: bool = False
    thresholds: Thresholds = DEFAULT
    patience: int | None = None
    twins: bool = False


class Reader:
    """feed(packets) and finish() give batches of exchanges. name: the capture's.

    tracking: collect topic names, which about needs. ordered: in time order, else as they become complete. scans: walk
    over the bodies of regular exchanges too, for errors and damage. ended(connection) is called for every connection
    that has ended. notes: what was given up or not read. twins: shared by captures that are read together.
    """

    def __init__(
        self, name: str, settings: Settings | None = None, *, tracking: bool = False, ordered: bool = True,
        topics: Topics | None = None, ended: Callable[[ConnectionInfo], None] | None = None, scans: bool = True,
        twins: Twins | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings or Settings()
        self.name = name
        self.topics = topics or Topics()
        self.places = PacketFiles()  # files of packets, when captures follow each other
        self.packets = 0
        self.clock: list[ClockStep] = []  # where time goes back in the capture, at most MOST_STEPS
        self.first_time: int | None = None
        self.last_time = 0
        self.kinds = Kinds(self.settings.library, self.settings.thresholds)
        self._tracking, self._ended = tracking, ended
        self._segmenter = Segmenter(ConnectionFilter(self.settings.ports, self.settings.hosts))
        self.brokers = Brokers(self.settings.ports)
        self._twins = None if self.settings.twins else twins or Twins()
        self.tls = TlsLayer(self.settings.keys, self.settings.ledger)
        self.connections = Connections(self.settings.held, self.settings.memory // 4, tls=self.tls)
        self._conversations: dict[int, Conversation] = {}
        self._vectorized = None if self.settings.careful else Vectorized(self.kinds, self.settings.max_size, scans)
        self._resting = None if self._vectorized is None else Resting(self._vectorized, self.brokers, self._twins)
        self._order = Order(self.clock) if ordered else None
        self._columns: list[ExchangeBatch] = []
        self._singles: list[Exchange] = []
        self._orphans: list[Exchange] = []
        self._open: dict[int, Conversation] = {}  # conversations that wait for a response or for missing bytes
        self._costly: dict[int, Conversation] = {}  # conversations that hold bytes
        self._given_up = 0
        self._apart = False  # whether complete exchanges are too large for one batch
        self.skipped: list[tuple[ConnectionInfo, str, Skipped]] = []  # not yet taken, newest last, at most MOST_SKIPPED
        self.unsaid = 0  # number of skips beyond those

    def snapshot(self) -> bytes:
        """Its whole state, schemas and TLS keys included, for resume. A pickle: resume only what kwire itself wrote."""
        return pickle.dumps(self)

    @classmethod
    def resume(
        cls, snapshot: bytes, *, ended: Callable[[ConnectionInfo], None] | None = None, elsewhere: Elsewhere = None
    ) -> Reader:
        """A reader that continues from a snapshot. elsewhere: as in Topics."""
        made = pickle.loads(snapshot)
        assert isinstance(made, cls)
        made._ended = ended
        made.topics.elsewhere = elsewhere
        return made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_ended": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._conversations = {id(known.connection): known for known in self._conversations.values()}
        self._open = {id(known.connection): known for known in self._open.values()}
        self._costly = {id(known.connection): known for known in self._costly.values()}

    @property
    def notes(self) -> list[str]:
        """What could not be read or was given up, as texts."""
        given_up = f"{self._given_up:,} bytes of unfinished frames given up to bound memory"
        most = f"more than {MOST_UNKNOWN:,} at once that are not Kafka, or {MOST_OPEN:,} in all"
        ended = f"{self.connections.given_up:,} connections given up, the idlest first: {most}"
        unsaid = f"{self.unsaid:,} more places where bytes were skipped"
        return [
            *self._segmenter.notes, *self.tls.notes, *([given_up] if self._given_up else []),
            *([unsaid] if self.unsaid else []), *([ended] if self.connections.given_up else []),
        ]  # fmt: skip

    @property
    def open_connections(self) -> list[ConnectionInfo]:
        """The connections that have not ended."""
        resting = [] if self._resting is None else self._resting.infos
        return resting + [known.info for known in self._conversations.values()]

    def known(self, connection: Connection) -> Conversation | None:
        """The connection's conversation; None if nothing was read of it."""
        rests = self._resting is not None and connection in self._resting
        return self.conversation(connection) if rests else self._conversations.get(id(connection))

    def feed(self, packets: Packets) -> list[ExchangeBatch]:
        """Adds packets; gives the exchanges that became complete, usually no batch or one."""
        return self.add(self._segmenter.read(packets))

    def add(self, block: Block) -> list[ExchangeBatch]:
        """As feed, with packets that a Segmenter has already read."""
        self.packets += block.packets
        for secrets in block.secrets:
            self.settings.keys.add(secrets)
        if block.packets:
            self.first_time = min(block.first_time, self.first_time or block.first_time)
            self.last_time = max(self.last_time, block.last_time)
            self.clock += block.steps[: MOST_STEPS - len(self.clock)]
        for segments in block.segments:
            feed, resting = self.connections, self._resting
            self.take(feed.feed(segments) if resting is None else feed.feed_opened(segments, resting.read))
            self._bound()
        return self.release()

    def tick(self, now: int) -> list[ExchangeBatch]:
        """Advances the time to now (ns since the epoch) without packets."""
        self.take(self.connections.tick(now))
        return self.release()

    def finish(self, why: str = "the capture ended") -> list[ExchangeBatch]:
        """Ends all connections and gives the remaining exchanges. why: the reason noted on open requests."""
        self.take(self.connections.finish(), why)
        self._open.clear()
        return self.release()

    def take(self, touched: Iterable[Connection | Join], why: str = "the connection fell silent") -> None:
        """Reads connections that have new bytes, and ends those that are finished. A Join returns a conversation that
        was advanced elsewhere."""
        conversations: list[Conversation] = []
        over: list[Connection] = []
        held = 0
        for connection in touched:
            if len(over) >= MOST_OVER or held >= AT_ONCE:
                self._end_all(over, why)
                if held >= AT_ONCE:
                    self._pack()
                    self._apart = True
                    give_back()
                held = 0
            if not isinstance(connection, Connection):
                conversations.append(connection())
            elif connection.finished:
                if not self._said_nothing(connection):
                    ending = self.conversation(connection)
                    ending.pump(self._vectorized)
                    held += ending.cost
                over.append(connection)
            elif self._resting is not None and self._resting.turn(connection, self._info):
                continue
            elif any(stream.pieces or stream.held for stream in connection.streams):
                conversation = self.conversation(connection)
                conversation.pump(self._vectorized)
                conversations.append(conversation)
        self._end_all(over, why)
        self._name_orphans()
        for conversation in conversations:
            self._skips(conversation)
            key = id(conversation.connection)
            if conversation.oldest is not None:
                self._open[key] = conversation
            if conversation.cost and key in self._conversations:
                self._costly[key] = conversation
            else:
                self._costly.pop(key, None)

    def _end_all(self, over: list[Connection], why: str) -> None:
        """Reads what waits to be read as columns, then ends the connections and empties the list."""
        self._run_vectorized()
        for connection in over:
            self.end(connection, why)
        over.clear()

    def _pack(self) -> None:
        """Turns single exchanges into a batch, which frees their objects."""
        self._name_orphans()
        if self._singles:
            self._columns.append(of_exchanges(self._singles))
            self._singles = []

    def _run_vectorized(self) -> None:
        """Reads the pieces that conversations offered to be read as columns."""
        if self._resting is not None and (batch := self._resting.batch()) is not None:
            self._columns.append(batch)
        if self._vectorized is not None:
            self._columns += self._vectorized.rounds()

    def conversation(self, connection: Connection, keep: bool = True) -> Conversation:
        """The conversation of a connection, made if there is none. keep: remember it."""
        known = self._conversations.get(id(connection))
        if known is None:
            rest = None if self._resting is None else self._resting.wake(connection)
            info = self._info(connection) if rest is None else rest.info
            known = Conversation(info, self.brokers, self._done, self.settings.max_size, self._twins)
            if rest is not None:
                known.stand(rest.taken, rest.ends)
            if keep:
                self._conversations[id(connection)] = known
        return known

    def _info(self, connection: Connection) -> ConnectionInfo:
        return ConnectionInfo(self.name, connection, self.kinds, self.topics, self.places, self.clock)

    def _said_nothing(self, connection: Connection) -> bool:
        """Whether there is nothing to read and no conversation: only a SYN, or a connection at rest."""
        first, second = connection.streams
        return not first.pieces and not second.pieces and id(connection) not in self._conversations

    def end(self, connection: Connection, why: str) -> None:
        """Ends a connection. why: the reason noted on open requests."""
        if self._said_nothing(connection):
            rest = None if self._resting is None else self._resting.wake(connection)
            if self._ended is not None:
                self._ended(self._info(connection) if rest is None else rest.info)
            return
        conversation = self.conversation(connection, keep=False)
        conversation.finish(why)
        self._skips(conversation)
        self._conversations.pop(id(connection), None)
        self._open.pop(id(connection), None)
        self._costly.pop(id(connection), None)
        if self._ended is not None:
            self._ended(conversation.info)
        conversation.release()

    def _skips(self, conversation: Conversation) -> None:
        """Collects the ranges of which the conversation could make no frames."""
        for side, skipped in conversation.take_skipped():
            conversation.info.lost += skipped.length
            if len(self.skipped) < MOST_SKIPPED:
                self.skipped.append((conversation.info, side, skipped))
            else:
                self.unsaid += 1

    @property
    def waiting_cost(self) -> int:
        """Memory of bytes that wait for the rest of their frame or behind holes, about, in bytes."""
        return self.connections.held_cost + sum(known.cost for known in self._costly.values())

    def _bound(self) -> None:
        """Keeps waiting bytes within settings.memory: gives up holes first, then incomplete frames."""
        cost, half = self.waiting_cost, self.settings.memory // 2
        if cost <= self.settings.memory:
            return
        frames = cost - self.connections.held_cost
        self.take(self.connections.patience(max(half - frames, 0)))
        cost = self.waiting_cost
        for conversation in sorted(self._costly.values(), key=lambda known: -known.cost):
            if cost <= half:
                break
            cost -= conversation.cost
            self._given_up += conversation.waiting
            conversation.give_up()
        give_back()

    def _done(self, exchange: Exchange) -> None:
        if exchange.request is None and exchange.first.correlation_id is not None:
            self._orphans.append(exchange)
        else:
            self._singles.append(exchange)

    def _name_orphans(self) -> None:
        """Names orphans once all requests of the block are known."""
        orphans, self._orphans = self._orphans, []
        for exchange in orphans:
            name_orphan(exchange.first)
            self._singles.append(exchange)

    def release(self) -> list[ExchangeBatch]:
        """The complete exchanges not given yet: no batch or one, several where one would be too large."""
        self._pack()
        parts, self._columns = self._columns, []
        out: list[ExchangeBatch] = []
        while True:
            batch = _taken(parts, AT_ONCE if self._apart else None)
            if self._tracking and batch is not None:
                learn(self.topics, batch)
            if self._order is not None:
                out += self._order.release(batch, self.oldest)
            elif batch is not None:
                out.append(batch)
            if not parts:
                self._apart = False
                return out

    @property
    def oldest(self) -> CaptureMoment | None:
        """The moment of the oldest message that is still waited for; None when there is none."""
        self._open = {key: known for key, known in self._open.items() if known.oldest is not None}
        oldest = min((moment for known in self._open.values() if (moment := known.oldest) is not None), default=None)
        if oldest is not None and self.settings.patience is not None:
            now = self.connections.now if self.clock else self.last_time
            oldest = max(oldest, CaptureMoment(len(self.clock), now - self.settings.patience))
        return oldest


def _taken(parts: list[ExchangeBatch], most: int | None) -> ExchangeBatch | None:
    """Takes out the first parts, at least one and up to about most bytes, as one batch; None when there are none."""
    size = count = 0
    for part in parts:
        count += 1
        size += len(part.buffer)
        if most is not None and size >= most:
            break
    found = concatenated(parts[:count]) if count else None
    del parts[:count]
    return found
