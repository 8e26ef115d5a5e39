"""Writes three records and reads them: old_client.py LIBRARY ADDRESS TOPIC CLIENT_ID OPTIONS."""

from __future__ import annotations

import json
import sys
import time

library, address, topic, client, text = sys.argv[1:]
options = {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()}
got, end = 0, time.monotonic() + 30
if library == "kafka-python":
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=address, client_id=client, **options)
    for number in range(3):
        producer.send(topic, b"order %d" % number).get(15)
    producer.close(5)
    reader = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        client_id=client,
        group_id=f"{topic}-g",
        auto_offset_reset="earliest",
        **options,
    )
    while got < 3 and time.monotonic() < end:
        got += sum(len(rows) for rows in reader.poll(timeout_ms=200).values())
    reader.commit()
    reader.close()
else:
    from confluent_kafka import Consumer, Producer

    writer = Producer({"bootstrap.servers": address, "client.id": client, "message.timeout.ms": 15000, **options})
    for number in range(3):
        writer.produce(topic, value=f"order {number}")
    assert writer.flush(20) == 0
    base = {
        "bootstrap.servers": address,
        "client.id": client,
        "group.id": f"{topic}-g",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**base, **options})
    consumer.subscribe([topic])
    while got < 3 and time.monotonic() < end:
        message = consumer.poll(0.2)
        got += message is not None and message.error() is None
    consumer.close()
print(f"read {got}")
