"""Real clients through the proxy, in front of three brokers: all arrives, and no connection goes around."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from kwire.testing import Broker, Proxy

COUNT = 60


def check_nothing_went_around(broker: Broker, proxy: Proxy) -> None:
    assert len(broker.events("connected")) == len(proxy.events("connected")) > 0
    assert set(proxy.brokers) == set(broker.addresses)


def test_librdkafka_logs_in_produces_and_consumes(tmp_path: Path) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    target = tmp_path / "c.pcapng"
    with (
        Broker(nodes=3, topics={"t": 3}, users={"ann": "hunter2word"}) as broker,
        Proxy(broker.address, capture=target) as proxy,
    ):
        config = {
            "bootstrap.servers": proxy.address, "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
            "sasl.username": "ann", "sasl.password": "hunter2word",
        }  # fmt: skip
        producer = confluent.Producer(config)
        for number in range(COUNT):
            producer.produce("t", str(number), partition=number % 3)
        assert producer.flush(20) == 0
        consumer = confluent.Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        got: list[bytes] = []
        until = time.monotonic() + 60
        while len(got) < COUNT and time.monotonic() < until:
            message = consumer.poll(1)
            if message is not None and not message.error():
                got.append(message.value())
        consumer.close()
        check_nothing_went_around(broker, proxy)
    assert sorted(got, key=int) == [str(number).encode() for number in range(COUNT)]
    saved = target.read_bytes()
    assert (b"hunter2word" in saved, b"\0ann\0" in saved) == (False, True)


def test_kafka_python_produces_and_consumes() -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    with Broker(nodes=3, topics={"t": 3}) as broker, Proxy(broker.address) as proxy:
        producer = kafka.KafkaProducer(bootstrap_servers=proxy.address)
        for number in range(COUNT):
            producer.send("t", str(number).encode(), partition=number % 3)
        producer.flush(20)
        consumer = kafka.KafkaConsumer(
            "t", bootstrap_servers=proxy.address, group_id="g", auto_offset_reset="earliest", consumer_timeout_ms=8000
        )
        got = [message.value for message, _ in zip(consumer, range(COUNT), strict=False)]
        consumer.close()
        producer.close()
        check_nothing_went_around(broker, proxy)
    assert sorted(got, key=int) == [str(number).encode() for number in range(COUNT)]


def test_aiokafka_produces_and_consumes() -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def run(address: str) -> list[bytes]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=address) as producer:
            for number in range(COUNT):
                await producer.send_and_wait("t", str(number).encode(), partition=number % 3)
        async with aiokafka.AIOKafkaConsumer(
            "t", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            return [(await asyncio.wait_for(consumer.getone(), 60)).value for _ in range(COUNT)]

    with Broker(nodes=3, topics={"t": 3}) as broker, Proxy(broker.address) as proxy:
        got = asyncio.run(run(proxy.address))
        check_nothing_went_around(broker, proxy)
    assert sorted(got, key=int) == [str(number).encode() for number in range(COUNT)]
