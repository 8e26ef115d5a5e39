# mypy: disable-error-code="attr-defined, call-arg, arg-type, no-untyped-call, union-attr, func-returns-value"
"""What librdkafka can do, by confluent-kafka: librdkafka.py ADDRESS. Administration is in librdkafka_admin.py."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from features import LATELY, Features, check, try_all

LATE = 60.0
VALUES = [b"v%d" % n for n in range(10)]
ISOLATED = {"isolation.level": "read_committed"}


class Rdkafka:
    def __init__(self, address: str) -> None:
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address})

    def topic(self, name: str, partitions: int = 1, **config: str) -> None:
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=config)], request_timeout=LATE)
        made[name].result(LATE)

    def producer(self, **settings: Any) -> Any:
        return Producer({"bootstrap.servers": self.address, "linger.ms": 1, "retry.backoff.ms": 20} | settings)

    def consumer(self, group: str, **settings: Any) -> Any:
        shared = {"bootstrap.servers": self.address, "group.id": group, "auto.offset.reset": "earliest"}
        return Consumer(shared | settings)

    def send(self, topic: str, **settings: Any) -> None:
        failed: list[object] = []
        producer = self.producer(**settings)
        for value in VALUES:
            producer.produce(topic, value, on_delivery=lambda error, _: error and failed.append(error))
        check(producer.flush(LATE) == 0 and not failed, failed)

    def filled(self, topic: str, **settings: Any) -> None:
        self.topic(topic)
        self.send(topic, **settings)

    def read(self, topic: str, wanted: int, **settings: Any) -> list[Any]:
        """Of partition 0, from its start: so many records, or, when none are wanted, what comes in a second."""
        consumer = self.consumer("reader", **settings)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        end = time.monotonic() + (LATE if wanted else 1)
        while len(found) < (wanted or 1) and time.monotonic() < end:
            record = consumer.poll(0.1)
            if record is not None and record.error() is None:
                found.append(record)
        consumer.close()
        check(len(found) == wanted, f"{len(found)} records")
        return found

    # ------------------------------------------------------------ producing, transactions

    def produced(self, **settings: Any) -> Callable[[str], object]:
        def run(topic: str) -> None:
            self.filled(topic, **settings)
            check([each.value() for each in self.read(topic, 10)] == VALUES)

        return run

    def headers(self, topic: str) -> None:
        self.topic(topic)
        producer = self.producer()
        producer.produce(topic, None, b"k", headers={"h": b"x"}, timestamp=LATELY)
        producer.flush(LATE)
        found = self.read(topic, 1)[0]
        check((found.headers(), found.timestamp()[1], found.value()) == ([("h", b"x")], LATELY, None))

    def begun(self, topic: str) -> Any:
        producer = self.producer(**{"transactional.id": topic})
        producer.init_transactions(LATE)
        producer.begin_transaction()
        for value in VALUES:
            producer.produce(topic, value)
        producer.flush(LATE)
        return producer

    def commits(self, topic: str) -> None:
        self.topic(topic)
        producer = self.begun(topic)
        self.read(topic, 0, **ISOLATED)
        producer.commit_transaction(LATE)
        self.read(topic, 10, **ISOLATED)

    def aborts(self, topic: str) -> None:
        self.topic(topic)
        self.begun(topic).abort_transaction(LATE)
        self.read(topic, 0, **ISOLATED)
        self.read(topic, 10, **{"isolation.level": "read_uncommitted"})

    def transfers(self, topic: str) -> None:
        self.filled(topic)
        consumer = self.consumer(topic, **{"enable.auto.commit": False})
        consumer.subscribe([topic])
        check(len(consumer.consume(10, LATE)) == 10)
        producer = self.producer(**{"transactional.id": topic})
        producer.init_transactions(LATE)
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), LATE
        )
        producer.commit_transaction(LATE)
        check(consumer.committed([TopicPartition(topic, 0)], LATE)[0].offset == 10)
        consumer.close()

    def fenced(self, topic: str) -> None:
        self.topic(topic)
        first = self.begun(topic)
        self.producer(**{"transactional.id": topic}).init_transactions(LATE)
        try:
            first.commit_transaction(LATE)
        except KafkaException as expected:
            check(expected.args[0].fatal(), expected)
        else:
            raise ValueError("not fenced")
        self.read(topic, 0, **ISOLATED)

    # ------------------------------------------------------------ consuming, groups

    def by_time(self, topic: str) -> None:
        self.topic(topic)
        producer = self.producer()
        for second in range(1, 5):
            producer.produce(topic, b"v", timestamp=LATELY + second * 1_000)
        producer.flush(LATE)
        consumer = self.consumer("reader")
        check(consumer.offsets_for_times([TopicPartition(topic, 0, LATELY + 2_500)], LATE)[0].offset == 2)
        check(consumer.get_watermark_offsets(TopicPartition(topic, 0), LATE) == (0, 4))
        consumer.close()

    def group(self, **settings: Any) -> Callable[[str], object]:
        """Two members share four partitions; one leaves, the other has them all."""

        def run(topic: str) -> None:
            self.topic(topic, 4)
            first, second = self.consumer(topic, **settings), self.consumer(topic, **settings)
            first.subscribe([topic])
            second.subscribe([topic])
            self.until(lambda: len(first.assignment()) == 2 == len(second.assignment()), first, second)
            second.close()
            self.until(lambda: len(first.assignment()) == 4, first)
            first.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
            check(first.committed([TopicPartition(topic, 0)], LATE)[0].offset == 3)
            first.close()

        return run

    def until(self, done: Callable[[], bool], *consumers: Any) -> None:
        end = time.monotonic() + LATE
        while not done():
            check(time.monotonic() < end, [consumer.assignment() for consumer in consumers])
            for consumer in consumers:
                consumer.poll(0.05)

    def static(self, protocol: str) -> Callable[[str], object]:
        """A member that comes back within its session under its instance id reads on."""

        def run(topic: str) -> None:
            self.filled(topic)
            settings = {"group.instance.id": "i", "group.protocol": protocol}
            for _ in range(2):
                consumer = self.consumer(topic, **settings)
                consumer.subscribe([topic])
                check(len(consumer.consume(10, LATE)) == 10)
                consumer.close()
                self.send(topic)

        return run

    def pattern(self, protocol: str) -> Callable[[str], object]:
        def run(topic: str) -> None:
            self.filled(topic)
            consumer = self.consumer(topic, **{"group.protocol": protocol})
            consumer.subscribe([f"^{topic}.*"])
            check(len(consumer.consume(10, LATE)) == 10)
            consumer.close()

        return run

    def auto_create(self, topic: str) -> None:
        self.send(topic)
        check(len(self.admin.list_topics(topic, LATE).topics[topic].partitions))

    def clients(self) -> Features:
        codecs = {f"produce-{codec}": {"compression.type": codec} for codec in ("gzip", "snappy", "lz4", "zstd")}
        acks = {f"produce-acks-{acks}": {"acks": acks} for acks in (0, 1)}
        idempotent = {"produce-idempotent": {"enable.idempotence": True}}
        cooperative = {"partition.assignment.strategy": "cooperative-sticky"}
        return {
            **{name: self.produced(**settings) for name, settings in (codecs | acks | idempotent).items()},
            "produce-headers": self.headers,
            "topic-auto-create": self.auto_create,
            "transaction-commit": self.commits,
            "transaction-abort": self.aborts,
            "transaction-offsets": self.transfers,
            "transaction-fenced": self.fenced,
            "consume-by-time": self.by_time,
            "group-classic": self.group(),
            "group-cooperative": self.group(**cooperative),
            "group-consumer": self.group(**{"group.protocol": "consumer"}),
            "group-static": self.static("classic"),
            "group-consumer-static": self.static("consumer"),
            "consume-pattern": self.pattern("classic"),
            "group-consumer-pattern": self.pattern("consumer"),
        }


def main() -> None:
    from librdkafka_admin import Administration

    rdkafka = Rdkafka(sys.argv[1])
    try_all(rdkafka.clients() | Administration(rdkafka).features(), "librdkafka")
    os._exit(0)  # what hangs is left behind


if __name__ == "__main__":
    main()
