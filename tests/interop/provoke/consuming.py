"""Troubles of those who read: offsets, commits, fetches."""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as PythonPartition
from scenarios import Scenario, Stage


def orders(stage: Stage) -> None:
    stage.create()
    stage.fill()


def python_consumer(stage: Stage, client: str, group: str | None = None, **more: Any) -> KafkaConsumer:
    """kafka-python, reading the scenario's topic."""
    return KafkaConsumer(
        stage.topic, bootstrap_servers=stage.cluster.address.split(","), client_id=client, group_id=group,
        enable_auto_commit=False, auto_offset_reset="earliest", **more,
    )  # fmt: skip


def committed(stage: Stage) -> None:
    """A group that has committed offset 5, and sick: the log then begins at 12."""
    orders(stage)
    consumer = stage.consumer()
    consumer.commit(offsets=[TopicPartition(stage.topic, 0, 5)], asynchronous=False)
    consumer.close()
    if stage.sick:
        for future in stage.admin.delete_records([TopicPartition(stage.topic, 0, 12)]).values():
            future.result(10)


def offset_reset(stage: Stage) -> None:
    """A group's committed offset (5) lies before the log's start (12, by DeleteRecords): it starts again at 12."""
    consumer = stage.consumer()
    consumer.subscribe([stage.topic])
    stage.consume(consumer, 20, most=1)
    if stage.sick:
        stage.found("offset-reset", group=stage.group, topic=stage.topic, partition=0)
    stage.consume(consumer, 1.5)
    consumer.close()


def offset_lost(stage: Stage) -> None:
    """A group whose commits are gone (deleted) starts at the log's end and misses 20 records;
    auto.offset.reset=latest."""
    consumer = stage.consumer(auto_offset_reset="latest")
    consumer.subscribe([stage.topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    if stage.sick:
        stage.found("offset-reset", group=stage.group, topic=stage.topic, partition=0)
    stage.consume(consumer, 2)
    consumer.close()


def offsets_deleted(stage: Stage) -> None:
    stage.create()
    stage.fill()
    consumer = stage.consumer()
    consumer.commit(offsets=[TopicPartition(stage.topic, 0, 20)], asynchronous=False)
    consumer.close()
    if stage.sick:
        for future in stage.admin.delete_consumer_groups([stage.group]).values():
            future.result(10)


def commit_refused(stage: Stage) -> None:
    """kafka-python commits once with the generation before its own (its client was told to): ILLEGAL_GENERATION."""
    consumer = python_consumer(stage, "committer", stage.group, session_timeout_ms=6000, heartbeat_interval_ms=1000)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        consumer.poll(timeout_ms=100)
    place = PythonPartition(stage.topic, 0)
    consumer.commit({place: OffsetAndMetadata(3, "", -1)})
    if stage.sick:
        consumer._coordinator._generation.generation_id -= 1
        stage.found("commit-refused", group=stage.group, client_id="committer")
    try:
        consumer.commit({place: OffsetAndMetadata(4, "", -1)})
    except KafkaError as refused:
        print(f"  commit refused: {type(refused).__name__}")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        consumer.poll(timeout_ms=100)
    consumer.close(autocommit=False)


def commit_storm(stage: Stage) -> None:
    """librdkafka commits after every record, synchronously; the healthy one once a second by itself."""
    consumer = stage.consumer(enable_auto_commit=not stage.sick, auto_commit_interval_ms=1000)
    consumer.subscribe([stage.topic])
    stage.consume(consumer, 20, most=1)
    if stage.sick:
        stage.found("commit-storm", group=stage.group, client_id="consumer")
    producer = stage.producer()
    end = time.monotonic() + 6
    while time.monotonic() < end:
        producer.produce(stage.topic, value="one more")
        producer.flush(5)
        stage.consume(consumer, 0.1, commit=stage.sick, most=1)
        time.sleep(0.05)
    consumer.close()


def unstable_offsets(stage: Stage) -> None:
    """Offsets sent to a transaction that stays open for 4 s, while a member of that group starts: it has to wait. In
    the healthy one the transaction is committed before."""
    producer = stage.producer("exactly", transactional_id=f"{stage.name}-x")
    producer.init_transactions(10)
    member = stage.consumer("first")
    member.subscribe([stage.topic])
    stage.consume(member, 20, most=1)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(stage.topic, 0, 7)], member.consumer_group_metadata(), 10)
    if not stage.sick:
        producer.commit_transaction(10)
    member.close()
    late = stage.consumer("late", isolation_level="read_committed")
    late.subscribe([stage.topic])
    begun = time.monotonic()
    if stage.sick:
        threading.Timer(5, lambda: producer.commit_transaction(10)).start()
    while not late.assignment():
        late.poll(0.1)
    if stage.sick:
        stage.found("unstable-offsets", group=stage.group, topic=stage.topic, partition=0)
    stage.consume(late, 20, most=1)
    print(f"  its first record after {time.monotonic() - begun:.1f} s")
    late.close()


def big_orders(stage: Stage) -> None:
    """Records in batches of one record of 3 kB each, which do not compress."""
    import random

    stage.create()
    producer = stage.producer("filler", batch_num_messages=1)
    dice = random.Random(1)
    for _ in range(120):
        producer.produce(stage.topic, value=b"{" + dice.randbytes(1) * 3000 + b"}", partition=0)
    producer.flush(20)


def fetch_too_small(stage: Stage) -> None:
    """kafka-python reads 360 kB with max_partition_fetch_bytes and fetch_max_bytes of 2,000: a batch at a time."""
    small: dict[str, Any] = {"max_partition_fetch_bytes": 2000, "fetch_max_bytes": 2000} if stage.sick else {}
    consumer = python_consumer(stage, "reader", **small)
    got = 0
    while got < 120:
        got += sum(len(rows) for rows in consumer.poll(timeout_ms=200).values())
        if got and stage.sick and not stage.truth:
            stage.found("fetch-too-small", client_id="reader", topic=stage.topic, partition=0)
    consumer.close()


def session_thrash(stage: Stage) -> None:
    """A kafka-python reader whose client was made to name a fetch session that the broker does not know, eight
    times, as if the broker had dropped its session each time (FETCH_SESSION_ID_NOT_FOUND)."""
    consumer = python_consumer(stage, "reader", fetch_max_wait_ms=200)
    for round_ in range(9):
        end = time.monotonic() + 0.7
        while time.monotonic() < end:
            consumer.poll(timeout_ms=100)
        if stage.sick and round_:
            for handler in consumer._fetcher._session_handlers.values():
                known = handler.next_metadata
                handler.next_metadata = type(known)(known.session_id + 1, known.epoch)
            if not stage.truth:
                stage.found("fetch-session-thrash", client_id="reader", api="Fetch")
    consumer.close()


def two_partitions(stage: Stage) -> None:
    stage.create(partitions=2)
    stage.fill()


def slow_client(stage: Stage) -> None:
    """A reader that works 1.5 s on each record, with one record fetched at a time: the broker answers at once, and it
    is the client that takes the time. The healthy one does not work."""
    small: dict[str, Any] = {"max_partition_fetch_bytes": 100, "fetch_max_bytes": 100, "max_poll_records": 1}
    consumer = python_consumer(stage, "worker", **small)
    got, end = 0, time.monotonic() + 9
    while time.monotonic() < end and got < 20:
        rows = sum(len(rows) for rows in consumer.poll(timeout_ms=200).values())
        got += rows
        if rows and stage.sick:
            if not stage.truth:
                stage.found("slow-client", client_id="worker")
            time.sleep(1.5)
    consumer.close()


def many_orders(stage: Stage) -> None:
    stage.create()
    stage.fill(20, 200, batch_num_messages=1)


def head_of_line(stage: Stage) -> None:
    """librdkafka asks for a partition's ends while a long poll of 3 s (fetch.wait.max.ms) waits on the same connection:
    the question is answered after it. In the healthy one the poll is of 20 ms."""
    wait = 3000 if stage.sick else 20
    consumer = stage.consumer("asker", fetch_wait_max_ms=wait, socket_timeout_ms=10000)
    consumer.assign([TopicPartition(stage.topic, 0, 0)])
    stage.consume(consumer, 20, most=20)
    time.sleep(0.5)
    for _ in range(4):
        begun, at = time.monotonic(), time.time()
        consumer.get_watermark_offsets(TopicPartition(stage.topic, 0), timeout=10)
        waited = time.monotonic() - begun
        print(f"  answered after {waited:.2f} s")
        if waited > 1 and not stage.truth:
            stage.found("head-of-line", at, client_id="asker", api="ListOffsets")
        time.sleep(0.7)
    consumer.close()


def unknown_topic(stage: Stage) -> None:
    """librdkafka subscribes to a topic that is not there, and asks for it again and again."""
    consumer = stage.consumer("lost", topic_metadata_refresh_interval_ms=500)
    consumer.subscribe([stage.topic + ("-missing" if stage.sick else "")])
    if stage.sick:
        stage.found("unknown-topic", topic=stage.topic + "-missing", client_id="lost")
    stage.consume(consumer, 5)
    consumer.close()


def topic_recreated(stage: Stage) -> None:
    """A topic is deleted and made again under a consumer: one name, two ids."""
    consumer = stage.consumer("reader", topic_metadata_refresh_interval_ms=1000)
    consumer.subscribe([stage.topic])
    stage.consume(consumer, 2)
    if stage.sick:
        for future in stage.admin.delete_topics([stage.topic]).values():
            future.result(10)
        time.sleep(0.5)
        stage.create()
        stage.found("topic-recreated", topic=stage.topic)
    stage.consume(consumer, 5)
    try:
        consumer.close()
    except KafkaException as wrong:
        print(f"  close: {wrong}")


def metadata_storm(stage: Stage) -> None:
    """A program asks for the metadata of its topic before each record (20 a second)."""
    producer = stage.producer("nervous", linger_ms=500)
    if stage.sick:
        stage.found("metadata-storm", client_id="nervous")
    for _ in range(100):
        if stage.sick:
            producer.list_topics(stage.topic, timeout=5)
        producer.produce(stage.topic, value="x")
        time.sleep(0.05)
    producer.flush(5)


SCENARIOS = {
    "offset-reset": Scenario(offset_reset, committed),
    "offset-lost": Scenario(offset_lost, offsets_deleted),
    "commit-refused": Scenario(commit_refused, orders),
    "commit-storm": Scenario(commit_storm, orders),
    "unstable-offsets": Scenario(unstable_offsets, orders),
    "fetch-too-small": Scenario(fetch_too_small, big_orders),
    "slow-client": Scenario(slow_client, many_orders),
    "head-of-line": Scenario(head_of_line, orders),
    "unknown-topic": Scenario(unknown_topic, orders),
    "topic-recreated": Scenario(topic_recreated, orders),
    "metadata-storm": Scenario(metadata_storm, orders),
    "fetch-session-thrash": Scenario(session_thrash, two_partitions),
}
