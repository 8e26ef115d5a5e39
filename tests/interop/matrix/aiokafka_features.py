# mypy: disable-error-code="import-untyped, import-not-found, no-untyped-call"
"""What aiokafka can do: aiokafka_features.py ADDRESS."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import ProducerFenced
from features import LATELY, Features, check, soon_async, try_all

LATE = 60.0
VALUES = [b"v%d" % n for n in range(10)]


class Aiokafka:
    """Of one feature, in a loop of its own; what it started is stopped at the end."""

    def __init__(self, address: str, stack: AsyncExitStack) -> None:
        self.address, self.stack = address, stack

    async def started(self, made: Any) -> Any:
        await made.start()
        self.stack.push_async_callback(getattr(made, "stop", None) or made.close)
        return made

    async def admin(self) -> Any:
        return await self.started(AIOKafkaAdminClient(bootstrap_servers=self.address))

    async def producer(self, **settings: Any) -> Any:
        return await self.started(AIOKafkaProducer(bootstrap_servers=self.address, **settings))

    async def consumer(self, *topics: str, **settings: Any) -> Any:
        shared = {"bootstrap_servers": self.address, "auto_offset_reset": "earliest", "heartbeat_interval_ms": 200}
        return await self.started(AIOKafkaConsumer(*topics, **(shared | settings)))

    async def topic(self, name: str, partitions: int = 1) -> Any:
        admin = await self.admin()
        await admin.create_topics([NewTopic(name, partitions, 1)])
        return admin

    async def filled(self, topic: str, **settings: Any) -> Any:
        admin = await self.topic(topic)
        producer = await self.producer(**settings)
        for value in VALUES:
            await producer.send(topic, value)
        await producer.flush()
        return admin

    async def read(self, topic: str, wanted: int, **settings: Any) -> None:
        consumer = await self.consumer(**settings)
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        check(await self.polled(consumer, wanted) == wanted)

    async def polled(self, consumer: Any, wanted: int) -> int:
        count, end = 0, time.monotonic() + (LATE if wanted else 1)
        while count < (wanted or 1) and time.monotonic() < end:
            count += sum(map(len, (await consumer.getmany(timeout_ms=200)).values()))
        return count

    async def produced(self, topic: str, **settings: Any) -> None:
        await self.filled(topic, **settings)
        await self.read(topic, 10)

    async def headers(self, topic: str) -> None:
        await self.topic(topic)
        producer = await self.producer()
        await producer.send_and_wait(topic, None, b"k", headers=[("h", b"x")], timestamp_ms=LATELY)
        consumer = await self.consumer(topic)
        found = await asyncio.wait_for(consumer.getone(), LATE)
        check((found.headers, found.timestamp, found.value) == ((("h", b"x"),), LATELY, None), found)

    async def transaction(self, topic: str, commit: bool) -> None:
        await self.topic(topic)
        producer = await self.producer(transactional_id=topic)
        await producer.begin_transaction()
        for value in VALUES:
            await producer.send_and_wait(topic, value)
        await (producer.commit_transaction() if commit else producer.abort_transaction())
        await self.read(topic, 10 if commit else 0, isolation_level="read_committed")

    async def transfers(self, topic: str) -> None:
        await self.filled(topic)
        consumer = await self.consumer(topic, group_id=topic, enable_auto_commit=False)
        check(await self.polled(consumer, 10) == 10)
        producer = await self.producer(transactional_id=topic)
        place = TopicPartition(topic, 0)
        async with producer.transaction():
            await producer.send_offsets_to_transaction({place: 10}, topic)

        async def moved() -> bool:
            return bool(await consumer.committed(place) == 10)

        await soon_async(moved)

    async def fenced(self, topic: str) -> None:
        await self.topic(topic)
        first = await self.producer(transactional_id=topic)
        await first.begin_transaction()
        await first.send_and_wait(topic, b"v")
        await self.producer(transactional_id=topic)
        try:
            await first.commit_transaction()
        except ProducerFenced:
            return
        raise ValueError("not fenced")

    async def by_time(self, topic: str) -> None:
        await self.topic(topic)
        producer, place = await self.producer(), TopicPartition(topic, 0)
        for second in range(1, 5):
            await producer.send_and_wait(topic, b"v", timestamp_ms=LATELY + second * 1_000)
        consumer = await self.consumer(topic)
        check((await consumer.offsets_for_times({place: LATELY + 2_500}))[place].offset == 2)
        check(
            (await consumer.beginning_offsets([place]), await consumer.end_offsets([place])) == ({place: 0}, {place: 4})
        )

    async def group(self, topic: str) -> None:
        await self.topic(topic, 4)
        first = await self.consumer(topic, group_id=topic)
        second = AIOKafkaConsumer(topic, bootstrap_servers=self.address, group_id=topic, heartbeat_interval_ms=200)
        await second.start()
        await self.until(lambda: len(first.assignment()) == 2 == len(second.assignment()), first, second)
        await second.stop()
        await self.until(lambda: len(first.assignment()) == 4, first)
        await first.commit({TopicPartition(topic, 0): 3})
        check(await first.committed(TopicPartition(topic, 0)) == 3)

    async def until(self, done: Callable[[], bool], *consumers: Any) -> None:
        end = time.monotonic() + LATE
        while not done():
            check(time.monotonic() < end, [consumer.assignment() for consumer in consumers])
            for consumer in consumers:
                await consumer.getmany(timeout_ms=50)

    async def static(self, topic: str) -> None:
        await self.filled(topic)
        consumer = await self.consumer(topic, group_id=topic, group_instance_id="i")
        check(await self.polled(consumer, 10) == 10)

    async def pattern(self, topic: str) -> None:
        await self.filled(topic)
        consumer = await self.consumer(group_id=topic)
        consumer.subscribe(pattern=f"^{topic}.*")
        check(await self.polled(consumer, 10) == 10)

    async def topics(self, topic: str) -> None:
        admin = await self.topic(topic)
        await admin.create_partitions({topic: NewPartitions(3)})

        async def grown() -> bool:
            return len((await admin.describe_topics([topic]))[0]["partitions"]) == 3

        async def gone() -> bool:
            return topic not in await admin.list_topics()

        await soon_async(grown)
        await admin.delete_topics([topic])
        await soon_async(gone)

    async def configs(self, topic: str) -> None:
        admin = await self.topic(topic)
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1234567"})])

        async def told() -> bool:
            return "1234567" in str(await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))

        await soon_async(told)

    async def delete_records(self, topic: str) -> None:
        admin, place = await self.filled(topic), TopicPartition(topic, 0)
        check(await admin.delete_records({place: RecordsToDelete(before_offset=4)}) == {place: 4})

    async def groups(self, topic: str) -> None:
        admin, place = await self.filled(topic), TopicPartition(topic, 0)
        consumer = await self.consumer(topic, group_id=topic)
        check(await self.polled(consumer, 10) == 10)
        await consumer.commit()
        check(topic in [name for name, *_ in await admin.list_consumer_groups()])
        check("Stable" in str(await admin.describe_consumer_groups([topic])))
        check((await admin.list_consumer_group_offsets(topic))[place].offset == 10)

    async def cluster(self, _: str) -> None:
        check((await (await self.admin()).describe_cluster())["brokers"])


def features(address: str) -> Features:
    def alone(feature: Callable[..., Awaitable[None]], **settings: Any) -> Callable[[str], None]:
        async def run(topic: str) -> None:
            async with AsyncExitStack() as stack:
                await asyncio.wait_for(feature(Aiokafka(address, stack), topic, **settings), 3 * LATE)

        return lambda topic: asyncio.run(run(topic))

    produced, transaction = partial(alone, Aiokafka.produced), partial(alone, Aiokafka.transaction)
    return {
        "produce": produced(acks=1),
        "produce-acks-0": produced(acks=0),
        "produce-idempotent": produced(enable_idempotence=True),
        **{f"produce-{codec}": produced(compression_type=codec) for codec in ("gzip", "snappy", "lz4", "zstd")},
        "produce-headers": alone(Aiokafka.headers),
        "transaction-commit": transaction(commit=True),
        "transaction-abort": transaction(commit=False),
        "transaction-offsets": alone(Aiokafka.transfers),
        "transaction-fenced": alone(Aiokafka.fenced),
        "consume-by-time": alone(Aiokafka.by_time),
        "consume-pattern": alone(Aiokafka.pattern),
        "group-classic": alone(Aiokafka.group),
        "group-static": alone(Aiokafka.static),
        "topics": alone(Aiokafka.topics),
        "configs-alter-all": alone(Aiokafka.configs),
        "records-delete": alone(Aiokafka.delete_records),
        "groups": alone(Aiokafka.groups),
        "cluster-describe": alone(Aiokafka.cluster),
    }


if __name__ == "__main__":
    try_all(features(sys.argv[1]), "aiokafka")
    os._exit(0)  # what hangs is left behind
