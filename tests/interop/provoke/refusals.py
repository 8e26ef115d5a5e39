"""Troubles of those who are refused: by quotas, access lists, addresses that nobody can reach, features that are
off."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from pathlib import Path

from aiokafka import AIOKafkaProducer
from cluster import java
from confluent_kafka import KafkaException, ThrottleEvent
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from scenarios import Scenario, Stage

HERE = Path(__file__).parent
NOWHERE = 19009  # nobody listens there


def plain_topic(stage: Stage) -> None:
    stage.create()


def with_orders(stage: Stage) -> None:
    stage.create()
    stage.fill()


def quota(stage: Stage) -> None:
    """Sick: clients "limited" and "deaf" may write 2,000 and 1,000 bytes a second."""
    stage.create()
    if not stage.sick:
        return
    for client, rate in (("limited", 2000), ("deaf", 1000)):
        command = ["kafka.admin.ConfigCommand", "--bootstrap-server", stage.cluster.address, "--alter", "--add-config"]
        command += [f"producer_byte_rate={rate}", "--entity-type", "clients", "--entity-name", client]
        subprocess.run(java("4.3.1", *command, heap="128m"), check=True, capture_output=True)


def throttled(stage: Stage) -> None:
    """librdkafka writes 1,000 bytes ten times a second with a quota (producer_byte_rate=2000) for its client id."""

    def told(event: ThrottleEvent) -> None:
        if stage.sick and event.throttle_time > 0 and not stage.truth:
            stage.found("throttled", client_id="limited", api="Produce")

    producer = stage.producer("limited", linger_ms=0, throttle_cb=told)
    for _ in range(50):
        producer.produce(stage.topic, value="x" * 1000, partition=0)
        producer.poll(0.1)
    producer.flush(30)


def throttle_ignored(stage: Stage) -> None:
    """aiokafka, which does not wait for ThrottleTimeMs, writes with a quota of 1,000 bytes a second."""

    async def write() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=stage.cluster.address, client_id="deaf", linger_ms=0)
        await producer.start()
        for _ in range(16):
            begun, at = time.monotonic(), time.time()
            await producer.send_and_wait(stage.topic, b"x" * 1000, partition=0)
            if stage.sick and not stage.truth and time.monotonic() - begun > 0.2:  # the broker holds what came too soon
                stage.found("throttled", at, client_id="deaf", api="Produce")
                stage.found("throttle-ignored", at, client_id="deaf", api="Produce")
        await producer.stop()

    asyncio.run(asyncio.wait_for(write(), 60))


def denied(stage: Stage) -> None:
    """Sick: nobody may write to the topic, nor use the group (DENY for User:ANONYMOUS, who is no super user here)."""
    stage.create()
    stage.fill()
    if not stage.sick:
        return
    rows = [(ResourceType.TOPIC, stage.topic, AclOperation.WRITE), (ResourceType.GROUP, stage.group, AclOperation.READ)]
    for kind, name, operation in rows:
        acl = AclBinding(
            kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermissionType.DENY
        )
        for future in stage.admin.create_acls([acl]).values():
            future.result(10)
    time.sleep(0.5)


def acl_denied(stage: Stage) -> None:
    """A producer without the right to write to its topic, a consumer without the right to read its group."""
    producer = stage.producer("writer", linger_ms=0)
    if stage.sick:
        stage.found("acl-denied", client_id="writer", topic=stage.topic)
    for _ in range(4):
        with contextlib.suppress(KafkaException):
            producer.produce(stage.topic, value="x", partition=0)
        producer.flush(5)
    consumer = stage.consumer("member")
    consumer.subscribe([stage.topic])
    if stage.sick:
        stage.found("acl-denied", client_id="member", group=stage.group)
    stage.consume(consumer, 4, most=24)
    consumer.close()


def advertised_unreachable(stage: Stage) -> None:
    """advertised.listeners names a port where nobody listens: the bootstrap connection works, and nothing else does."""
    producer = stage.producer("hopeful", message_timeout_ms=6000, linger_ms=0)
    if stage.sick:
        stage.found("advertised-unreachable", broker=f"127.0.0.1:{NOWHERE}")
    producer.produce(stage.topic, value="x", partition=0)
    producer.flush(8)


def advertised_topic(stage: Stage) -> None:
    """Made over the brokers' own listener, which can be reached."""
    inside = AdminClient({"bootstrap.servers": f"127.0.0.1:{stage.cluster.port() + 1}"})
    for future in inside.create_topics([NewTopic(stage.topic, 1, 1)]).values():
        future.result(30)


def version_beyond_feature(stage: Stage) -> None:
    """A librdkafka consumer with group.protocol=consumer where the feature group.version is 0: the broker offers
    ConsumerGroupHeartbeat, and answers UNSUPPORTED_VERSION."""
    consumer = stage.consumer("modern", group_protocol="consumer")
    consumer.subscribe([stage.topic])
    end = time.monotonic() + 6
    while time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is not None and (error := message.error()) is not None:
            print(f"  {error.name()}")
            if error.name() == "_FATAL":
                stage.found("version-beyond-feature", api="ConsumerGroupHeartbeat", group=stage.group)
                break
    try:
        consumer.close()
    except KafkaException as wrong:
        print(f"  close: {wrong}", file=sys.stderr)


USERS = {
    "super.users": "User:admin",
}
SCENARIOS = {
    "throttled": Scenario(throttled, quota),
    "throttle-ignored": Scenario(throttle_ignored, quota),
    "acl-denied": Scenario(acl_denied, denied, {"settings": USERS}),
    "advertised-unreachable": Scenario(
        advertised_unreachable, advertised_topic, {"own": {1: {"advertised": f"127.0.0.1:{NOWHERE}"}}}, {"own": {}},
        (NOWHERE,),
    ),
    "version-beyond-feature": Scenario(
        version_beyond_feature, with_orders, {"features": ("group.version=0",)}, {"features": ()}
    ),
}  # fmt: skip
