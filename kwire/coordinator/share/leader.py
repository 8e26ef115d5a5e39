"""What a broker that leads partitions keeps for share groups: sessions, and the records in flight of each share
partition. No I/O: whoever asks brings the time and what was read from the logs.

After SharePartitionManager and its caches. A share partition is loaded from the stored state when a member first reads
from it here, and let go when the last connection of its group's members is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kwire.coordinator.share.partition import Ack, SharePartition, ShareRules
from kwire.coordinator.share.sessions import ShareSession, ShareSessions, Spot
from kwire.coordinator.share.states import SharePartitionKey, ShareStates
from kwire.coordinator.types import Check
from kwire.schema.codes import NONE, NOT_LEADER_OR_FOLLOWER, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION


class ShareLeader:
    """rules: the configuration that counts for a group. changed: share partitions in which records became available
    again, or room for more; whoever waits for them drains it."""

    def __init__(self, states: ShareStates, rules: Callable[[str], ShareRules], most_sessions: int = 2_000) -> None:
        self.sessions = ShareSessions(most_sessions)
        self.partitions: dict[SharePartitionKey, SharePartition] = {}
        self.changed: set[SharePartitionKey] = set()
        self._acknowledged: list[SharePartitionKey] = []
        self._states, self._rules = states, rules

    def partition(
        self, place: SharePartitionKey, leader_epoch: int, begin: Callable[[], int]
    ) -> SharePartition | Check:
        """The share partition, loaded if need be; begin: where a group begins that has read nothing yet."""
        found = self.partitions.get(place)
        if found is None or found.leader_epoch != leader_epoch:
            stored = self._states.read(place, leader_epoch)
            if stored is None:
                why = f"partition {place.partition} was not initialised for group {place.group}"
                return Check(1, "initialised", UNKNOWN_SERVER_ERROR, why)
            start = begin() if stored.start < 0 else stored.start
            found = SharePartition(place, stored, start, lambda: self._rules(place.group), self._states)
            found.leader_epoch = leader_epoch
            self.partitions[place] = found
        return found

    def acknowledge(self, group: str, member: str, acks: Mapping[Spot, Sequence[Ack]], now: int) -> dict[Spot, Check]:
        """Each partition's acknowledgements stand or fall by themselves; finish() makes them count."""
        self.tick(now)
        checks: dict[Spot, Check] = {}
        for spot, batches in acks.items():
            place = SharePartitionKey(group, *spot)
            found = self.partitions.get(place)
            if found is None:
                why = f"no member of group {group} reads from partition {spot[1]} here"
                checks[spot] = Check(0, "partition", UNKNOWN_TOPIC_OR_PARTITION, why)
                continue
            check = checks[spot] = found.acknowledge(member, batches, now)
            if check.error == NOT_LEADER_OR_FOLLOWER:
                self.forget(place)
            elif check.error == NONE:
                self._acknowledged.append(place)
        return checks

    def finish(self) -> None:
        """What was acknowledged counts from here on."""
        for place in self._acknowledged:
            found = self.partitions.get(place)
            if found is not None:
                found.finish()
        self.changed.update(self._acknowledged)
        self._acknowledged.clear()

    def close(self, session: ShareSession) -> None:
        """Gives back all that the session's member holds here."""
        self.sessions.close(session.group, session.member)
        self._release(session)

    def hung_up(self, session: ShareSession) -> None:
        """The connection that opened the session is gone. When it was the last one of its group's, nothing is kept of
        the group's partitions but what is stored."""
        if self.sessions.open.get((session.group, session.member)) is session:
            self.close(session)
        if not any(group == session.group for group, _ in self.sessions.open):
            for place in [each for each in self.partitions if each.group == session.group]:
                self.forget(place)

    def _release(self, session: ShareSession) -> None:
        for topic, partition in session.spots:
            place = SharePartitionKey(session.group, topic, partition)
            found = self.partitions.get(place)
            if found is not None and found.release(session.member):
                self.changed.add(place)

    def forget(self, place: SharePartitionKey) -> None:
        """The share partition is not served here any more; what is stored of it stays."""
        if self.partitions.pop(place, None) is not None:
            self.changed.add(place)

    def tick(self, now: int) -> None:
        """Ends the locks that are due."""
        for place, partition in self.partitions.items():
            if partition.due is not None and partition.due <= now and partition.tick(now):
                self.changed.add(place)

    @property
    def due(self) -> int | None:
        """When to tick next, or before."""
        return min((each.due for each in self.partitions.values() if each.due is not None), default=None)
