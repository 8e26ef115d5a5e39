"""Traffic between zones. Clients' zones are given by address, brokers' by their racks in Metadata or by address. Also
how much of what is fetched from another zone has a replica in the client's own (KIP-392)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kwire.analyze.fetched import fetched
from kwire.schema.keys import DESCRIBE_TOPIC_PARTITIONS, FETCH, METADATA, PRODUCE
from kwire.session.decoded import Decoded

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.exchange import Exchange

UNKNOWN = "unknown"
MOST = 10_000  # partitions, zones' pairs


class Zone(NamedTuple):
    """Addresses that are in one."""

    network: IPv4Network | IPv6Network
    name: str

    @classmethod
    def of(cls, text: str) -> Zone:
        """As "10.0.1.0/24=eu-1a". Raises ValueError."""
        network, equals, name = text.partition("=")
        if not equals or not name:
            raise ValueError(f"a zone is told as 10.0.1.0/24=NAME, and not {text}")
        return cls(ip_network(network, strict=False), name)


class Zones:
    """add(batch) collects, then traffic() and saved() tell. The racks of brokers may come behind the traffic."""

    def __init__(self, zones: Sequence[Zone]) -> None:
        self._zones = sorted(zones, key=lambda zone: -zone.network.prefixlen)
        self._racks: dict[str, str] = {}  # by host:port
        self._nodes: dict[int, str] = {}
        self._replicas: dict[tuple[str, int], tuple[int, ...]] = {}
        self._bytes: Counter[tuple[str, str, str]] = Counter()  # produced or fetched, client's address, broker
        self._fetched: Counter[tuple[str, str, str, int]] = Counter()  # address, broker, topic, partition

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        decoded = Decoded(batch)
        for number, kind in enumerate(batch.kinds):
            rows = np.flatnonzero(batch.kind == number)
            if kind is None or not len(rows):
                continue
            if kind.key in (METADATA, DESCRIBE_TOPIC_PARTITIONS):
                for row in rows.tolist():
                    self._metadata(batch[row])
            elif kind.key in (PRODUCE, FETCH):
                side = batch.request if kind.key == PRODUCE else batch.response
                for row in rows[side.there[rows]].tolist():
                    client, broker = batch.connections[batch.connection[row]].ends
                    what = "produced" if kind.key == PRODUCE else "fetched"
                    self._bytes[what, host(client), broker] += int(side.size[row])
            if kind.key == FETCH:
                self._partitions(decoded, number)

    def _partitions(self, decoded: Decoded, number: int) -> None:
        flat, batch = fetched(decoded, number).answered, decoded.batch
        numbers = flat.values["PartitionIndex"].tolist()
        columns = flat.row.tolist(), flat.topic.tolist(), numbers, flat.size.tolist()
        for row, topic, partition, size in zip(*columns, strict=True):
            if size and len(self._fetched) < MOST:
                client, broker = batch.connections[batch.connection[row]].ends
                self._fetched[host(client), broker, flat.names[topic], partition] += size

    def _metadata(self, exchange: Exchange) -> None:
        answer = exchange.answer() or {}
        for broker in answer.get("Brokers") or ():
            if len(self._nodes) < MOST:
                name = f"[{broker['Host']}]" if ":" in broker["Host"] else broker["Host"]
                self._racks[f"{name}:{broker['Port']}"] = self._nodes[broker["NodeId"]] = broker.get("Rack") or ""
        for topic in answer.get("Topics") or ():
            for one in topic["Partitions"]:
                if len(self._replicas) < MOST and topic.get("Name"):
                    self._replicas[topic["Name"], one["PartitionIndex"]] = tuple(one["IsrNodes"])

    def of(self, address: str, broker: str = "") -> str:
        """The zone of an address, of a broker by its host and port if addresses do not tell."""
        found = ip_address(address.strip("[]").partition("%")[0])
        for zone in self._zones:
            if found.version == zone.network.version and found in zone.network:
                return zone.name
        return self._racks.get(broker) or UNKNOWN

    def traffic(self) -> Counter[tuple[str, str, str]]:
        """Bytes by what was done (produced or fetched), the client's zone and the broker's."""
        out: Counter[tuple[str, str, str]] = Counter()
        for (what, client, broker), size in self._bytes.items():
            out[what, self.of(client), self.of(host(broker), broker)] += size
        return out

    def saved(self) -> int:
        """Bytes of records fetched from another zone of which an in-sync replica is in the client's own: what
        client.rack would keep there."""
        total = 0
        for (client, broker, topic, partition), size in self._fetched.items():
            zone = self.of(client)
            racks = {self._nodes.get(node) for node in self._replicas.get((topic, partition), ())}
            if zone != UNKNOWN and self.of(host(broker), broker) != zone and zone in racks:
                total += size
        return total


def host(endpoint: str) -> str:
    """10.0.0.7 of 10.0.0.7:51522."""
    return endpoint.rpartition(":")[0].strip("[]")
