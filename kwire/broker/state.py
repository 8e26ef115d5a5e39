"""All that handlers act on, in one place: the core, the coordinators, what is kept in a folder, what was asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from kwire.broker.cluster import Topic, check_name
from kwire.broker.compaction import Rules, compact
from kwire.broker.context import MS, BrokerSettings, Clock, Request, Seen
from kwire.broker.core import LONGEST, BrokerCore
from kwire.broker.faults import Faults
from kwire.broker.groups import Groups
from kwire.broker.log import Log
from kwire.broker.memory import Memory
from kwire.broker.refused import Refused
from kwire.broker.sharing import Sharing
from kwire.broker.storage import Storage
from kwire.broker.transactions import Transactions
from kwire.errors import KwireError

KEPT = 5_000  # requests
PUSHING = 1_000  # clients whose metrics are kept


@dataclass(slots=True)
class Telemetry:
    """What a client instance has pushed: how often, when last, and the newest metrics (compression type, bytes)."""

    client_id: str | None
    pushes: int = 0
    time_ms: int = 0
    over: bool = False
    newest: tuple[int, bytes] = (0, b"")

    def keep(self, compression: int, metrics: bytes) -> None:
        self.pushes += 1
        self.newest = compression, metrics


class BrokerState(BrokerCore):
    """One broker with all its nodes. Raises KwireError for a topic of the settings that cannot be."""

    def __init__(self, settings: BrokerSettings, clock: Clock, faults: Faults) -> None:
        super().__init__(settings, clock, faults)
        self.requests: deque[Seen] = deque(maxlen=KEPT)
        self.pushed: dict[UUID, Telemetry] = {}
        self.stop_node: Callable[[int], None] = self.topology.down  # the server's also closes its connections
        self.start_node: Callable[[int], None] = self.topology.up
        self.storage = Storage(Path(settings.data), self) if settings.data else None
        for name, partitions in settings.topics:
            if self.storage is not None and name in self.cluster.topics:
                continue
            try:
                self.create(name, partitions)
            except Refused as refused:
                raise KwireError(f"topic {name}: {refused.why}") from None
        self.groups = Groups(self)
        self.transactions = Transactions(self, self.groups.coordinator)
        self.sharing = Sharing(self, self.groups.coordinator)
        self.memory = Memory(
            settings.limits.remembered,
            lambda: (
                self.acls, self.quotas, self.users, self.groups.remembered, self.transactions.coordinator.transactions,
                self.cluster.configs.given, self.sharing.leaders,
            ),
            clock.now,
        )  # fmt: skip
        if self.storage is not None:
            self.storage.restore_coordinators(self.groups.coordinator, self.transactions.coordinator)
            self.transactions.loaded()

    def stop(self) -> None:
        """Nothing happens by itself any more; what is kept is written."""
        self.groups.stop()
        self.transactions.stop()
        if self.storage is not None:
            self.storage.stop()
        self.sharing.stop()

    def saw(self, request: Request) -> None:
        """A request came."""
        peer, client = request.peer, request.client_id
        if client is not None:
            client = client[:LONGEST]
        self.requests.append(
            Seen(request.time, request.api, request.version, client, peer.name, peer.software[:LONGEST], request.node)
        )

    @property
    def telemetry(self) -> bool:
        """Whether clients are asked for their metrics."""
        return bool(self.cluster.configs.broker("metric.reporters"))

    def retain(self) -> None:
        """Drops and compacts what each topic's configuration has go, and tokens whose time is over."""
        now = self.clock.now() // MS
        self.users.tokens.sweep(now)
        for topic in self.cluster.topics.values():
            used = [partition.used for partition in topic.partitions if partition.used is not None]
            if used:
                self._retain(topic.name, used, now)

    def _retain(self, topic: str, logs: list[Log], now: int) -> None:
        def value(name: str) -> str:
            return self.cluster.configs.topic(topic, name)

        policy = value("cleanup.policy").split(",")
        if "delete" in policy:
            kept, size = int(value("retention.ms")), int(value("retention.bytes"))
            for log in logs:
                if kept >= 0:
                    log.keep_since(now - kept)
                if size >= 0:
                    log.keep_bytes(size)
                if log.files is not None:
                    log.files.drop_before(log.start)
        if "compact" in policy:
            rules = self.compaction(topic)
            for log in logs:
                gone = compact(log, rules, now)
                if gone:
                    self.tell("compacted", topic, f"{gone:,} records are gone")

    def compaction(self, topic: str) -> Rules:
        """By which rules a topic is compacted."""

        def number(name: str) -> int:
            return int(self.cluster.configs.topic(topic, name))

        dirty = float(self.cluster.configs.topic(topic, "min.cleanable.dirty.ratio"))
        lags = number("min.compaction.lag.ms"), number("max.compaction.lag.ms")
        roll = self.cluster.configs.roll_ms(topic)
        return Rules(number("segment.bytes"), roll, number("delete.retention.ms"), *lags, dirty)

    def named(self, name: str, create: bool) -> Topic | None:
        """A topic by its name, made when it is not there and may be. Raises Refused for what no topic may be called."""
        topic = self.cluster.topics.get(name)
        if topic is None and create and self.settings.create_topics:
            topic = self.create(name, self.settings.partitions)
        if topic is None:
            check_name(name)
        return topic
