"""All that handlers act on, in one place: metadata, groups, logins, faults, the clock, and what has happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire.broker.acls import Acls
from kwire.broker.cluster import Cluster, Topic, check_name
from kwire.broker.codes import Refused
from kwire.broker.compaction import Rules, compact
from kwire.broker.context import MS, BrokerSettings, Clock, Happening, Request, Seen
from kwire.broker.faults import Faults
from kwire.broker.log import Log
from kwire.broker.memory import Memory
from kwire.broker.quotas import Quotas
from kwire.broker.reassignments import Reassignments
from kwire.broker.security import Users
from kwire.broker.static_configs import in_force
from kwire.broker.storage import Storage
from kwire.broker.topology import Topology
from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.broker.groups import Groups
    from kwire.broker.sharing import Sharing
    from kwire.broker.transactions import Transactions

KEPT = 5_000  # requests
TOLD = 2_000  # happenings
PUSHING = 1_000  # clients whose metrics are kept
LONGEST = 500  # characters of a text that is kept


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


class BrokerState:
    """One broker with all its nodes. Raises KwireError for a topic of the settings that cannot be."""

    def __init__(self, settings: BrokerSettings, clock: Clock, faults: Faults) -> None:
        self.settings, self.clock, self.faults = settings, clock, faults
        self.cluster = Cluster(settings.all_setups, settings.limits)
        self.topology = Topology(self.cluster)
        self.reassignments = Reassignments(self)
        self.cluster.advertised = faults.advertised
        faults.settle(self.cluster.nodes)
        self.users = Users(dict(settings.users))
        self.cluster.configs.settle(in_force(settings))
        self.quotas = Quotas()
        everyone = self.cluster.configs.broker("allow.everyone.if.no.acl.found") == "true"
        self.acls = Acls(settings.super_users, open=everyone)
        self.happenings: deque[Happening] = deque(maxlen=TOLD)
        self.requests: deque[Seen] = deque(maxlen=KEPT)
        self.pushed: dict[UUID, Telemetry] = {}
        self.watching: list[Callable[[Happening], None]] = []
        self.stop_node: Callable[[int], None] = self.topology.down  # the server's also closes its connections
        self.start_node: Callable[[int], None] = self.topology.up
        self.groups: Groups
        self.transactions: Transactions
        self.sharing: Sharing
        self.memory = Memory(
            settings.limits.remembered,
            lambda: (
                self.acls, self.quotas, self.users, self.groups.remembered, self.transactions.coordinator.transactions,
                self.cluster.configs.given, self.sharing.leaders,
            ),
            clock.now,
        )  # fmt: skip
        self.storage = Storage(Path(settings.data)) if settings.data else None
        if self.storage is not None:
            self.storage.begin(self)
        for name, partitions in settings.topics:
            if self.storage is not None and name in self.cluster.topics:
                continue
            try:
                self.create(name, partitions)
            except Refused as refused:
                raise KwireError(f"topic {name}: {refused.why}") from None

    def tell(self, kind: str, who: str, text: str, **facts: Any) -> None:
        """Something happened that a person would want to see."""
        happening = Happening(self.clock.now(), kind, who[:LONGEST], text[:LONGEST], facts)
        self.happenings.append(happening)
        for watch in self.watching:
            watch(happening)

    def saw(self, request: Request) -> None:
        """A request came."""
        peer, client = request.peer, request.client_id
        if client is not None:
            client = client[:LONGEST]
        self.requests.append(
            Seen(request.time, request.api, request.version, client, str(peer), peer.software[:LONGEST], request.node)
        )

    def create(self, name: str, partitions: int, replicas: int | None = None) -> Topic:
        """A topic that was named; replicas: default.replication.factor otherwise. Raises Refused."""
        topic = self.cluster.create(name, partitions, replicas or self.replicas)
        self.tell("topic", name, f"created with {partitions} partition{'s' * (partitions != 1)}")
        return topic

    @property
    def telemetry(self) -> bool:
        """Whether clients are asked for their metrics."""
        return bool(self.cluster.configs.broker("metric.reporters"))

    @property
    def replicas(self) -> int:
        return int(self.cluster.configs.broker("default.replication.factor"))

    def internal(self, name: str) -> None:
        """Makes an internal topic when its coordinator is looked for, as Kafka does; nothing is in it."""
        if name not in self.cluster.topics:
            copies = min(self.replicas, len(self.cluster.alive))
            with suppress(Refused):  # no room is no reason to have no coordinator
                self.cluster.create(name, self.settings.transactions.offsets_topic_num_partitions, copies)

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
        return Rules(number("segment.bytes"), number("segment.ms"), number("delete.retention.ms"), *lags, dirty)

    def named(self, name: str, create: bool) -> Topic | None:
        """A topic by its name, made when it is not there and may be. Raises Refused for what no topic may be called."""
        topic = self.cluster.topics.get(name)
        if topic is None and create and self.settings.create_topics:
            topic = self.create(name, self.settings.partitions)
        if topic is None:
            check_name(name)
        return topic
