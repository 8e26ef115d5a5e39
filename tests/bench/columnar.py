"""The columnar codec beside readers that make an object of each message, in one run.

    pip install '.[bench]' && python tests/bench/columnar.py

Microseconds a message, the median of rounds in which all take turns, for batches of 100, 1,000 and 16,000 messages; the
ratios are how many times as fast the columns are as kio's native reader and kafka-python. Fetch and Produce are of
records that stay as they are.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from codec import HEARTBEAT, METADATA, timed

import kwire
from kwire.codec.columnar import decode_columns
from kwire.codec.library import builtin_library
from kwire.records import build

ROUNDS = 7
SIZES = (100, 1000, 16_000)
RECORDS = build([(b"key", b"x" * 100)] * 10)
FETCH = {
    "Responses": [
        {"Partitions": [{"PartitionIndex": n, "HighWatermark": 1000, "Records": RECORDS} for n in range(2)]}
        for _ in range(3)
    ]
}
PRODUCE = {
    "Acks": -1,
    "TimeoutMs": 30000,
    "TopicData": [{"Name": f"topic-{n}", "PartitionData": [{"Index": 0, "Records": RECORDS}]} for n in range(3)],
}


def bench(name: str, version: int, message: dict[str, Any], kio: Any, kafka: Any) -> None:
    from kio.serial import entity_reader

    raw = kwire.encode(name, version, message)
    read, plan = entity_reader(kio), builtin_library().plan(name, version)
    number = 2000 if len(raw) < 200 else 40
    for size in SIZES:
        buffer = raw * size
        ends = np.arange(1, size + 1) * len(raw)
        starts = ends - len(raw)
        columns, fine = decode_columns(plan, buffer, starts, ends)
        if not fine.all() or columns.to_list(buffer)[:1] != [kwire.decode(name, version, raw)]:
            raise SystemExit(f"{name} v{version}: the columns are not right")
        contenders = {"kio": lambda: read(raw, 0), "kafka-python": lambda: kafka.decode(raw, version=version)}
        found: dict[str, list[float]] = {"columns": [], **{other: [] for other in contenders}}
        for _ in range(ROUNDS):
            repeat = max(1, 2000 // size)
            found["columns"].append(timed(lambda: decode_columns(plan, buffer, starts, ends), repeat) / size)  # noqa: B023
            for other, call in contenders.items():
                found[other].append(timed(call, number))
        mine = statistics.median(found["columns"])
        ratios = [statistics.median(a / b for a, b in zip(found[n], found["columns"], strict=True)) for n in contenders]
        print(f"| {name} v{version} | {size:,} | {mine:.3f} µs | {ratios[0]:.1f} × | {ratios[1]:.1f} × |")


def main() -> None:
    from kafka.protocol.consumer.fetch import FetchResponse as KafkaFetch
    from kafka.protocol.consumer.group import HeartbeatRequest as KafkaHeartbeat
    from kafka.protocol.metadata import MetadataResponse as KafkaMetadata
    from kafka.protocol.producer.produce import ProduceRequest as KafkaProduce
    from kio.schema.fetch.v16.response import FetchResponse
    from kio.schema.heartbeat.v4.request import HeartbeatRequest
    from kio.schema.metadata.v12.response import MetadataResponse
    from kio.schema.produce.v11.request import ProduceRequest

    print("| message | at once | a message | kio's time over it | kafka-python's |\n|---|---|---|---|---|")
    bench("HeartbeatRequest", 4, HEARTBEAT, HeartbeatRequest, KafkaHeartbeat)
    bench("MetadataResponse", 12, METADATA, MetadataResponse, KafkaMetadata)
    bench("FetchResponse", 16, FETCH, FetchResponse, KafkaFetch)
    bench("ProduceRequest", 11, PRODUCE, ProduceRequest, KafkaProduce)


if __name__ == "__main__":
    main()
