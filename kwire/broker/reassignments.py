"""Partitions on their way to other replicas.

A new replica copies the log first: until then the partition has the old replicas and the new ones, the new ones not in
sync, and the reassignment is listed and can be cancelled. Here copying takes as long as a follower's first fetches, and
where the topic's replicas are throttled as long as that many bytes need. A node that is down copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.broker.cluster import Topic
from kwire.broker.configs import THROTTLES
from kwire.broker.context import MS, Clock
from kwire.broker.partition import Partition
from kwire.broker.refused import Refused
from kwire.broker.topology import Topology
from kwire.schema import codes

AT_LEAST = 200 * MS
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class Reassignment(NamedTuple):
    """before, target: the replicas; adding and removing: what is between them."""

    topic: Topic
    partition: Partition
    before: list[int]
    target: list[int]
    adding: list[int]
    removing: list[int]


class Reassignments:
    """Those that are under way. tell: says what happened, as (kind, who, text)."""

    def __init__(self, clock: Clock, topology: Topology, tell: Callable[[str, str, str], None]) -> None:
        self._clock, self._topology, self._cluster, self._tell = clock, topology, topology.cluster, tell
        self.going: dict[Partition, Reassignment] = {}

    def begin(self, topic: Topic, partition: Partition, target: list[int]) -> None:
        """Another one of the partition ends where it stands."""
        there = self.going.pop(partition, None)
        before = partition.replicas if there is None else there.before
        adding = [node for node in target if node not in before]
        removing = [node for node in before if node not in target]
        partition.place([*target, *removing])
        partition.join(adding)
        made = Reassignment(topic, partition, before, target, adding, removing)
        if adding:
            self.going[partition] = made
            self._clock.after(self._time(made), lambda: self._look(made))
        else:
            self._finish(made)

    def cancel(self, partition: Partition) -> None:
        """Raises Refused where there is none."""
        found = self.going.pop(partition, None)
        if found is None:
            raise Refused(codes.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
        self._settle(partition, found.before)

    def settled(self, partition: Partition) -> list[int]:
        """The partition's replicas when all is done."""
        found = self.going.get(partition)
        return partition.replicas if found is None else found.target

    def _time(self, made: Reassignment) -> int:
        configs, used = self._cluster.configs, made.partition.used
        size = used.size if used is not None else 0  # bytes
        if not size or not any(configs.topic(made.topic.name, name) for name in THROTTLED):
            return AT_LEAST
        return max(AT_LEAST, size * 1_000 * MS // max(min(int(configs.broker(name)) for name in THROTTLES), 1))

    def _look(self, made: Reassignment) -> None:
        """Ends it, unless it is none any more, or a new replica has not copied all."""
        if self.going.get(made.partition) is not made:
            return
        if self._cluster.topics.get(made.topic.name) is not made.topic:
            del self.going[made.partition]
        elif self._cluster.down(made.adding):
            self._clock.after(AT_LEAST, lambda: self._look(made))
        else:
            del self.going[made.partition]
            self._finish(made)

    def _finish(self, made: Reassignment) -> None:
        made.partition.catch_up(made.adding)
        self._settle(made.partition, made.target)
        who = f"{made.topic.name}-{made.partition.index}"
        self._tell("moved", who, f"its replicas are {made.target} now")

    def _settle(self, partition: Partition, replicas: list[int]) -> None:
        partition.place(list(replicas))
        partition.fall_behind(self._cluster.down(replicas))
        if partition.leader not in replicas:
            self._topology.elect(partition)
