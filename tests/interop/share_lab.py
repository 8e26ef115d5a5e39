"""What a script of a share group's requests is written with: members, their sessions, records that they acknowledge.

The topics are the script's own: NAME-t with two partitions, NAME-u with one.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from coordinator_lab import Body, Lab

from kwire.records import build

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
INITIALISED = 0.6  # seconds within which the broker has initialised a group's partitions


@dataclass(slots=True)
class Reader:
    """A member of a share group. session: the epoch of its next request; held: offsets of the last answers that it has
    not acknowledged, by partition."""

    client: str
    id: str
    epoch: int = 0
    session: int = 0
    held: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class ShareLab(Lab):
    """One script's run."""

    @property
    def topic(self) -> str:
        return f"{self.group}-t"

    def reader(self, client: str) -> Reader:
        return Reader(client, f"{client}-member")

    async def earliest(self) -> None:
        """The group begins with what is there."""
        await self.set_configs({"share.auto.offset.reset": "earliest"})

    async def produce(self, *counts: int, partition: int = 0, topic: str = "", **how: Any) -> None:
        """A batch for each count, with so many records."""
        for count in counts:
            values = [(None, f"{partition} {number}".encode()) for number in range(count)]
            part = {"Index": partition, "Records": build(values, timestamp=int(time.time() * 1000), **how)}
            rows = [{"Name": topic or self.topic, "PartitionData": [part]}]
            body: Body = {"TransactionalId": None, "Acks": -1, "TimeoutMs": 5000, "TopicData": rows}
            await self.ask("producer", "Produce", 9, body)

    async def transactional(self, name: str, count: int, **how: Any) -> None:
        """A batch of a transaction."""
        values = [(None, f"in a transaction {number}".encode()) for number in range(count)]
        data = build(values, timestamp=int(time.time() * 1000), is_transactional=True, **how)
        rows = [{"Name": self.topic, "PartitionData": [{"Index": 0, "Records": data}]}]
        body: Body = {"TransactionalId": name, "Acks": -1, "TimeoutMs": 5000, "TopicData": rows}
        await self.ask("producer", "Produce", 9, body)

    async def hang_up(self, client: str) -> None:
        """The client's connection goes."""
        self.steps.append({"at_ms": self.now_ms(), "client": client, "hangs_up": True})
        self.clients.pop(client).writer.close()
        await asyncio.sleep(0.3)

    # ------------------------------------------------------------ members

    async def beat(self, reader: Reader, epoch: int | None = None, **fields: Any) -> Body:  # type: ignore[override]
        """ShareGroupHeartbeat with the reader's epoch."""
        epoch = reader.epoch if epoch is None else epoch
        body: Body = {"GroupId": self.group, "MemberId": reader.id, "MemberEpoch": epoch}
        if epoch == 0:
            body["SubscribedTopicNames"] = [self.topic]
        answer = await self.ask(reader.client, "ShareGroupHeartbeat", 1, body | fields)
        if not answer["ErrorCode"]:
            reader.epoch = answer["MemberEpoch"]
        return answer

    async def join(self, reader: Reader, **fields: Any) -> None:  # type: ignore[override]
        """Joins, and waits until it has partitions."""
        await self.beat(reader, 0, **fields)
        await asyncio.sleep(INITIALISED)
        await self.beat(reader)

    async def describe(self, client: str = "watcher") -> Body:
        return await self.ask(client, "ShareGroupDescribe", 1, {"GroupIds": [self.group]})

    async def offsets(self, *partitions: int, topic: str = "") -> Body:
        """DescribeShareGroupOffsets of these partitions; of everything when none are named."""
        topics = [{"TopicName": topic or self.topic, "Partitions": list(partitions)}] if partitions else None
        groups = [{"GroupId": self.group, "Topics": topics}]
        return await self.ask("watcher", "DescribeShareGroupOffsets", 1, {"Groups": groups})

    # ------------------------------------------------------------ records

    async def fetch(  # type: ignore[override]
        self, reader: Reader, *partitions: int, most: int = 500, wait: int = 500, acks: Any = None, topic: str = "",
        forget: tuple[int, ...] = (), mode: int = 0, pieces: int = 500, version: int = 2, epoch: int | None = None,
        **fields: Any,
    ) -> Body:  # fmt: skip
        """ShareFetch in the reader's session. acks: by partition, (first, last, type or types)."""
        asked: dict[int, list[Body]] = {index: [] for index in partitions} | _batches(acks)
        body = self._session(reader, epoch) | {
            "MaxWaitMs": wait, "MinBytes": 1 if wait else 0, "MaxBytes": 1 << 20,
            "MaxRecords": most, "BatchSize": pieces,
            "Topics": self._topics(asked, topic),
            "ForgottenTopicsData": self._forgotten(forget, topic),
        }  # fmt: skip
        if version >= 2:
            body["ShareAcquireMode"] = mode
        answer = await self.ask(reader.client, "ShareFetch", version, body | fields)
        self._told(reader, answer, epoch)
        for row in answer["Responses"]:
            for part in row["Partitions"]:
                for each in part["AcquiredRecords"]:
                    offsets = range(each["FirstOffset"], each["LastOffset"] + 1)
                    reader.held.setdefault(part["PartitionIndex"], []).extend(offsets)
        return answer

    async def acknowledge(
        self, reader: Reader, acks: Any, *, version: int = 2, epoch: int | None = None, topic: str = "", **fields: Any
    ) -> Body:
        body = self._session(reader, epoch) | {"Topics": self._topics(_batches(acks), topic)}
        answer = await self.ask(reader.client, "ShareAcknowledge", version, body | fields)
        self._told(reader, answer, epoch)
        return answer

    def _session(self, reader: Reader, epoch: int | None) -> Body:
        epoch = reader.session if epoch is None else epoch
        return {"GroupId": self.group, "MemberId": reader.id, "ShareSessionEpoch": epoch}

    def _told(self, reader: Reader, answer: Body, epoch: int | None) -> None:
        epoch = reader.session if epoch is None else epoch
        if not answer["ErrorCode"]:
            reader.session = epoch + 1 if epoch >= 0 else 0

    def _topics(self, asked: dict[int, list[Body]], topic: str) -> list[Body]:
        rows = [{"PartitionIndex": index, "AcknowledgementBatches": batches} for index, batches in asked.items()]
        return [{"TopicId": self.topic_id(topic or self.topic), "Partitions": rows}] if rows else []

    def _forgotten(self, partitions: tuple[int, ...], topic: str) -> list[Body]:
        topic_id = self.topic_id(topic or self.topic)
        return [{"TopicId": topic_id, "Partitions": list(partitions)}] if partitions else []

    async def alter(self, starts: dict[int, int], topic: str = "", group: str | None = None) -> Body:
        rows = [{"PartitionIndex": index, "StartOffset": start} for index, start in starts.items()]
        topics = [{"TopicName": topic or self.topic, "Partitions": rows}]
        return await self.ask(
            "watcher", "AlterShareGroupOffsets", 0, {"GroupId": group or self.group, "Topics": topics}
        )

    async def forget_offsets(self, *topics: str, group: str | None = None) -> Body:
        rows = [{"TopicName": each} for each in topics or (self.topic,)]
        return await self.ask("watcher", "DeleteShareGroupOffsets", 0, {"GroupId": group or self.group, "Topics": rows})


def _batches(acks: Any) -> dict[int, list[Body]]:
    """AcknowledgementBatches by partition; a list of (first, last, type or types) is of partition 0."""
    if not acks:
        return {}
    by_partition = acks if isinstance(acks, dict) else {0: acks}
    return {
        index: [
            {"FirstOffset": first, "LastOffset": last, "AcknowledgeTypes": [kind] if isinstance(kind, int) else kind}
            for first, last, kind in batches
        ]
        for index, batches in by_partition.items()
    }
