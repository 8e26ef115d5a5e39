"""The values codec beside its peers, in one run: kio (native readers) and kafka-python, both from PyPI.

    pip install '.[bench]' && python tests/bench/codec.py

Each row is the median of rounds in which all contenders take turns, in microseconds a message, with the ratio to kwire.
Every contender's bytes are checked against kwire's before anything is timed.
"""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import kwire
from kwire.codec.library import builtin_library

ROUNDS = 15

HEARTBEAT = {
    "GroupId": "my-consumer-group",
    "GenerationId": 42,
    "MemberId": "consumer-1-6f9619ff-8b86-d011-b42d-00c04fc964ff",
    "GroupInstanceId": None,
}
METADATA = {
    "ThrottleTimeMs": 0,
    "Brokers": [{"NodeId": i, "Host": f"broker-{i}.example.com", "Port": 9092, "Rack": "a"} for i in range(3)],
    "ClusterId": "5L6g3nShT-eMCtK--X86sw",
    "ControllerId": 1,
    "Topics": [
        {
            "ErrorCode": 0,
            "Name": f"topic-{topic}",
            "TopicId": UUID(int=topic + 5),
            "IsInternal": False,
            "Partitions": [
                {
                    "ErrorCode": 0,
                    "PartitionIndex": partition,
                    "LeaderId": partition % 3,
                    "LeaderEpoch": 5,
                    "ReplicaNodes": [0, 1, 2],
                    "IsrNodes": [0, 1, 2],
                    "OfflineReplicas": [],
                }
                for partition in range(6)
            ],
            "TopicAuthorizedOperations": -(2**31),
        }
        for topic in range(20)
    ],
}

Timed = Callable[[], Any]


def timed(call: Timed, number: int) -> float:
    """Microseconds a call."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number * 1e6


def row(label: str, contenders: dict[str, Timed], number: int) -> None:
    """All contenders in turn, round after round; the median of each, and of the ratios within a round."""
    rounds = [{name: timed(call, number) for name, call in contenders.items()} for _ in range(ROUNDS)]
    cells = [f"{label:<28}", f"kwire {statistics.median(r['kwire'] for r in rounds):8.2f} µs"]
    for name in contenders:
        if name != "kwire":
            ratio = statistics.median(r[name] / r["kwire"] for r in rounds)
            cells.append(f"{name} {statistics.median(r[name] for r in rounds):8.2f} µs ({ratio:5.2f} × kwire's time)")
    print("   ".join(cells))


def writer(write: Callable[[Any, Any], None], entity: Any) -> Timed:
    """kio writes to a stream."""

    def call() -> bytes:
        stream = io.BytesIO()
        write(stream, entity)
        return stream.getvalue()

    return call


def bench(name: str, version: int, message: dict[str, Any], kio: Any, kafka: Any, number: int) -> None:
    """Decode and encode of one message. kio is its entity class, kafka kafka-python's."""
    from kio.serial import entity_reader, entity_writer

    codec = builtin_library().codec(name, version)
    raw = kwire.encode(name, version, message)
    read = entity_reader(kio)
    entity, size = read(raw, 0)
    write = writer(entity_writer(kio), entity)
    decoded = kafka.decode(raw, version=version)
    decoded._header = None  # kafka-python's encode() asks for it
    if size != len(raw) or write() != raw or decoded.encode() != raw:
        raise SystemExit(f"{name} v{version}: the contenders do not agree on the bytes")
    title = f"{name} v{version}"
    reads = {"kwire": lambda: codec.decode(raw), "kio": lambda: read(raw, 0)}
    row(f"{title} decode", reads | {"kafka-python": lambda: kafka.decode(raw, version=version)}, number)
    row(
        f"{title} encode",
        {"kwire": lambda: codec.encode(message), "kio": write, "kafka-python": decoded.encode},
        number,
    )


def main() -> None:
    from kafka.protocol.consumer.group import HeartbeatRequest as KafkaHeartbeat
    from kafka.protocol.metadata import MetadataResponse as KafkaMetadata
    from kio.schema.heartbeat.v4.request import HeartbeatRequest
    from kio.schema.metadata.v12.response import MetadataResponse

    bench("HeartbeatRequest", 4, HEARTBEAT, HeartbeatRequest, KafkaHeartbeat, 5000)
    bench("MetadataResponse", 12, METADATA, MetadataResponse, KafkaMetadata, 50)


if __name__ == "__main__":
    main()
