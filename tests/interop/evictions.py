"""Consumers that are kicked out, for captures of it: each story a group of real clients, told with times as it goes.

    evictions.py STORY 127.0.0.1:9092          # one of those below; each takes 12 to 25 s

Needs confluent-kafka and kafka-python (and java with a broker's class path for max-poll-java), and a broker with
group.initial.rebalance.delay.ms=0, group.consumer.session.timeout.ms=6000, group.consumer.heartbeat.interval.ms=1000.
Session timeouts are 6 s, heartbeats come every second.
"""

# mypy: disable-error-code="attr-defined, call-overload, dict-item"

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as PythonPartition

SESSION = 6  # seconds
TOPIC = "orders"
Told = dict[str, Any]


def say(who: str, what: str) -> None:
    print(f"{time.time():.3f} {who}: {what}", flush=True)


def prepare(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "client.id": "admin"})
    for future in admin.create_topics([NewTopic(TOPIC, 4)]).values():
        future.result(10)
    producer = Producer({"bootstrap.servers": address, "client.id": "producer"})
    for number in range(20):
        producer.produce(TOPIC, value=f"order {number}", partition=number % 4)
    producer.flush(10)


def librdkafka(address: str, client: str, group: str, seconds: float, more: Told) -> None:
    """A member for so many seconds. more: configuration; busy: (after, for) seconds without a poll."""
    busy = more.pop("busy", (0, 0))
    config = {"bootstrap.servers": address, "client.id": client, "group.id": group, "auto.offset.reset": "earliest"}
    if more.get("group.protocol") != "consumer":
        config |= {"session.timeout.ms": SESSION * 1000, "heartbeat.interval.ms": 1000}
    consumer = Consumer(config | {"enable.auto.commit": False} | more)

    def told(event: str) -> Any:
        return lambda _, partitions: say(client, f"{event} {sorted(one.partition for one in partitions)}")

    consumer.subscribe([TOPIC], on_assign=told("assigned"), on_revoke=told("revoked"), on_lost=told("lost"))
    begun, end = time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end:
        if busy[1] and time.monotonic() - begun > busy[0]:
            say(client, f"busy for {busy[1]} s, polls nothing")
            time.sleep(busy[1])
            say(client, "polls again")
            busy = (0, 0)
        message = consumer.poll(0.2)
        if message is None:
            continue
        if (error := message.error()) is not None:
            say(client, f"error {error.name()}{', fatal' if error.fatal() else ''}")
            if error.fatal():
                break
            continue
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException as refused:
            say(client, f"commit refused: {refused.args[0].name()}")
    consumer.close()
    say(client, "closed")


def kafka_python(address: str, client: str, group: str, seconds: float, more: Told) -> None:
    """A member for so many seconds. stop_after: it stops itself (SIGSTOP) after so long, and commits when it goes on;
    wrong_generation: it commits once with the generation before its own."""
    stop_after, wrong = more.pop("stop_after", 0), more.pop("wrong_generation", False)
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=address,
        client_id=client,
        group_id=group,
        enable_auto_commit=False,
        session_timeout_ms=SESSION * 1000,
        heartbeat_interval_ms=1000,
        auto_offset_reset="earliest",
        **more,
    )
    begun, end = time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end:
        consumer.poll(timeout_ms=200)
        age = time.monotonic() - begun
        if stop_after and age > stop_after:
            stop_after = 0
            os.kill(os.getpid(), signal.SIGSTOP)
            commit_now(client, consumer)
        if wrong and age > 4:
            wrong = False
            generation = consumer._coordinator._generation
            generation.generation_id -= 1
            commit_now(client, consumer)
            say(client, f"its generation was made {generation.generation_id} for that commit")
    consumer.close(autocommit=False)
    say(client, "closed")


def commit_now(client: str, consumer: Any) -> None:
    try:
        consumer.commit({PythonPartition(TOPIC, 0): OffsetAndMetadata(3, "", -1)})
        say(client, "commit taken")
    except KafkaError as refused:
        say(client, f"commit refused: {type(refused).__name__}")


def transaction(address: str, group: str) -> None:
    """Sends offsets to a transaction with what a member knew of its group before the last rebalance."""
    config = {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False}
    config |= {"session.timeout.ms": SESSION * 1000, "heartbeat.interval.ms": 1000, "auto.offset.reset": "earliest"}
    consumer = Consumer(config | {"client.id": "transactional"})
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.2)
    old = consumer.consumer_group_metadata()
    say("transactional", "keeps its group metadata")
    other = spawn(librdkafka, address, "second", group, 8, {})
    end = time.monotonic() + 5
    while time.monotonic() < end:
        consumer.poll(0.2)
    made = {"bootstrap.servers": address, "client.id": "transactional-producer", "transactional.id": "evict"}
    producer = Producer(made)
    producer.init_transactions(10)
    producer.begin_transaction()
    try:
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, 4)], old, 10)
        say("transactional", "offsets taken")
    except KafkaException as refused:
        say("transactional", f"offsets refused: {refused.args[0].name()}")
    producer.abort_transaction(10)
    consumer.close()
    other.join()


def spawn(run: Any, *args: Any) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=run, args=args, daemon=True)
    process.start()
    return process


def stop(process: BaseProcess, who: str, seconds: float) -> None:
    assert process.pid is not None
    say(who, "stopped (SIGSTOP)")
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(seconds)
    say(who, "goes on (SIGCONT)")
    os.kill(process.pid, signal.SIGCONT)


# ------------------------------------------------------------ the stories


def stopped(address: str) -> None:
    """Two members, kafka-python and librdkafka; the first is stopped for longer than its session timeout, returns."""
    members = [spawn(kafka_python, address, "paused", "billing", 19, {})]
    time.sleep(2)
    members.append(spawn(librdkafka, address, "steady", "billing", 20, {}))
    time.sleep(5)
    stop(members[0], "paused", 9)
    for member in members:
        member.join()


def max_poll(address: str) -> None:
    """librdkafka: a member does not poll for longer than max.poll.interval.ms (6 s): it leaves, and returns."""
    slow = {"max.poll.interval.ms": 6000, "busy": (4, 10)}
    members = [spawn(librdkafka, address, "slow", "billing", 19, slow)]
    members.append(spawn(librdkafka, address, "steady", "billing", 20, {}))
    for member in members:
        member.join()


def max_poll_java(address: str) -> None:
    """The same with the Java client, which says so in the reason of its LeaveGroup."""
    steady = spawn(librdkafka, address, "steady", "billing", 22, {})
    subprocess.run(["java", Path(__file__).with_name("SlowPoll.java"), address], check=True)
    steady.join()


def fenced(address: str) -> None:
    """Static members billing-1 and billing-2; a third process starts as billing-1, and the first one is fenced."""
    members = [spawn(librdkafka, address, "first", "billing", 15, {"group.instance.id": "billing-1"})]
    members.append(spawn(librdkafka, address, "other", "billing", 16, {"group.instance.id": "billing-2"}))
    time.sleep(6)
    say("usurper", "starts as billing-1")
    members.append(spawn(librdkafka, address, "usurper", "billing", 9, {"group.instance.id": "billing-1"}))
    for member in members:
        member.join()


def consumer_protocol(address: str) -> None:
    """KIP-848: two members; one is stopped for longer than the group's session timeout, and returns."""
    modern = {"group.protocol": "consumer"}
    members = [spawn(librdkafka, address, "paused", "billing", 21, modern)]
    members.append(spawn(librdkafka, address, "steady", "billing", 22, modern))
    time.sleep(8)
    stop(members[0], "paused", 9)
    for member in members:
        member.join()


def slow_joiner(address: str) -> None:
    """Two members; a third joins while the second is busy for 4 s: the rebalance waits for it."""
    members = [spawn(librdkafka, address, "steady", "billing", 15, {})]
    members.append(spawn(librdkafka, address, "late", "billing", 15, {"busy": (5, 4)}))
    time.sleep(6)
    members.append(spawn(librdkafka, address, "third", "billing", 8, {}))
    for member in members:
        member.join()


def refused_commits(address: str) -> None:
    """Commits with a wrong generation (ILLEGAL_GENERATION), of an old one in a transaction, and after an eviction."""
    wrong = spawn(kafka_python, address, "wrong", "billing", 7, {"wrong_generation": True})
    transaction(address, "ledger")
    wrong.join()
    paused = spawn(kafka_python, address, "paused", "shipping", 13, {"stop_after": 3})
    time.sleep(12.5)
    assert paused.pid is not None
    say("paused", "goes on (SIGCONT)")
    os.kill(paused.pid, signal.SIGCONT)
    paused.join()


STORIES = {
    story.__name__.replace("_", "-"): story
    for story in (stopped, max_poll, max_poll_java, fenced, consumer_protocol, slow_joiner, refused_commits)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("story", choices=STORIES)
    parser.add_argument("address", metavar="HOST:PORT")
    given = parser.parse_args()
    prepare(given.address)
    STORIES[given.story](given.address)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
