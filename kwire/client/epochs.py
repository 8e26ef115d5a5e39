"""A consumer in a group of the consumer protocol (KIP-848): one request, ConsumerGroupHeartbeat, does it all.

It joins with epoch 0, tells what it owns when that changes, and leaves with epoch -1. The broker computes the
assignment and says how often to beat. From v1 on the member makes its own id.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple

from kwire.client.bodies import Partition
from kwire.client.consumer import ConsumerConfig
from kwire.client.exchange import Body
from kwire.client.failure import Refusal
from kwire.client.reader import PartitionReader
from kwire.client.topology import GroupPlace
from kwire.wire import uuids

JOINING, LEAVING = 0, -1


class HeartbeatAnswer(NamedTuple):
    """An answer that was no error. assignment: None when it says nothing of it. unknown: topic ids that metadata has
    not named."""

    epoch: int
    interval_ms: int
    assignment: list[Partition] | None
    unknown: int


class EpochMember:
    """beat() is the whole protocol. Raises Failure, Refusal."""

    def __init__(self, place: GroupPlace, options: ConsumerConfig) -> None:
        self.place, self.options = place, options
        self.reader = PartitionReader(place, options.earliest)
        self.member, self.epoch = "", JOINING
        self._told: list[Partition] | None = None

    def beat(self) -> HeartbeatAnswer:
        """Joins when it is no member yet; says what it owns when that is news to the coordinator."""
        exchange = self.place.ask("ConsumerGroupHeartbeat", self._body)
        body = exchange.body()
        if body["ErrorCode"]:
            raise Refusal(exchange, body["ErrorCode"], body["ErrorMessage"])
        if self.epoch != JOINING:
            self._told = list(self.reader.partitions)
        self.member, self.epoch = body["MemberId"] or self.member, body["MemberEpoch"]
        self.reader.member, self.reader.epoch = self.member, self.epoch
        given, unknown = self._given(body)
        if given is not None:
            self.reader.assign(given)
        return HeartbeatAnswer(self.epoch, body["HeartbeatIntervalMs"], given, unknown)

    @property
    def owes(self) -> bool:
        """Whether the coordinator has yet to hear what this member owns."""
        return self._told != self.reader.partitions

    def leave(self) -> int:
        """The error code."""
        self.epoch = LEAVING
        body = self.place.ask("ConsumerGroupHeartbeat", self._body).body()
        self.rejoin()
        return int(body["ErrorCode"])

    def rejoin(self) -> None:
        """The next beat joins, with the same id; nothing is owned any more."""
        self.epoch, self._told = JOINING, None
        self.reader.assign([])

    def _body(self, version: int) -> Body:
        if version >= 1 and not self.member:
            self.member = uuids.to_text(uuid.uuid4())
        body: Body = {"GroupId": self.place.group, "MemberId": self.member, "MemberEpoch": self.epoch}
        body |= {"InstanceId": self.options.instance_id}
        if self.epoch == JOINING:
            topics = [self.place.topic]
            body |= {"SubscribedTopicNames": topics, "RebalanceTimeoutMs": self.options.rebalance_timeout_ms}
            return body | {"TopicPartitions": []}
        if self.epoch > JOINING and self.owes:
            indexes = [index for _, index in self.reader.partitions]
            topic_id = self.place.ids()[self.place.topic]
            owned = [{"TopicId": topic_id, "Partitions": indexes}] if indexes else []
            return body | {"TopicPartitions": owned}
        return body

    def _given(self, body: Body) -> tuple[list[Partition] | None, int]:
        if body["Assignment"] is None:
            return None, 0
        names, out, unknown = self.place.names(), [], 0
        for row in body["Assignment"]["TopicPartitions"]:
            name = names.get(row["TopicId"])
            unknown += name is None
            out += [(name, index) for index in row["Partitions"] if name is not None]
        return out, unknown
