"""What a scenario is, and what its program is given: the cluster, whether the trouble is on, and where truth is
kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cluster import Cluster
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

Config = dict[str, Any]


@dataclass
class Stage:
    """name: the capture's; topic: one of its own; sick: whether the trouble is on."""

    name: str
    sick: bool
    cluster: Cluster
    truth: list[dict[str, Any]] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return f"{self.name}-t"

    @property
    def group(self) -> str:
        return f"{self.name}-g"

    def found(self, detector: str, at: float | None = None, followed: Iterable[str] = (), **about: Any) -> None:
        """Truth: what a doctor has to find. at: seconds since the epoch; now, without it. followed: the detectors whose
        findings follow from it."""
        when = round((time.time() if at is None else at) * 1000) * 1_000_000
        consequences = {"consequences": sorted(followed)} if followed else {}
        self.truth.append({"detector": detector, "time": when, "about": about, **consequences})

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.cluster.address, "client.id": "admin"})

    def create(self, partitions: int = 1, copies: int = 1, topic: str = "", **config: object) -> None:
        """The scenario's topic."""
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        new = NewTopic(topic or self.topic, partitions, copies, config=settings)
        for future in self.admin.create_topics([new], operation_timeout=30, request_timeout=40).values():
            future.result(60)
        time.sleep(0.5)

    def producer(self, client: str = "producer", **config: object) -> Producer:
        return Producer(
            {"bootstrap.servers": self.cluster.address, "client.id": client}
            | {key if key.endswith("_cb") else key.replace("_", "."): value for key, value in config.items()}
        )

    def consumer(self, client: str = "consumer", **config: object) -> Consumer:
        base: Config = {"bootstrap.servers": self.cluster.address, "client.id": client, "group.id": self.group}
        base |= {"auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 6000}
        if config.get("group_protocol") == "consumer":
            del base["session.timeout.ms"]
        else:
            base["heartbeat.interval.ms"] = 1000
        return Consumer(base | {key.replace("_", "."): value for key, value in config.items()})

    def fill(self, count: int = 20, size: int = 20, partition: int = 0, **config: object) -> None:
        """Records in the topic, before anything is recorded."""
        producer = self.producer("filler", **config)
        for number in range(count):
            producer.produce(self.topic, value=f"order {number}".ljust(size), partition=partition)
        producer.flush(10)

    def consume(self, consumer: Consumer, seconds: float, commit: bool = False, most: int = 10**9) -> int:
        """Polls for so long, and counts the records."""
        got, end = 0, time.monotonic() + seconds
        while time.monotonic() < end and got < most:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                got += 1
                if commit:
                    consumer.commit(message=message, asynchronous=False)
        return got


def nothing(_: Stage) -> None:
    """No preparation."""


@dataclass(frozen=True)
class Scenario:
    """play: the program, recorded; prepare: what comes before; cluster: its options; well: those that differ for the
    healthy twin; ports: recorded besides the brokers'; only: recorded instead of them; alone: whether it wants a
    cluster for itself; healthy_only: there is no trouble; snaplen: bytes kept of each packet, when sick."""

    play: Callable[[Stage], None]
    prepare: Callable[[Stage], None] = nothing
    cluster: Config = field(default_factory=dict)
    well: Config = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    only: tuple[int, ...] = ()
    alone: bool = False
    healthy_only: bool = False
    snaplen: int = 0

    def what(self) -> str:
        return " ".join((self.play.__doc__ or "").split())
