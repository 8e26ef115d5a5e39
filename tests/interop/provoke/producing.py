"""Troubles of those who write: batches, sizes, sequences."""

from __future__ import annotations

import json
import time
from typing import Any

from confluent_kafka import Message
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import TopicPartition
from scenarios import Scenario, Stage


def small_topic(stage: Stage) -> None:
    stage.create(partitions=4, max_message_bytes=10_000)


def compacted(stage: Stage) -> None:
    stage.create(cleanup_policy="compact")


def told(error: Any, message: Message) -> None:
    if error is not None:
        print(f"  {message.topic()}: {error.name()}")


def too_large(stage: Stage) -> None:
    """A record of 20,000 bytes for a topic whose max.message.bytes is 10,000: MESSAGE_TOO_LARGE, between others."""
    producer = stage.producer("big", linger_ms=0)
    for number in range(6):
        large = number == 3 and stage.sick
        if large:
            stage.found("message-too-large", topic=stage.topic, partition=0, client_id="big")
        producer.produce(stage.topic, value="x" * (20_000 if large else 200), partition=0, callback=told)
        producer.flush(10)
        time.sleep(0.3)


def invalid_record(stage: Stage) -> None:
    """A record without a key for a compacted topic: INVALID_RECORD, with the broker's own message."""
    producer = stage.producer("keyless", linger_ms=0)
    for number in range(5):
        key = None if stage.sick and number == 2 else f"key-{number}"
        if key is None:
            stage.found("invalid-record", topic=stage.topic, partition=0, client_id="keyless")
        producer.produce(stage.topic, value="x", key=key, partition=0, callback=told)
        producer.flush(10)
        time.sleep(0.2)


def sequence_gap(stage: Stage) -> None:
    """An idempotent kafka-python producer whose client was made to skip three sequence numbers, as if a batch had been
    lost: OUT_OF_ORDER_SEQUENCE_NUMBER."""
    producer = KafkaProducer(
        bootstrap_servers=stage.cluster.address,
        client_id="idempotent",
        enable_idempotence=True,
        linger_ms=0,
        retries=2,
        delivery_timeout_ms=4000,
        request_timeout_ms=2000,
    )
    for number in range(8):
        if stage.sick and number == 5:
            manager = producer._transaction_manager
            manager.increment_sequence_number(TopicPartition(stage.topic, 0), 3)
            stage.found("sequence-gap", topic=stage.topic, partition=0, client_id="idempotent")
        try:
            producer.send(stage.topic, b"order %d" % number, partition=0).get(10)
        except KafkaError as wrong:
            print(f"  {type(wrong).__name__}")
        time.sleep(0.1)
    producer.close(3)


def tiny_batches(stage: Stage) -> None:
    """60 records a second for 5 s, each a batch and a request of its own (linger.ms=0). Healthy: linger.ms=200."""
    producer = stage.producer("chatty", linger_ms=0 if stage.sick else 200)
    if stage.sick:
        stage.found("tiny-batches", client_id="chatty", topic=stage.topic)
    for number in range(300):
        producer.produce(stage.topic, value=f"tick {number}", partition=0)
        producer.poll(0)
        time.sleep(1 / 60)
    producer.flush(10)


def event(number: int) -> bytes:
    row = {"customer": number % 50, "article": f"article-{number % 20}", "note": "as ordered " * 60}
    return json.dumps(row).encode()


def uncompressed(stage: Stage) -> None:
    """1.4 MB/s of JSON for 4 s without compression; the healthy one with zstd."""
    producer = stage.producer("plain", linger_ms=50, compression_type="none" if stage.sick else "zstd")
    if stage.sick:
        stage.found("uncompressed", client_id="plain", topic=stage.topic)
    for step in range(80):
        for number in range(94):
            producer.produce(stage.topic, value=event(step * 94 + number), partition=number % 4)
        producer.poll(0)
        time.sleep(0.05)
    producer.flush(10)


def hot_partition(stage: Stage) -> None:
    """Nine records of ten have the same key: one of four partitions gets most of the bytes. Healthy: many keys."""
    producer = stage.producer("keyed", linger_ms=20, partitioner="murmur2_random")
    if stage.sick:
        stage.found("hot-partition", topic=stage.topic)
    for number in range(3000):
        key = "the-same" if stage.sick and number % 10 else f"customer-{number}"
        producer.produce(stage.topic, value=f"{number} ".ljust(300, "x"), key=key)
        producer.poll(0)
        if number % 20 == 0:
            time.sleep(0.03)
    producer.flush(10)


def connection_churn(stage: Stage) -> None:
    """A new producer for each of 20 records; the healthy one uses one for all."""
    if stage.sick:
        stage.found("connection-churn", client_id="one-shot")
    producer = None
    for number in range(24):
        if producer is None or stage.sick:
            producer = stage.producer("one-shot", linger_ms=0)
        producer.produce(stage.topic, value=f"order {number}", partition=0)
        producer.flush(10)
        time.sleep(0.3)


def plain_topic(stage: Stage) -> None:
    stage.create(partitions=4)


SCENARIOS = {
    "message-too-large": Scenario(too_large, small_topic),
    "invalid-record": Scenario(invalid_record, compacted),
    "sequence-gap": Scenario(sequence_gap, plain_topic),
    "tiny-batches": Scenario(tiny_batches, plain_topic),
    "uncompressed": Scenario(uncompressed, plain_topic),
    "hot-partition": Scenario(hot_partition, plain_topic),
    "connection-churn": Scenario(connection_churn, plain_topic),
}
