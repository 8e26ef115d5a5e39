"""What every part of the broker stands on: the cluster's metadata, rights, faults, the clock, and what has happened.

Coordinators and storage are built on this; with them it is the whole state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kwire.broker.acls import Acls
from kwire.broker.cluster import Cluster, Topic
from kwire.broker.configs import TOPIC
from kwire.broker.context import BrokerSettings, Clock, Happening
from kwire.broker.faults import Faults
from kwire.broker.quotas import Quotas
from kwire.broker.reassignments import Reassignments
from kwire.broker.refused import Refused
from kwire.broker.security import Users
from kwire.broker.static_configs import in_force
from kwire.broker.topology import Topology

TOLD = 2_000  # happenings
LONGEST = 500  # characters of a text that is kept


class BrokerCore:
    """All nodes of one broker, without its coordinators."""

    def __init__(self, settings: BrokerSettings, clock: Clock, faults: Faults) -> None:
        self.settings, self.clock, self.faults = settings, clock, faults
        self.cluster = Cluster(settings.all_setups, settings.limits)
        self.topology = Topology(self.cluster)
        self.reassignments = Reassignments(clock, self.topology, self.tell)
        self.cluster.advertised = faults.advertised
        faults.settle(self.cluster.nodes)
        self.users = Users(dict(settings.users))
        self.cluster.configs.settle(in_force(settings))
        self.quotas = Quotas()
        everyone = self.cluster.configs.broker("allow.everyone.if.no.acl.found") == "true"
        self.acls = Acls(settings.super_users, open=everyone)
        self.happenings: deque[Happening] = deque(maxlen=TOLD)
        self.watching: list[Callable[[Happening], None]] = []

    def tell(self, kind: str, who: str, text: str, **facts: Any) -> None:
        """Something happened that a person would want to see."""
        happening = Happening(self.clock.now(), kind, who[:LONGEST], text[:LONGEST], facts)
        self.happenings.append(happening)
        for watch in self.watching:
            watch(happening)

    def create(
        self, name: str, partitions: int, replicas: int | None = None, config: Mapping[str, str] | None = None
    ) -> Topic:
        """A topic that was named; replicas: default.replication.factor otherwise. Raises Refused."""
        self.cluster.configs.replace(TOPIC, name, config or {}, dry=True)
        topic = self.cluster.create(name, partitions, replicas or self.replicas)
        if config:
            self.cluster.configs.replace(TOPIC, name, config)
        self.tell("topic", name, f"created with {partitions} partition{'s' * (partitions != 1)}")
        return topic

    @property
    def replicas(self) -> int:
        return int(self.cluster.configs.broker("default.replication.factor"))

    def internal(self, name: str) -> None:
        """Makes an internal topic when its coordinator is looked for, as Kafka does; nothing is in it."""
        if name not in self.cluster.topics:
            copies = min(self.replicas, len(self.cluster.alive))
            with suppress(Refused):  # no room is no reason to have no coordinator
                self.cluster.create(name, self.settings.transactions.offsets_topic_num_partitions, copies)
