"""Clients of Python for some seconds, as Steady.java: librdkafka (idempotent, transactional, both group protocols) or
kafka-python (idempotent, classic group).

    python steady.py librdkafka|kafka-python 127.0.0.1:9092 COUNT SECONDS
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

COUNT, SECONDS = int(sys.argv[3]), int(sys.argv[4])
ADDRESS = sys.argv[2]
END = time.monotonic() + SECONDS + 240  # the machine may be busy
STEP = 10  # records of a transaction


class Seen:
    """What a reader has seen."""

    def __init__(self) -> None:
        self.places: dict[bytes, tuple[int, int]] = {}  # partition and offset by value
        self.doubled = self.again = 0

    def add(self, value: Any, partition: Any, offset: Any) -> None:
        place = partition, offset
        before = self.places.get(value)
        self.places[value] = before or place
        self.again += before == place
        self.doubled += before not in (None, place)

    @property
    def waits(self) -> bool:
        return len(self.places) < COUNT and time.monotonic() < END

    def say(self, who: str) -> None:
        say(who, COUNT - len(self.places), self.doubled, self.again)


def say(who: str, lost: int, doubled: int = 0, again: int = 0) -> None:
    print(json.dumps({"who": who, "lost": lost, "doubled": doubled, "again": again}), flush=True)


def librdkafka() -> list[Callable[[], None]]:
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    base: dict[str, Any] = {"bootstrap.servers": ADDRESS, "topic.metadata.refresh.interval.ms": 3000}
    admin = AdminClient(base)
    for future in admin.create_topics([NewTopic(name, 3, 3) for name in ("rdkafka", "rdkafka-txn")]).values():
        future.result()

    def produce() -> None:
        failed: list[Any] = []

        def done(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error)

        producer = Producer({**base, "client.id": "rdkafka-producer", "enable.idempotence": True})
        for number in range(COUNT):
            producer.produce("rdkafka", f"v{number}", on_delivery=done)
            producer.poll(SECONDS / COUNT)
        left = producer.flush(60)
        say("rdkafka producer", left + len(failed))

    def transact() -> None:
        """Every record twice: in a transaction that is aborted, and in one that is committed."""
        producer = Producer({**base, "client.id": "rdkafka-txn", "transactional.id": "rdkafka"})
        producer.init_transactions(60)
        for first in range(0, COUNT, STEP):
            for commit in (False, True):
                while True:
                    producer.begin_transaction()
                    try:
                        for number in range(first, min(first + STEP, COUNT)):
                            producer.produce("rdkafka-txn", f"v{number}")
                        (producer.commit_transaction if commit else producer.abort_transaction)(60)
                        break
                    except KafkaException as error:
                        print(f"rdkafka transaction: {error}", file=sys.stderr)
                        if not error.args[0].txn_requires_abort():
                            raise
                        producer.abort_transaction(60)
            time.sleep(STEP * SECONDS / COUNT)

    def read(who: str, topic: str, protocol: str) -> None:
        consumer = Consumer({
            **base, "client.id": who, "group.id": who, "group.protocol": protocol, "auto.offset.reset": "earliest",
            "isolation.level": "read_committed", "auto.commit.interval.ms": 200,
        })  # fmt: skip
        consumer.subscribe([topic])
        seen = Seen()
        while seen.waits:
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                seen.add(message.value(), message.partition(), message.offset())
        consumer.close()
        seen.say(who)

    return [
        produce, transact, lambda: read("rdkafka-classic", "rdkafka", "classic"),
        lambda: read("rdkafka-consumer", "rdkafka", "consumer"),
        lambda: read("rdkafka-committed", "rdkafka-txn", "classic"),
    ]  # fmt: skip


def kafka_python() -> list[Callable[[], None]]:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

    KafkaAdminClient(bootstrap_servers=ADDRESS).create_topics([NewTopic("kafka-python", 3, 3)])

    def produce() -> None:
        producer = KafkaProducer(
            bootstrap_servers=ADDRESS, client_id="kafka-python-producer", enable_idempotence=True, acks="all",
            delivery_timeout_ms=120_000, metadata_max_age_ms=3000,
        )  # fmt: skip
        sent = []
        for number in range(COUNT):
            sent.append(producer.send("kafka-python", f"v{number}".encode()))
            time.sleep(SECONDS / COUNT)
        producer.flush(60)
        producer.close()
        say("kafka-python producer", sum(not future.succeeded() for future in sent))

    def read() -> None:
        consumer = KafkaConsumer(
            "kafka-python", bootstrap_servers=ADDRESS, client_id="kafka-python", group_id="kafka-python-classic",
            auto_offset_reset="earliest", auto_commit_interval_ms=200, metadata_max_age_ms=3000,
        )  # fmt: skip
        seen = Seen()
        while seen.waits:
            for records in consumer.poll(200).values():
                for record in records:
                    seen.add(record.value, record.partition, record.offset)
        consumer.close()
        seen.say("kafka-python-classic")

    return [produce, read]


def main() -> None:
    works = librdkafka() if sys.argv[1] == "librdkafka" else kafka_python()
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
