"""Records into a partition: one batch, one Produce, the leader's answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from kwire.client.bodies import first
from kwire.client.connection import BrokerConnection
from kwire.client.exchange import Body, ClientExchange
from kwire.client.failure import Refusal
from kwire.records.build import build

ACKS_ALL = -1
TIMEOUT_MS = 30_000
BY_NAME = 12  # from v13 on, a topic goes by its id


class ProduceResult(NamedTuple):
    """offset: the first record's; -1 without an answer (acks=0)."""

    offset: int
    exchange: ClientExchange


def produce(
    connection: BrokerConnection, topic: str, partition: int, records: Sequence[tuple[bytes | None, bytes | None]], *,
    acks: int = ACKS_ALL, compression: str = "none", timestamp: int | None = None,
) -> ProduceResult:  # fmt: skip
    """records: (key, value) pairs. connection: to the partition's leader. timestamp: ms since the epoch, now if None.
    Raises Failure, Refusal."""
    now = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    version = min(connection.version("Produce"), BY_NAME)
    magic = 2 if version >= 3 else 1 if version == 2 else 0
    batch = build(records, magic=magic, compression=compression, timestamp=now)
    body: Body = {"Acks": acks, "TimeoutMs": TIMEOUT_MS}
    body["TopicData"] = [{"Name": topic, "PartitionData": [{"Index": partition, "Records": batch}]}]
    exchange = connection.request("Produce", version, body, answer=acks != 0)
    if acks == 0:
        return ProduceResult(-1, exchange)
    topics = first(exchange.body()["Responses"], "Produce")
    row = first(topics["PartitionResponses"], "Produce")
    if row["ErrorCode"]:
        raise Refusal(exchange, row["ErrorCode"], row.get("ErrorMessage"))
    return ProduceResult(row["BaseOffset"], exchange)
