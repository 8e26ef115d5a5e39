"""Records one program, a producer and a consumer of librdkafka on kwire's broker, with one setting as told:
the captures of fixtures/diff. Run it as: python tests/interop/one_setting.py FOLDER [NAME ...]
"""

from __future__ import annotations

import random
import sys
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer

from kwire.testing import Broker

RECORDS, READING = 80, 4.0  # how many are sent; s for which the consumer reads
PAUSES = 0.004, 0.036  # s between two records, at least and at most
PRODUCER = {"client.id": "orders-writer", "linger.ms": 100, "acks": "all", "compression.type": "none"}
CONSUMER = {
    "client.id": "orders-reader", "group.id": "orders", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 200,
    "session.timeout.ms": 10_000, "heartbeat.interval.ms": 500, "auto.commit.interval.ms": 500,
    "topic.metadata.refresh.interval.ms": 500,
}  # fmt: skip
SETTINGS: dict[str, dict[str, object]] = {  # by the name of the recording; both clients may have one of the name
    "base": {},
    "again": {},
    "linger": {"linger.ms": 400},
    "batch-size": {"batch.size": 400},
    "acks": {"acks": 1},
    "compression": {"compression.type": "gzip"},
    "max-wait": {"fetch.wait.max.ms": 40},
    "min-bytes": {"fetch.min.bytes": 2000},
    "partition-bytes": {"max.partition.fetch.bytes": 65536},
    "session-timeout": {"session.timeout.ms": 20_000},
    "heartbeat": {"heartbeat.interval.ms": 1000},
    "max-poll": {"max.poll.interval.ms": 120_000},
    "assignor": {"partition.assignment.strategy": "roundrobin"},
    "isolation": {"isolation.level": "read_uncommitted"},
    "commit-interval": {"auto.commit.interval.ms": 250},
    "metadata-age": {"topic.metadata.refresh.interval.ms": 250},
}
OF_PRODUCER = {"linger.ms", "batch.size", "acks", "compression.type"}


def record(path: Path, changed: dict[str, object]) -> None:
    """The program's capture, with settings changed."""
    mine = {name: value for name, value in changed.items() if name in OF_PRODUCER}
    with Broker(topics={"orders": 1}, capture=path, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        address = {"bootstrap.servers": broker.address}
        consumer = Consumer({**address, **CONSUMER, **{k: v for k, v in changed.items() if k not in mine}})
        consumer.subscribe(["orders"])
        reading = threading.Thread(target=_read, args=(consumer,))
        reading.start()
        time.sleep(0.5)
        producer = Producer({**address, **PRODUCER, **mine})
        pauses = random.Random(7)  # uneven, as a batch that is full and one that has waited are told apart by it
        for number in range(RECORDS):
            producer.produce("orders", f'{{"order": {number}, "item": "a book of maps", "price": 12.5}}'.encode() * 2)
            producer.poll(0)
            time.sleep(pauses.uniform(*PAUSES))
        producer.flush(30)
        reading.join()


def _read(consumer: Consumer) -> None:
    until = time.monotonic() + READING
    while time.monotonic() < until:
        consumer.poll(0.1)
    consumer.close()


def main() -> None:
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or SETTINGS:
        record(folder / f"{name}.pcapng", SETTINGS[name])


if __name__ == "__main__":
    main()
