"""aiokafka against the embedded broker: produce, a group of two, commit, admin."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kwire.testing import Broker

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")


async def live(broker: Broker) -> tuple[int, list[int], str]:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=broker.address)
    await admin.start()
    await admin.create_topics([NewTopic("t", 4, 1)])
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.address, enable_idempotence=True)
    await producer.start()
    for n in range(40):
        await producer.send_and_wait("t", b"v%d" % n, key=b"%d" % n)
    await producer.stop()
    consumers: list[Any] = []
    for name in ("a", "b"):
        made = aiokafka.AIOKafkaConsumer(
            "t", bootstrap_servers=broker.address, group_id="g", client_id=name, auto_offset_reset="earliest",
            heartbeat_interval_ms=200, session_timeout_ms=6000,
        )  # fmt: skip
        await made.start()
        consumers.append(made)
    values: set[bytes] = set()
    while len(values) < 40 or [len(one.assignment()) for one in consumers] != [2, 2]:
        for one in consumers:
            found = await one.getmany(timeout_ms=100)
            values |= {record.value for records in found.values() for record in records}
    shares = [len(one.assignment()) for one in consumers]
    await consumers[0].commit()
    (described,) = (await admin.describe_consumer_groups(["g"]))[0].groups
    for one in consumers:
        await one.stop()
    await admin.close()
    return len(values), shares, described[2]


def test_a_group_of_two() -> None:
    with Broker() as broker:
        assert asyncio.run(asyncio.wait_for(live(broker), 120)) == (40, [2, 2], "Stable")
        assert [event.kind for event in broker.events()].count("left") == 2
