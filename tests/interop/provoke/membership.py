"""Troubles of a group's members: one that is stopped, that does not poll, that takes another's place, that lets all
others wait; and tasks of Kafka Streams that are not given up."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Any

from cluster import java
from groups import BEATS, Member, orders, program
from kafka import KafkaConsumer
from scenarios import Scenario, Stage

SESSION = 6  # seconds


def python_member(stage: Stage, client: str, **more: Any) -> KafkaConsumer:
    """A member of kafka-python."""
    times = {"session_timeout_ms": SESSION * 1000, "heartbeat_interval_ms": 1000}
    return KafkaConsumer(
        stage.topic, bootstrap_servers=stage.cluster.address.split(","), client_id=client, group_id=stage.group,
        enable_auto_commit=False, auto_offset_reset="earliest", **times, **more,
    )  # fmt: skip


def poll(consumer: KafkaConsumer, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        consumer.poll(timeout_ms=100)


def evicted(stage: Stage) -> None:
    """A console consumer (Java, a classic group) is stopped (SIGSTOP) for longer than its session timeout of 6 s, and
    goes on after 10 s; its commit by the clock is refused then. Healthy: it is not stopped."""
    steady = Member(stage, "steady")
    properties = {"client.id": "paused", "session.timeout.ms": SESSION * 1000, "heartbeat.interval.ms": 1000}
    command = ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", stage.cluster.address]
    command += ["--topic", stage.topic, "--group", stage.group]
    for key, value in (properties | {"group.protocol": "classic"}).items():
        command += ["--command-property", f"{key}={value}"]
    paused = subprocess.Popen(
        java("4.3.1", *command, heap="128m"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            if steady.held == 2:
                break
            time.sleep(0.1)
        time.sleep(3)
        if stage.sick:
            paused.send_signal(signal.SIGSTOP)
            stage.found("evicted", time.time() + SESSION - 0.5, group=stage.group, client_id="paused")
            time.sleep(10)
            paused.send_signal(signal.SIGCONT)
            stage.found("commit-refused", group=stage.group, client_id="paused")
        time.sleep(6)
        paused.terminate()
        paused.wait(60)
    finally:
        paused.kill()
        steady.close()


def poll_timeout(stage: Stage) -> None:
    """kafka-python with max.poll.interval.ms=6000 works 9 s on what it read: it leaves by itself, and joins again.
    Healthy: it works for 2 s."""
    steady = Member(stage, "steady")
    slow = python_member(stage, "slow", max_poll_interval_ms=6000)
    try:
        poll(slow, 6)
        if stage.sick:
            stage.found("poll-timeout", time.time() + 6, group=stage.group, client_id="slow")
        time.sleep(9 if stage.sick else 2)
        poll(slow, 4)
        slow.close(autocommit=False)
    finally:
        steady.close()


def static_clash(stage: Stage) -> None:
    """kafka-python and librdkafka with the same group.instance.id: the second one takes the place of the first, which
    is fenced (FENCED_INSTANCE_ID). Healthy: an instance id each."""
    first = python_member(stage, "first", group_instance_id="billing-1")
    poll(first, 4)
    second = Member(stage, "second", group_instance_id="billing-1" if stage.sick else "billing-2")
    if stage.sick:
        stage.found("static-clash", time.time() + 0.5, group=stage.group, client_id="first")
    try:
        poll(first, 5)
        first.close(autocommit=False)
    except Exception as fenced:
        print(f"  first: {type(fenced).__name__}")
    finally:
        second.close()


def slow_joiner(stage: Stage) -> None:
    """kafka-python works 6 s between two polls while a third member joins: the whole group waits until it joins, too.
    Healthy: it polls on."""
    steady = Member(stage, "steady")
    late = python_member(stage, "late")
    third = None
    try:
        poll(late, 5)
        if stage.sick:
            stage.found("slow-joiner", group=stage.group, client_id="late")
        third = Member(stage, "third")
        if stage.sick:
            time.sleep(6)
        poll(late, 6)
        late.close(autocommit=False)
    finally:
        steady.close()
        if third is not None:
            third.close()


def streams_unrevoked(stage: Stage) -> None:
    """KIP-1071: two instances of a Kafka Streams application; the first one works 7 s on a record when the second one
    joins, and gives up the tasks that it is to give up only then. Healthy: it takes no time."""
    program(stage, "StreamsUnrevoked")


STREAMS = {
    "group.streams.heartbeat.interval.ms": 1000, "group.streams.min.heartbeat.interval.ms": 1000,
    "group.streams.initial.rebalance.delay.ms": 0,
}  # fmt: skip
SCENARIOS = {
    "evicted": Scenario(evicted, orders),
    "poll-timeout": Scenario(poll_timeout, orders),
    "static-clash": Scenario(static_clash, orders),
    "slow-joiner": Scenario(slow_joiner, orders),
    "streams-unrevoked": Scenario(streams_unrevoked, orders, {"settings": {**BEATS, **STREAMS}}),
}
