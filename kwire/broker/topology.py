"""Nodes that come and go, and what that does to who leads what, by the rules of Kafka's controller.

A node that goes down leaves every in-sync set in which others are; a live replica in sync leads instead of it, the
first in the replicas' order. Where none is in sync the partition is offline, unless the topic allows unclean elections
(unclean.leader.election.enable): then any live replica leads, and the log is cut to what that one had. A node that
comes back is in sync again, and leads what was offline for want of it (PartitionChangeBuilder).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from kwire.broker.cluster import Cluster, Topic
from kwire.broker.nodes import Node, counted_nodes
from kwire.broker.partition import OFFLINE, Partition
from kwire.broker.refused import Refused
from kwire.errors import KwireError
from kwire.schema import codes


class Election(Enum):
    """As ElectLeaders numbers them."""

    PREFERRED = 0
    UNCLEAN = 1


class Topology:
    """All of it acts on the cluster at once."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    # ------------------------------------------------------------ nodes

    def add(self, number: int, rack: str | None = None) -> Node:
        """A node more, with nothing on it. Raises KwireError for one that there is."""
        if number in self.cluster.nodes:
            raise KwireError(f"there is a node {number}")
        if not 0 <= number < 1 << 31:
            raise KwireError(f"{number} is no node's id")
        made = self.cluster.nodes[number] = Node(number, rack)
        return made

    def remove(self, number: int) -> None:
        """A node for good: what it had alone is gone, and it is no replica any more. Raises KwireError for the last
        one."""
        self.node(number)
        if len(self.cluster.nodes) == 1:
            raise KwireError(f"node {number} is the last one")
        self.down(number)
        del self.cluster.nodes[number]
        for _, partition in self._partitions():
            if number in partition.replicas:
                left = [node for node in partition.replicas if node != number]
                partition.place(left or [next(iter(self.cluster.nodes))])
                if partition.leader == OFFLINE:
                    self.elect(partition, unclean=True)

    def down(self, number: int) -> None:
        """A node is gone for now. Raises KwireError for one that there is not."""
        node = self.node(number)
        if not node.alive:
            return
        node.alive = False
        for topic, partition in self._partitions():
            if number not in partition.replicas:
                continue
            if partition.in_sync != [number]:  # the last one in sync stays so
                partition.fall_behind([number])
            if partition.leader == number:
                self.elect(partition, self._may_be_unclean(topic))

    def up(self, number: int) -> None:
        """A node is back: it has caught up wherever somebody leads. Raises KwireError for one that there is not."""
        node = self.node(number)
        if node.alive:
            return
        node.alive = True
        for topic, partition in self._partitions():
            if number not in partition.replicas:
                continue
            if partition.leader == OFFLINE:
                self.elect(partition, self._may_be_unclean(topic))
            if partition.leader != OFFLINE:
                partition.catch_up([number])

    def node(self, number: int) -> Node:
        """Raises KwireError."""
        found = self.cluster.nodes.get(number)
        if found is None:
            raise KwireError(f"there is no node {number}; there {counted_nodes(self.cluster.nodes)}")
        return found

    # ------------------------------------------------------------ partitions

    def elect(self, partition: Partition, unclean: bool = False) -> None:
        """The first live replica in sync leads, or else with unclean any live one; or nobody does."""
        alive = [node for node in partition.replicas if self.cluster.nodes[node].alive]
        chosen = next((node for node in alive if node not in partition.behind), None)
        if chosen is None and unclean:
            chosen = next(iter(alive), None)
        if chosen is None:
            chosen = OFFLINE
        if chosen != partition.leader:
            partition.lead(chosen)
            if chosen != OFFLINE:
                partition.catch_up(node for node in alive if node in partition.behind)

    def lead(self, partition: Partition, number: int) -> None:
        """A node leads from now on, if it is up. Raises KwireError."""
        if not self.node(number).alive:
            raise KwireError(f"node {number} is down")
        partition.lead(number)

    def take_offline(self, partition: Partition) -> None:
        """Nobody leads it until it is led again."""
        partition.lead(OFFLINE)

    def set_in_sync(self, partition: Partition, nodes: list[int]) -> None:
        """These replicas are in sync; the others stay behind where they are now, until they are named again. Raises
        KwireError for one that is no replica, or a set without the leader."""
        for number in nodes:
            if number not in partition.replicas:
                raise KwireError(f"node {number} is no replica; the replicas are {partition.replicas}")
        if partition.leader != OFFLINE and partition.leader not in nodes:
            raise KwireError(f"node {partition.leader} leads and is always in sync")
        partition.fall_behind(node for node in partition.replicas if node not in nodes)
        partition.catch_up(nodes)

    def nearer(self, partition: Partition, node: int, rack: str) -> int | None:
        """A replica in sync in the client's rack, when this node leads and is in another, and the cluster selects
        replicas by rack (RackAwareReplicaSelector)."""
        nodes = self.cluster.nodes
        if not rack or partition.leader != node or nodes[node].rack == rack:
            return None
        if not self.cluster.configs.broker("replica.selector.class").endswith("RackAwareReplicaSelector"):
            return None
        return next((each for each in partition.in_sync if nodes[each].alive and nodes[each].rack == rack), None)

    def asked_to_elect(self, partition: Partition, kind: Election) -> None:
        """ElectLeaders. Raises Refused."""
        if kind is Election.UNCLEAN:
            if partition.leader != OFFLINE:
                raise Refused(codes.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
            self.elect(partition, unclean=True)
            if partition.leader == OFFLINE:
                why = "Eligible topic partition leaders are not available."
                raise Refused(codes.ELIGIBLE_LEADERS_NOT_AVAILABLE, why)
            return
        preferred = partition.replicas[0]
        if partition.leader == preferred:
            raise Refused(codes.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
        if not self.cluster.nodes[preferred].alive or preferred in partition.behind:
            raise Refused(codes.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        partition.lead(preferred)

    def _may_be_unclean(self, topic: Topic) -> bool:
        return self.cluster.configs.topic(topic.name, "unclean.leader.election.enable") == "true"

    def _partitions(self) -> Iterator[tuple[Topic, Partition]]:
        for topic in self.cluster.topics.values():
            for partition in topic.partitions:
                yield topic, partition
