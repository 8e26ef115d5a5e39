"""Where a group and a topic live in a cluster: the brokers that metadata names, the leaders, the coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from uuid import UUID

from kwire.client import bodies
from kwire.client.address import Address
from kwire.client.bodies import CoordinatorAnswer, Partition
from kwire.client.bootstrap import View, attempts, view
from kwire.client.cluster import ClusterClient
from kwire.client.exchange import Body, ClientExchange
from kwire.client.failure import Refusal
from kwire.errors import Failure
from kwire.schema import codes

# look for the coordinator again
PASSING = (codes.COORDINATOR_LOAD_IN_PROGRESS, codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR)
BACKOFF = 0.25  # seconds


class GroupPlace:
    """addresses: bootstrap.servers. view and coordinator are None until refresh() and find_coordinator() have asked;
    entry is the address through which they did. Raises Failure where no answer comes, Refusal where it is an error."""

    def __init__(self, addresses: str | Sequence[Address], group: str, topic: str, cluster: ClusterClient) -> None:
        self.bootstrap = Address.parse_all(addresses) if isinstance(addresses, str) else list(addresses)
        self.group, self.topic, self.cluster = group, topic, cluster
        self.entry: Address | None = None
        self.view: View | None = None
        self.coordinator: Address | None = None
        self.passed: list[int] = []  # error codes that passed before the coordinator was found

    def find(self) -> Address:
        """Bootstrap, metadata and coordinator: the address of the group's coordinator."""
        return self.search().address

    def search(self) -> CoordinatorAnswer:
        """The same, with the node's id."""
        failures = []
        for attempt in attempts(self.cluster, self.bootstrap):
            if attempt.failure is None:
                self.refresh(attempt.address)
                return self.find_coordinator()
            failures.append(attempt.failure)
        raise failures[-1]

    def refresh(self, address: Address) -> View:
        """Metadata of the topic, from that broker. Before v4 all topics: naming one could create it."""
        self.entry = address
        exchange = self.cluster.ask(
            address, "Metadata", lambda version: bodies.metadata(version, [self.topic] if version >= 4 else None)
        )
        self.view = view(exchange.body(), self.topic)
        if not self.view.topic_id.int:  # versions that go by topic ids cannot be spoken
            self.cluster.highest |= {"Fetch": 12, "OffsetFetch": 9}
        return self.view

    def find_coordinator(self) -> CoordinatorAnswer:
        """Asked again for a while where there is none yet: the first group makes the broker create its topic."""
        deadline = time.monotonic() + self.cluster.timeout
        self.passed = []
        while True:
            exchange = self.cluster.ask(
                self.entry or self.bootstrap[0], "FindCoordinator",
                lambda version: bodies.find_coordinator(version, self.group),
            )  # fmt: skip
            found = bodies.found_coordinator(exchange.body())
            if not found.error:
                self.coordinator = found.address
                return found
            if found.error not in PASSING or time.monotonic() > deadline:
                raise Refusal(exchange, found.error, found.message)
            self.passed.append(found.error)
            time.sleep(BACKOFF)

    def ask(self, api: str, body: Callable[[int], Body], timeout: float | None = None) -> ClientExchange:
        """Asks the coordinator, which is looked for first."""
        return self.cluster.ask(self.coordinator or self.find(), api, body, timeout)

    def counts(self, topics: Sequence[str]) -> dict[str, int]:
        """How many partitions topics have; those that metadata does not name are left out."""
        known = {self.topic: len(self.view.partitions) if self.view else 0}
        others = sorted(set(topics) - set(known))
        if others:
            exchange = self.cluster.ask(
                self.coordinator or self.find(), "Metadata",
                lambda version: bodies.metadata(version, others if version >= 4 else None),
            )  # fmt: skip
            known |= {row["Name"]: len(row["Partitions"]) for row in exchange.body()["Topics"]}
        return known

    def ids(self) -> dict[str, UUID]:
        """The topic's id by its name."""
        return {self.topic: self.view.topic_id if self.view else UUID(int=0)}

    def names(self) -> dict[UUID, str]:
        """The reverse."""
        return {uuid: name for name, uuid in self.ids().items()}

    def by_leader(self, partitions: Sequence[Partition]) -> dict[Address, list[Partition]]:
        """Partitions by their leaders' addresses. Raises Failure for one without a leader that metadata names."""
        out: dict[Address, list[Partition]] = {}
        for topic, index in partitions:
            node = self.view.leaders.get(index, -1) if self.view and topic == self.topic else -1
            address = self.view.brokers.get(node) if self.view else None
            if address is None:
                raise Failure("unsupported", f"{topic}-{index}", f"no leader in metadata (node {node})")
            out.setdefault(address, []).append((topic, index))
        return out
