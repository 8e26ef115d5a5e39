"""A consumer of our own, for what no library does: it names its rack, and follows the hint to another replica or
not."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from coordinator_lab import Client
from scenarios import Stage


async def fetch_with_rack(stage: Stage, leader: int, rack: str, *, follow: bool) -> float:
    """Fetches partition 0 twenty times; returns when it was told of another replica first."""
    client = await Client.connect("racked", ("127.0.0.1", stage.cluster.port(leader)))
    replica, at, offset, told = leader, leader, 0, 0.0
    await client.ask("ApiVersions", 3, {"ClientSoftwareName": "own-consumer", "ClientSoftwareVersion": "1.0"})
    await client.ask("Metadata", 9, {"Topics": [{"Name": stage.topic}]})
    for _ in range(20):
        if follow and replica != at:
            client.writer.close()
            client = await Client.connect("racked", ("127.0.0.1", stage.cluster.port(replica)))
            at = replica
        part = {"Partition": 0, "CurrentLeaderEpoch": -1, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
        body = {"MaxWaitMs": 200, "MinBytes": 1, "MaxBytes": 1 << 20, "RackId": rack, "SessionEpoch": -1}
        got = await client.ask("Fetch", 12, body | {"Topics": [{"Topic": stage.topic, "Partitions": [part]}]})
        answer = got["Responses"][0]["Partitions"][0]
        if answer["PreferredReadReplica"] >= 0:
            replica, told = answer["PreferredReadReplica"], told or time.time()
        await asyncio.sleep(0.1)
    client.writer.close()
    return told
