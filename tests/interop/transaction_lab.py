"""What a script of transactional requests is written with: producers on raw sockets, and a transcript of every step.

The requests of a script go out one after the other, each when the one before is answered. After what ends a transaction
the script waits until its markers are written, for nobody can say how long that takes. Topics are the script's own.
"""

# mypy: disable-error-code="dict-item"

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from coordinator_lab import Body, Client, NotOffered

import kwire
from kwire.codec.library import builtin_library
from kwire.records import build
from kwire.render.jsonform import to_jsonable

RETRIED = (14, 15, 16, 51)  # while the coordinator starts


@dataclass(slots=True)
class Producer:
    """As its client knows it. id: the transactional one."""

    name: str
    id: str | None
    producer: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def who(self) -> Body:
        return {"TransactionalId": self.id, "ProducerId": self.producer, "ProducerEpoch": self.epoch}


@dataclass
class TxnLab:
    """One script's run. name: the transcript's; topic: the one that the script has, with three partitions."""

    name: str
    address: tuple[str, int]
    versions: dict[str, tuple[int, int]]
    admin: Client
    steps: list[dict[str, Any]] = field(default_factory=list)
    clients: dict[str, Client] = field(default_factory=dict)
    denied: str | None = None
    begun: float = field(default_factory=time.monotonic)

    @property
    def topic(self) -> str:
        return f"{self.name}-t"

    @property
    def new(self) -> bool:
        """Whether epochs rise with each transaction (transaction.version 2)."""
        return self.versions["EndTxn"][1] >= 5

    def newest(self, api: str) -> int:
        """The newest version of the broker and kwire; of those that name topics by id, the last that does not."""
        high = min(self.versions[api][1], max(builtin_library().registry.find(api).definition.messages[0].versions))
        return min(high, {"Produce": 12, "Fetch": 12}.get(api, high))

    def now_ms(self) -> float:
        return round((time.monotonic() - self.begun) * 1000, 1)

    async def ask(self, client: str, api: str, version: int | None, body: Body) -> Body:
        """Sends a request, waits for its answer and keeps both. version None: the newest."""
        if client not in self.clients:
            self.clients[client] = await Client.connect(client, self.address)
        version = self.newest(api) if version is None else version
        low, high = self.versions.get(api, (0, -1))
        if not low <= version <= high:
            raise NotOffered(f"{api} v{version}: the broker knows {low} to {high}")
        whole = kwire.decode(f"{api}Request", version, kwire.encode(f"{api}Request", version, body))
        step = {"at_ms": self.now_ms(), "client": client, "api": api, "version": version, "request": to_jsonable(whole)}
        self.steps.append(step)
        got = await self.clients[client].ask(api, version, body)
        if api == "ListTransactions":  # other scripts run beside this one
            got["TransactionStates"] = [
                r for r in got["TransactionStates"] if r["TransactionalId"].startswith(self.name)
            ]
        step["response"] = to_jsonable(got)
        return got

    def producer(self, name: str = "a", suffix: str = "") -> Producer:
        return Producer(name, self.name + suffix)

    def preset(self, producer: Producer, epoch: int) -> None:
        """What the transcript's reader has to do by itself: the epoch was raised by many requests that are not kept."""
        self.steps.append({"at_ms": self.now_ms(), "epochs": {producer.id: epoch}})
        producer.epoch = epoch

    async def deny(self, name: str, kinds: tuple[int, ...]) -> None:
        """Nobody may do anything with what has this prefix; a topic of that name is made before."""
        topic = {"Name": name, "NumPartitions": 3, "ReplicationFactor": 1}
        await self.admin.ask("CreateTopics", 7, {"Topics": [topic], "TimeoutMs": 5000})
        await asyncio.sleep(0.5)
        rule = {"ResourceName": name, "ResourcePatternType": 4, "Principal": "User:ANONYMOUS", "Host": "*"}
        rules = [rule | {"ResourceType": kind, "Operation": 2, "PermissionType": 2} for kind in kinds]
        made = await self.admin.ask("CreateAcls", 3, {"Creations": rules})
        assert all(row["ErrorCode"] == 0 for row in made["Results"]), made
        self.denied = name
        await asyncio.sleep(0.5)
        self.begun = time.monotonic()

    async def settled(self, *ids: str) -> None:
        """Waits until no transaction of the script is being ended."""
        while True:
            wanted = {"TransactionalIds": list(ids or (self.name, f"{self.name}-2"))}
            states = (await self.admin.ask("DescribeTransactions", 0, wanted))["TransactionStates"]
            if not any(row["TransactionState"].startswith("Prepare") for row in states):
                return
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        for client in self.clients.values():
            client.writer.close()

    # ------------------------------------------------------------ a producer's life

    async def init(self, producer: Producer, version: int | None = None, *, again: bool = False, **fields: Any) -> Body:
        """InitProducerId; again: it names the id and epoch that it has."""
        version = self.newest("InitProducerId") if version is None else version
        body: Body = {"TransactionalId": producer.id, "TransactionTimeoutMs": 60_000}
        if version >= 3 and again:
            body |= {"ProducerId": producer.producer, "ProducerEpoch": producer.epoch}
        got = await self.ask(producer.name, "InitProducerId", version, body | fields)
        if got["ErrorCode"] == 0:
            producer.producer, producer.epoch = got["ProducerId"], got["ProducerEpoch"]
            producer.sequences.clear()
        await self.settled()
        return got

    async def add(self, producer: Producer, *partitions: int, version: int = 3, topic: str = "", **fields: Any) -> Body:
        """AddPartitionsToTxn as clients send it (up to v3)."""
        topics = [{"Name": topic or self.topic, "Partitions": list(partitions or (0,))}]
        body = {f"V3AndBelow{key}": value for key, value in producer.who.items()} | {"V3AndBelowTopics": topics}
        return await self.ask(producer.name, "AddPartitionsToTxn", version, body | fields)

    async def verify(
        self, producer: Producer, *partitions: int, version: int = 4, only: bool = True, **fields: Any
    ) -> Body:
        """AddPartitionsToTxn as brokers send it."""
        topics = [{"Name": self.topic, "Partitions": list(partitions or (0,))}]
        row = producer.who | {"VerifyOnly": only, "Topics": topics} | fields
        return await self.ask(producer.name, "AddPartitionsToTxn", version, {"Transactions": [row]})

    async def produce(
        self, producer: Producer, partition: int = 0, *, version: int = 11, count: int = 1, sequence: int | None = None,
        transactional: bool = True, topic: str = "", **fields: Any,
    ) -> Body:  # fmt: skip
        """One batch; the next sequence, unless one is given."""
        place = (topic or self.topic, partition)
        first = producer.sequences.get(place, 0) if sequence is None else sequence
        batch = build(
            [(b"key", f"{producer.name} {first + n}".encode()) for n in range(count)],
            timestamp=int(time.time() * 1000), producer_id=fields.pop("producer_id", producer.producer),
            producer_epoch=fields.pop("epoch", producer.epoch), base_sequence=first, is_transactional=transactional,
        )  # fmt: skip
        rows = [{"Name": place[0], "PartitionData": [{"Index": partition, "Records": batch}]}]
        body = {"TransactionalId": producer.id if transactional else None, "Acks": -1, "TimeoutMs": 10_000}
        got = await self.ask(producer.name, "Produce", version, body | {"TopicData": rows} | fields)
        if got["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0 and sequence is None:
            producer.sequences[place] = first + count
        return got

    async def end(self, producer: Producer, *, commit: bool = True, version: int = 4, **fields: Any) -> Body:
        """EndTxn, and what it says of id and epoch is believed."""
        got = await self.ask(producer.name, "EndTxn", version, producer.who | {"Committed": commit} | fields)
        if got["ErrorCode"] == 0 and version >= 5:
            producer.producer, producer.epoch = got["ProducerId"], got["ProducerEpoch"]
            producer.sequences.clear()
        await self.settled()
        return got

    async def add_offsets(self, producer: Producer, version: int = 3, **fields: Any) -> Body:
        return await self.ask(producer.name, "AddOffsetsToTxn", version, producer.who | {"GroupId": self.name} | fields)

    async def commit_offsets(self, producer: Producer, offset: int, version: int = 3, **fields: Any) -> Body:
        rows = [{"PartitionIndex": 0, "CommittedOffset": offset, "CommittedMetadata": "m"}]
        body = producer.who | {"GroupId": self.name, "Topics": [{"Name": self.topic, "Partitions": rows}]}
        return await self.ask(producer.name, "TxnOffsetCommit", version, body | fields)

    # ------------------------------------------------------------ looks from outside

    async def fetch(self, offset: int = 0, partition: int = 0, *, version: int = 12, most: int = 1 << 20) -> None:
        """What a reader of committed records gets, and one of all."""
        for isolation in (1, 0):
            part = {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": most}
            topics = [{"Topic": self.topic, "Partitions": [part]}]
            body: Body = {"MaxWaitMs": 0, "MinBytes": 0, "IsolationLevel": isolation, "Topics": topics}
            await self.ask("reader", "Fetch", version, body | {"MaxBytes": 1 << 20})

    async def look(self, *partitions: int) -> None:
        """Where the partitions end, who produces to them, and the transactions."""
        for isolation in (1, 0):
            rows = [{"PartitionIndex": index, "Timestamp": -1} for index in partitions or (0,)]
            body = {"ReplicaId": -1, "IsolationLevel": isolation, "Topics": [{"Name": self.topic, "Partitions": rows}]}
            await self.ask("reader", "ListOffsets", 7, body)
        rows = [{"Name": self.topic, "PartitionIndexes": list(partitions or (0,))}]
        await self.ask("reader", "DescribeProducers", 0, {"Topics": rows})
        await self.describe()

    async def describe(self) -> None:
        wanted = {"TransactionalIds": [self.name, f"{self.name}-2"]}
        await self.ask("reader", "DescribeTransactions", 0, wanted)

    async def fetch_offsets(self) -> None:
        """The group's committed offset, as one that wants stable ones sees it, and one that does not."""
        for stable in (True, False):
            topics = [{"Name": self.topic, "PartitionIndexes": [0]}]
            body = {"Groups": [{"GroupId": self.name, "Topics": topics}], "RequireStable": stable}
            await self.ask("reader", "OffsetFetch", 8, body)
