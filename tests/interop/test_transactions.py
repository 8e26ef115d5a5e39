"""Transactions of real clients: committed, aborted, with offsets inside, fenced, under faults.

librdkafka, aiokafka and kafka-python where they are installed; Java (Streams with exactly_once_v2) and kafkajs under
the conditions of test_other_languages.py.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from typing import Any

import pytest

from kwire.testing import Broker

from .test_other_languages import HERE, LAB, needs_java, run

LATE = 40.0
COPIES = [b"copy of v%d" % n for n in range(10)]


def seeded(broker: Broker) -> None:
    """Ten records to be copied."""
    from kwire.records import build

    broker.create_topic("in")
    log = broker.server.state.cluster.topics["in"].partitions[0].log
    broker.thread.call(lambda: log.append(build([(None, b"v%d" % n) for n in range(10)]), 0, 0))


def committed(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.log("out", committed=True)]


# ---------------------------------------------------------------- librdkafka


def rdkafka(broker: Broker, name: str = "tx") -> Any:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    settings = {"bootstrap.servers": broker.address, "transactional.id": name, "linger.ms": 1, "retry.backoff.ms": 20}
    made = confluent.Producer(settings)
    made.init_transactions(LATE)
    return made


def copy_with_rdkafka(broker: Broker) -> None:
    """Consume, transform, produce; the offsets are in the transaction."""
    producer = rdkafka(broker)
    confluent = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent.Consumer(settings | {"enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.subscribe(["in"])
    done, end = 0, time.monotonic() + LATE
    while done < 10 and time.monotonic() < end:
        records = consumer.consume(5, 0.5)
        if not records:
            continue
        producer.begin_transaction()
        for record in records:
            producer.produce("out", b"copy of " + record.value())
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), LATE)
        producer.commit_transaction(LATE)
        done += len(records)
    consumer.close()


@pytest.mark.parametrize(
    "rule",
    ["", "coordinator:move,times=1", "EndTxn:cut=after,times=1", "EndTxn:error=COORDINATOR_NOT_AVAILABLE,times=2",
     "AddPartitionsToTxn:error=CONCURRENT_TRANSACTIONS,times=2", "TxnOffsetCommit:error=NOT_COORDINATOR,times=1",
     "Produce:cut=after,times=1", "InitProducerId:move,times=1"],
)  # fmt: skip
def test_librdkafka_copies_exactly_once(rule: str) -> None:
    with Broker(topics={"out": 1}, nodes=2, faults=[rule] if rule else []) as broker:
        seeded(broker)
        copy_with_rdkafka(broker)
        assert committed(broker) == COPIES
        assert bool(broker.events("fault")) == bool(rule)
        assert broker.server.state.groups.coordinator.offsets.committed["g"]["in", 0].offset == 10


def test_librdkafka_aborts_and_is_fenced() -> None:
    with Broker(topics={"out": 1}) as broker:
        first = rdkafka(broker)
        first.begin_transaction()
        first.produce("out", b"aborted")
        first.flush(LATE)
        first.abort_transaction(LATE)
        first.begin_transaction()
        first.produce("out", b"fenced")
        first.flush(LATE)
        second = rdkafka(broker)
        with pytest.raises(Exception, match="FENCED"):
            first.commit_transaction(LATE)
        second.begin_transaction()
        second.produce("out", b"seen")
        second.commit_transaction(LATE)
        assert committed(broker) == [b"seen"]
        assert [record.value for record in broker.log("out")] == [b"aborted", b"fenced", b"seen"]


# ---------------------------------------------------------------- Python


async def copy_with_aiokafka(broker: Broker) -> list[bytes]:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.address, transactional_id="tx")
    await producer.start()
    consumer = aiokafka.AIOKafkaConsumer(
        "in", bootstrap_servers=broker.address, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    done = 0
    while done < 10:
        found = await consumer.getmany(timeout_ms=200, max_records=5)
        for place, records in found.items():
            async with producer.transaction():
                for record in records:
                    await producer.send("out", b"copy of " + record.value)
                await producer.send_offsets_to_transaction({place: records[-1].offset + 1}, "g")
            done += len(records)
    try:
        async with producer.transaction():
            await producer.send_and_wait("out", b"aborted")
            raise KeyError
    except KeyError:
        pass
    reader = aiokafka.AIOKafkaConsumer(
        "out", bootstrap_servers=broker.address, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    await reader.start()
    seen: list[bytes] = []
    while len(seen) < 10:
        seen += [r.value for records in (await reader.getmany(timeout_ms=300)).values() for r in records]
    seen += [r.value for records in (await reader.getmany(timeout_ms=300)).values() for r in records]
    for one in (reader, consumer, producer):
        await one.stop()
    return seen


def test_aiokafka_copies_exactly_once() -> None:
    with Broker(topics={"out": 1}) as broker:
        seeded(broker)
        assert asyncio.run(asyncio.wait_for(copy_with_aiokafka(broker), LATE)) == COPIES
        assert committed(broker) == COPIES
        assert len(broker.log("out")) == 11


def test_kafka_python() -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    with Broker(topics={"out": 1}) as broker:
        producer = kafka.KafkaProducer(bootstrap_servers=broker.address, transactional_id="tx")
        producer.init_transactions()
        for commit in (True, False, True):
            producer.begin_transaction()
            producer.send("out", b"%d" % commit)
            producer.commit_transaction() if commit else producer.abort_transaction()
        producer.close()
        consumer = kafka.KafkaConsumer(
            "out", bootstrap_servers=broker.address, auto_offset_reset="earliest", consumer_timeout_ms=1500,
            isolation_level="read_committed",
        )  # fmt: skip
        assert [record.value for record in consumer] == [b"1", b"1"]
        consumer.close()


# ---------------------------------------------------------------- others


@needs_java
@pytest.mark.java
@pytest.mark.parametrize("rule", ["", "coordinator:move,after=40,times=2"])
def test_streams_exactly_once(rule: str) -> None:
    with Broker(faults=[rule] if rule else [], nodes=2) as broker:
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{LAB}/*", str(HERE / "ExactlyOnce.java")]
        assert run(*command, broker.address).splitlines()[-1] == "word-0 100, word-1 100, word-2 100"


def test_kafkajs() -> None:
    if (
        shutil.which("node") is None
        or subprocess.run(["node", "-e", "require('kafkajs')"], capture_output=True).returncode
    ):
        pytest.skip("needs node, and kafkajs where it finds it")
    with Broker(topics={"out": 1}) as broker:
        assert run("node", str(HERE / "kafkajs" / "transactions.js"), broker.address) == "v1 v3"
