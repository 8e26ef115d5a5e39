"""A client for kwire check: produces five records and reads them in a group, for some seconds. Run it as
kwire check --client 'python tests/interop/check_client.py LIBRARY {broker} {topic}'; LIBRARY is librdkafka,
kafka-python or aiokafka.
"""

from __future__ import annotations

import asyncio
import sys
import time

COUNT, READING = 5, 12.0  # records; seconds for which they are read
GROUP = {"group_id": "check", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 500,
         "session_timeout_ms": 6000, "auto_commit_interval_ms": 500}  # fmt: skip


def librdkafka(broker: str, topic: str) -> int:
    """How many records came."""
    from confluent_kafka import Consumer, Producer

    shared = {"bootstrap.servers": broker, "client.id": "check"}
    producer = Producer({**shared, "enable.idempotence": True, "linger.ms": 5, "retry.backoff.ms": 100})
    for number in range(COUNT):
        producer.produce(topic, f"{number}".encode())
        producer.poll(0)
        time.sleep(0.1)
    producer.flush(20)
    consumer = Consumer({**shared, **{name.replace("_", "."): value for name, value in GROUP.items()}})
    consumer.subscribe([topic])
    count, until = 0, time.monotonic() + READING
    while time.monotonic() < until:
        message = consumer.poll(0.2)
        count += message is not None and message.error() is None
    consumer.close()
    return count


def kafka_python(broker: str, topic: str) -> int:
    """How many records came."""
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=broker, client_id="check", enable_idempotence=True)
    for number in range(COUNT):
        producer.send(topic, f"{number}".encode())
        time.sleep(0.1)
    producer.flush(20)
    producer.close()
    consumer = KafkaConsumer(topic, bootstrap_servers=broker, client_id="check", **GROUP)
    count, until = 0, time.monotonic() + READING
    while time.monotonic() < until:
        count += sum(map(len, consumer.poll(200).values()))
    consumer.close()
    return count


async def aiokafka(broker: str, topic: str) -> int:
    """How many records came."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=broker, client_id="check", enable_idempotence=True)
    await producer.start()
    for number in range(COUNT):
        await producer.send_and_wait(topic, f"{number}".encode())
        await asyncio.sleep(0.1)
    await producer.stop()
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker, client_id="check", **GROUP)
    await consumer.start()
    count, until = 0, time.monotonic() + READING
    while time.monotonic() < until:
        count += sum(map(len, (await consumer.getmany(timeout_ms=200)).values()))
    await consumer.stop()
    return count


def main() -> int:
    library, broker, topic = sys.argv[1:4]
    if library == "aiokafka":
        count = asyncio.run(aiokafka(broker, topic))
    else:
        count = {"librdkafka": librdkafka, "kafka-python": kafka_python}[library](broker, topic)
    return 0 if count >= COUNT else 3


if __name__ == "__main__":
    sys.exit(main())
