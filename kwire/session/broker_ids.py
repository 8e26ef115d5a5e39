"""The node ids of brokers by address, as answers tell them: Metadata, DescribeCluster, FindCoordinator, and errors that
name the new leaders (KIP-951).

Connections are known by address, so an advertised host name tells nothing. An address with two ids counts as unknown:
there are two clusters, or the broker came back under another id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

import numpy as np

from kwire.capture.ip import endpoint
from kwire.codec.columnar import Lists, Numbers, Slices, Structs, decode_columns
from kwire.codec.plan import Plan
from kwire.schema import keys
from kwire.session.about_columns import distinct_bodies
from kwire.session.api_versions import Kind
from kwire.session.batch import ExchangeBatch
from kwire.wire.columns import Ints, places_of

# The arrays in answers whose elements have Host and Port. FindCoordinator before v4 has one coordinator and no array.
# DescribeQuorum v2 is not here: it names listeners of controllers, to which no client connects because of it.
ADDRESSES = {
    keys.METADATA: "Brokers", keys.DESCRIBE_CLUSTER: "Brokers", keys.FIND_COORDINATOR: "Coordinators",
    **dict.fromkeys((keys.PRODUCE, keys.FETCH, keys.SHARE_FETCH, keys.SHARE_ACKNOWLEDGE), "NodeEndpoints"),
}  # fmt: skip
ASKED_FOR = frozenset({keys.METADATA, keys.DESCRIBE_CLUSTER, keys.FIND_COORDINATOR})  # the others do so with errors
MOST = 100_000  # addresses that are remembered


class BrokerIds:
    """of(endpoint) gives the node id of the broker at an address like 10.0.0.2:9092."""

    def __init__(self) -> None:
        self._known: dict[str, int | None] = {}

    def of(self, endpoint: str) -> int | None:
        """None where no answer tells it, or where answers contradict each other."""
        return self._known.get(endpoint)

    def add(self, host: str, port: int, node: int) -> None:
        """Adds what an answer says; a node id below zero says nothing."""
        where = _endpoint(host, port)
        if where is not None and node >= 0:
            self._add(where, node)

    def merge(self, other: BrokerIds) -> None:
        """Adds what others know."""
        for where, node in other._known.items():
            self._add(where, node)

    def _add(self, where: str, node: int | None) -> None:
        if where in self._known:
            self._known[where] = node if self._known[where] == node else None
        elif len(self._known) < MOST:
            self._known[where] = node

    def learn(self, batch: ExchangeBatch) -> None:
        """Adds what a batch's answers say, of those that are whole."""
        whole, response = batch.whole, batch.response
        for kind, rows in zip(batch.kinds, places_of(batch.kind, len(batch.kinds)), strict=True):
            if kind is None or not kind.supported or kind.key not in ADDRESSES:
                continue
            rows = rows[whole[rows]]
            if kind.key not in ASKED_FOR:
                rows = rows[batch.errors[rows] > 0]
            if len(rows):
                first, _ = distinct_bodies(batch.buffer, response.body[rows], response.end[rows])
                self._read(kind, batch.buffer, response.body[rows[first]], response.end[rows[first]])

    def _read(self, kind: Kind, buffer: bytes, starts: Ints, ends: Ints) -> None:
        """Adds what answers of a kind say; of many only the beginning is read, up to the brokers."""
        fine = np.zeros(len(starts), bool)
        if kind.key in ASKED_FOR and len(starts) > kind.thresholds.bodies:
            columns, fine = decode_columns(_beginning(kind), buffer, starts, ends, kind.thresholds, whole=False)
            for host, port, node in set(_of_columns(columns.fields.get(ADDRESSES[kind.key], columns), buffer)):
                self.add(host.decode("utf-8", "replace"), port, node)
        for row in np.flatnonzero(~fine).tolist():
            body = kind.codecs[1].decode_at(buffer[starts[row] : ends[row]], 0)[0]
            for one in body.get(ADDRESSES[kind.key], [body]):
                self.add(one.get("Host") or "", one.get("Port", -1), one.get("NodeId", one.get("BrokerId", -1)))


def _beginning(kind: Kind) -> Plan:
    """The plan of an answer up to its brokers."""
    plan, root = kind.plan("response"), kind.plan("response").root
    count = next((at + 1 for at, slot in enumerate(root.slots) if slot.name == ADDRESSES[kind.key]), None)
    if count is None:  # FindCoordinator before v4
        return plan
    return replace(plan, root=replace(root, slots=root.slots[:count], tagged={}, flexible=False))


def _of_columns(column: Any, buffer: bytes) -> Iterable[tuple[bytes, int, int]]:
    """(host, port, node id) of each broker."""
    brokers = column.flat if isinstance(column, Lists) else column
    assert isinstance(brokers, Structs)
    ident = "BrokerId" if "BrokerId" in brokers.fields else "NodeId"
    host, port, node = (brokers.fields[name] for name in ("Host", "Port", ident))
    assert isinstance(host, Slices)
    assert isinstance(port, Numbers)
    assert isinstance(node, Numbers)
    starts, ends = host.starts.tolist(), (host.starts + host.lengths).tolist()
    names = [buffer[low:high] for low, high in zip(starts, ends, strict=True)]
    return zip(names, port.values.tolist(), node.values.tolist(), strict=True)


@lru_cache(1024)
def _endpoint(host: str, port: int) -> str | None:
    """As connections name it; None of a host that is no address."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return endpoint(str(mapped or address), port)
