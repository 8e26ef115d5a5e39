"""The way into a cluster: one of the given addresses that answers, and what metadata says from there.

Clients take bootstrap.servers for nothing else than this: from then on they use the addresses that brokers advertise,
so those are tried too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kwire.client.address import Address
from kwire.client.cluster import ClusterClient
from kwire.client.connection import dial
from kwire.client.exchange import Body
from kwire.errors import Failure, KwireError
from kwire.schema import codes

THREADS = 16
MOST = 200  # brokers tried


class Attempt(NamedTuple):
    """A connection that was tried. took: ns. failure: None when it stands."""

    address: Address
    took: int
    failure: KwireError | None


def attempts(cluster: ClusterClient, addresses: Sequence[Address]) -> Iterator[Attempt]:
    """In turn, up to the first that answers."""
    for address in addresses:
        start = time.monotonic_ns()
        try:
            cluster.connect(address)
        except KwireError as error:
            yield Attempt(address, time.monotonic_ns() - start, error)
            continue
        yield Attempt(address, time.monotonic_ns() - start, None)
        return


def reach(addresses: Iterable[Address], timeout: float) -> dict[Address, Attempt]:
    """A TCP connection to each, several at a time."""

    def one(address: Address) -> Attempt:
        start = time.monotonic_ns()
        failure: Failure | None = None
        try:
            dial(address, timeout).close()
        except Failure as error:
            failure = error
        return Attempt(address, time.monotonic_ns() - start, failure)

    wanted = list(dict.fromkeys(addresses))[:MOST]
    with ThreadPoolExecutor(min(THREADS, len(wanted)) or 1) as pool:
        return {attempt.address: attempt for attempt in pool.map(one, wanted)}


@dataclass(frozen=True, slots=True, order=True)
class PartitionView:
    """A partition in metadata: node ids, and its own error code."""

    index: int
    error: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


class View(NamedTuple):
    """A cluster and one of its topics, as a broker's metadata has them. error: the topic's; 3 when it is not named."""

    cluster_id: str | None
    controller: int | None
    brokers: dict[int, Address]
    error: int
    topic_id: UUID
    partitions: tuple[PartitionView, ...]

    @property
    def leaders(self) -> dict[int, int]:
        """By partition the node that leads it."""
        return {partition.index: partition.leader for partition in self.partitions}


def view(body: Body, topic: str) -> View:
    """Metadata of any version."""
    found: Body = next((row for row in body["Topics"] if row["Name"] == topic), {})
    partitions = [
        PartitionView(
            row["PartitionIndex"], row["ErrorCode"], row["LeaderId"], tuple(row["ReplicaNodes"]),
            tuple(row["IsrNodes"]), tuple(row.get("OfflineReplicas") or ()),
        )
        for row in found.get("Partitions") or []
    ]  # fmt: skip
    return View(
        body.get("ClusterId"), body.get("ControllerId"),
        {row["NodeId"]: Address(row["Host"], row["Port"]) for row in body["Brokers"]},
        found.get("ErrorCode", codes.UNKNOWN_TOPIC_OR_PARTITION), found.get("TopicId") or UUID(int=0),
        tuple(sorted(partitions)),
    )  # fmt: skip
