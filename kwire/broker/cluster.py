"""Nodes, topics and who leads what: the cluster's metadata, in one place for all nodes.

Leaders are spread over the nodes as Kafka's StripedReplicaPlacer does without racks: one after the other from where the
topic's name points. What becomes of leaders when nodes go down is in topology.py. A coordinator is found by the key's
hash, as a partition of __consumer_offsets would be; while it is down, the next node is the one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID, uuid4

from kwire.broker.configs import Configs
from kwire.broker.context import BrokerLimits
from kwire.broker.log import OVERHEAD, Log, Room
from kwire.broker.nodes import Endpoint, Node, NodeSetup
from kwire.broker.partition import OFFLINE, Partition
from kwire.broker.refused import Refused
from kwire.coordinator.types import KnownTopic
from kwire.counted import counted
from kwire.schema import codes
from kwire.wire.uuids import ZERO, to_text

INTERNAL = ("__consumer_offsets", "__share_group_state", "__transaction_state")
LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class Topic(NamedTuple):
    """A topic; partitions grows in place."""

    name: str
    id: UUID
    partitions: list[Partition]

    @property
    def internal(self) -> bool:
        return self.name in INTERNAL


class Cluster:
    """The metadata. changed: called when topics or their partitions are not what they were."""

    def __init__(self, nodes: Iterable[NodeSetup], limits: BrokerLimits, new_id: Callable[[], UUID] = uuid4) -> None:
        self.id = to_text(new_id())
        self.nodes = {setup.id: Node(setup.id, setup.rack) for setup in nodes}
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[UUID, Topic] = {}
        self.configs = Configs()
        self.room = Room(limits.log, OVERHEAD)
        self.changed: list[Callable[[], None]] = []
        self.advertised: Callable[[str], dict[int | None, tuple[str, int]]] = (
            lambda _: {}
        )  # for an API: by node, None: all
        self.features = 1  # how often the levels of features were set
        self.levels: dict[str, int] = {}  # of features, where they were set
        self.moved = 0  # coordinators have moved on by so many nodes
        self.coordinators: dict[str, int] = {}  # of groups and transactional ids that were moved to a node by name
        self._limits = limits
        self._new_log = self._make_log  # one bound method for all partitions
        self._new_id = new_id
        self._partitions = 0
        self.producers_given = 0
        self.attach: Callable[[str, int, Log], Log] | None = None  # what keeps a topic's partition in files too
        self._group_topics: dict[str, KnownTopic] | None = None  # None: to be made anew

    # ------------------------------------------------------------ nodes

    def address(self, node: int, api: str = "Metadata", listener: str = "") -> Endpoint:
        """A node as clients of a listener are told of it in the answers to an API, true or not."""
        said, known = self.advertised(api), self.nodes[node]
        found = known.at(listener)
        host, port = said.get(node) or said.get(None) or found[1:3]
        return Endpoint(node, host, port, known.rack)

    def addresses(self, api: str = "Metadata", listener: str = "") -> list[Endpoint]:
        """The nodes that are up."""
        return [self.address(node, api, listener) for node in self.alive]

    @property
    def alive(self) -> list[int]:
        return [node.id for node in self.nodes.values() if node.alive]

    def down(self, nodes: Iterable[int]) -> list[int]:
        """Those of them that are not up."""
        return [node for node in nodes if not self.nodes[node].alive]

    @property
    def controller(self) -> int:
        return next(iter(self.alive), -1)

    def coordinator(self, key: str) -> int:
        """The node that looks after a group or a transactional id; -1 when no node is up."""
        chosen = self.coordinators.get(key)
        if chosen is not None and chosen in self.nodes and self.nodes[chosen].alive:
            return chosen
        nodes = list(self.nodes.values())
        first = zlib.crc32(key.encode("utf-8", "surrogateescape")) + self.moved
        turn = (nodes[(first + n) % len(nodes)] for n in range(len(nodes)))
        return next((node.id for node in turn if node.alive), -1)

    def new_producer(self) -> int:
        self.producers_given += 1
        return 999 + self.producers_given

    # ------------------------------------------------------------ topics

    @property
    def size(self) -> int:
        """Topics and partitions."""
        return len(self.topics) + self._partitions

    def find(self, name: str | None, topic_id: UUID | None = None) -> Topic | None:
        """By name, or by id where the name is missing."""
        if topic_id is not None and topic_id != ZERO and not name:
            return self.by_id.get(topic_id)
        return self.topics.get(name or "")

    def partition(
        self, topic: Topic | None, index: int, node: int, epoch: int = -1, any_replica: bool = False
    ) -> Partition:
        """A partition that node leads, or with any_replica has. epoch: what the sender believes, -1 is not checked.
        Raises Refused."""
        if topic is None or not 0 <= index < len(topic.partitions):
            raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
        found = topic.partitions[index]
        if found.leader != node and not (any_replica and node in found.replicas):
            why = "nobody leads it" if found.leader == OFFLINE else f"node {found.leader} leads it"
            raise Refused(codes.NOT_LEADER_OR_FOLLOWER, why)
        if epoch >= 0 and epoch != found.epoch:
            code = codes.FENCED_LEADER_EPOCH if epoch < found.epoch else codes.UNKNOWN_LEADER_EPOCH
            raise Refused(code, f"epoch {epoch}, it is {found.epoch}")
        return found

    def create(
        self,
        name: str,
        count: int,
        replication: int = 1,
        assignments: Iterable[list[int]] = (),
        dry: bool = False,
        topic_id: UUID | None = None,
    ) -> Topic:
        """Makes a topic, or with dry only looks whether it could. Raises Refused."""
        check_name(name)
        if name in self.topics:
            raise Refused(codes.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        replicas = list(assignments)
        if not replicas:
            if count < 1:
                raise Refused(codes.INVALID_PARTITIONS, f"Number of partitions was set to an invalid value: {count}.")
            if not 1 <= replication <= len(self.alive):
                why = f"The replication factor is {replication}; there are {len(self.alive)} brokers."
                raise Refused(codes.INVALID_REPLICATION_FACTOR, why)
            self._allow(count)
            replicas = [self._placed(name, index, replication) for index in range(count)]
        self.check_replicas(replicas)
        self._allow(len(replicas), 1)
        partitions = [Partition(index, chosen, self._log_of(name, index)) for index, chosen in enumerate(replicas)]
        topic = Topic(name, topic_id or self._new_id(), partitions)
        if not dry:
            self.topics[name] = self.by_id[topic.id] = topic
            self._partitions += len(partitions)
            self._tell()
        return topic

    def grow(self, name: str, count: int, assignments: Iterable[list[int]] = (), dry: bool = False) -> None:
        """More partitions for a topic. Raises Refused."""
        topic = self.topics.get(name)
        if topic is None:
            raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        have = len(topic.partitions)
        if count <= have:
            raise Refused(
                codes.INVALID_PARTITIONS, f"The topic has {counted(have, 'partition')} already; {count} is not more."
            )
        self._allow(count - have)
        width = len(topic.partitions[0].replicas)
        given = list(assignments)
        if dry and not given:
            return
        replicas = given or [self._placed(name, index, width) for index in range(have, count)]
        if len(replicas) != count - have:
            raise Refused(
                codes.INVALID_REPLICA_ASSIGNMENT, f"{len(replicas)} assignments for {count - have} partitions"
            )
        self.check_replicas(replicas)
        if not dry:
            topic.partitions.extend(
                Partition(have + n, chosen, self._log_of(name, have + n)) for n, chosen in enumerate(replicas)
            )
            self._partitions += len(replicas)
            self._tell()

    def delete(self, topic: Topic) -> None:
        """The topic and all that is in it."""
        del self.topics[topic.name], self.by_id[topic.id]
        self._partitions -= len(topic.partitions)
        for partition in topic.partitions:
            if partition.used is not None:
                partition.used.close()
        self.configs.forget_topic(topic.name)
        self._tell()

    def move_leader(self, partition: Partition) -> None:
        """The next node that is up leads from now on; where it was no replica, it is one in place of the leader."""
        nodes, before = self.alive, partition.leader
        if nodes:
            chosen = nodes[(nodes.index(before) + 1 if before in nodes else 0) % len(nodes)]
            if chosen not in partition.replicas:
                partition.place([chosen if node == before else node for node in partition.replicas])
            partition.lead(chosen)

    def group_topics(self) -> dict[str, KnownTopic]:
        """What a group coordinator must know of the topics."""
        if self._group_topics is None:
            topics = self.topics.items()
            self._group_topics = {name: KnownTopic(name, topic.id, len(topic.partitions)) for name, topic in topics}
        return self._group_topics

    def _tell(self) -> None:
        self._group_topics = None
        for call in self.changed:
            call()

    def _log_of(self, topic: str, index: int) -> Callable[[], Log]:
        """What makes a partition's log."""
        attach = self.attach
        if attach is None:
            return self._new_log
        return lambda: attach(topic, index, self._make_log())

    def _make_log(self) -> Log:
        return Log(self.room, self._limits.producers)

    def _placed(self, name: str, index: int, width: int) -> list[int]:
        nodes = self.alive if len(self.alive) >= width else list(self.nodes)
        first = zlib.crc32(name.encode()) + index
        return [nodes[(first + n) % len(nodes)] for n in range(width)]

    def check_replicas(self, replicas: list[list[int]]) -> None:
        for chosen in replicas:
            if not chosen or len(set(chosen)) != len(chosen) or any(node not in self.nodes for node in chosen):
                raise Refused(codes.INVALID_REPLICA_ASSIGNMENT, f"replicas {chosen}; the nodes are {list(self.nodes)}")

    def _allow(self, partitions: int, topics: int = 0) -> None:
        if self._partitions + partitions > self._limits.partitions or len(self.topics) + topics > self._limits.topics:
            why = f"this broker holds at most {self._limits.topics} topics and {self._limits.partitions} partitions"
            raise Refused(codes.POLICY_VIOLATION, why)


def check_name(name: str) -> None:
    """Raises Refused for a name that no topic may have (Kafka's Topic.validate)."""
    if not LEGAL.fullmatch(name) or name in (".", ".."):
        raise Refused(
            codes.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: 1 to 249 of a-z A-Z 0-9 . _ - and not . or .."
        )
