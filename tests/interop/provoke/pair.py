"""A producer of two records a second and a member of a group, for so many seconds: pair.py LIBRARY ADDRESS TOPIC
SECONDS."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

library, address, topic, lasting = sys.argv[1:]
group, end = f"{topic}-{library}", time.monotonic() + float(lasting)


def librdkafka() -> None:
    base = {"bootstrap.servers": address, "client.id": "librdkafka-writer", "linger.ms": 5}
    producer = Producer(base)
    base = {"bootstrap.servers": address, "client.id": "librdkafka-reader", "group.id": group}
    consumer = Consumer(base)
    consumer.subscribe([topic])
    due = time.monotonic()
    while time.monotonic() < end:
        if time.monotonic() > due:
            producer.produce(topic, value="order")
            due += 0.5
        producer.poll(0)
        consumer.poll(0.1)
    producer.flush(10)
    consumer.close()


def kafka_python() -> None:
    producer = KafkaProducer(bootstrap_servers=address, client_id="kafka-python-writer")
    consumer = KafkaConsumer(topic, bootstrap_servers=address, client_id="kafka-python-reader", group_id=group)
    due = time.monotonic()
    while time.monotonic() < end:
        if time.monotonic() > due:
            producer.send(topic, b"order")
            due += 0.5
        consumer.poll(timeout_ms=100)
    producer.close()
    consumer.close()


async def aiokafka() -> None:
    producer = AIOKafkaProducer(bootstrap_servers=address, client_id="aiokafka-writer")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, client_id="aiokafka-reader", group_id=group)
    await producer.start()
    await consumer.start()

    async def read() -> None:
        async for _ in consumer:
            pass

    reading = asyncio.create_task(read())
    while time.monotonic() < end:
        await producer.send_and_wait(topic, b"order")
        await asyncio.sleep(0.5)
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading
    await producer.stop()
    await consumer.stop()


if library == "aiokafka":
    asyncio.run(aiokafka())
else:
    {"librdkafka": librdkafka, "kafka-python": kafka_python}[library]()
