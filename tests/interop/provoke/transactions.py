"""Troubles of transactions: fenced producers, those that are never ended."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException, TopicPartition
from scenarios import Scenario, Stage


def plain_topic(stage: Stage) -> None:
    stage.create()


def fenced(stage: Stage) -> None:
    """Two producers with one transactional.id: the first goes on after the second has begun, and is fenced. Healthy: an
    id each."""
    first = stage.producer("first", transactional_id=f"{stage.name}-x")
    first.init_transactions(10)
    first.begin_transaction()
    first.produce(stage.topic, value="one")
    first.commit_transaction(10)
    second = stage.producer("second", transactional_id=f"{stage.name}-x" + ("" if stage.sick else "2"))
    second.init_transactions(10)
    time.sleep(0.5)
    first.begin_transaction()
    if stage.sick:
        stage.found("producer-fenced", transactional_id=f"{stage.name}-x", client_id="first")
    try:
        first.produce(stage.topic, value="two")
        first.commit_transaction(10)
    except KafkaException as wrong:
        print(f"  first: {wrong.args[0].name()}")
    second.begin_transaction()
    second.produce(stage.topic, value="three")
    second.commit_transaction(10)
    time.sleep(0.3)


def open_transaction(stage: Stage) -> None:
    """A producer begins, writes and says no more (transaction.timeout.ms=5000); the broker looks for such every 10 s
    and aborts it then. A reader of committed records stands still meanwhile. Healthy: it commits after a second."""
    reader = stage.consumer("reader", isolation_level="read_committed", fetch_wait_max_ms=500)
    reader.assign([TopicPartition(stage.topic, 0, 0)])
    producer = stage.producer("forgetful", transactional_id=f"{stage.name}-x", transaction_timeout_ms=5000)
    other = stage.producer("other", linger_ms=0)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(stage.topic, value="never ended", partition=0)
    producer.flush(5)
    if stage.sick:
        stage.found("open-transaction", transactional_id=f"{stage.name}-x", client_id="forgetful")
        stage.found("lso-stuck", topic=stage.topic, partition=0)
    for step in range(14):
        other.produce(stage.topic, value="of another", partition=0)
        other.flush(5)
        if step == 1 and not stage.sick:
            producer.commit_transaction(10)
        stage.consume(reader, 1)
    reader.close()


SCENARIOS = {
    "producer-fenced": Scenario(fenced, plain_topic),
    "open-transaction": Scenario(open_transaction, plain_topic),
}
