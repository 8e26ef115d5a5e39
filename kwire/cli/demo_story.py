"""What kwire demo lets happen: two consumers and a producer on an embedded broker, and what goes wrong with them.

Every step is a real exchange over loopback; the only thing that is arranged is the times, which are short.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from kwire.broker.context import BrokerSettings
from kwire.broker.handle import Broker
from kwire.client.address import Address
from kwire.client.cluster import ClusterClient
from kwire.client.connection import BrokerConnection
from kwire.client.consumer import ClassicMember, ConsumerConfig
from kwire.client.failure import Refusal
from kwire.client.producer import produce
from kwire.coordinator.types import GroupSettings
from kwire.counted import counted
from kwire.schema import codes

GROUP, TOPIC = "billing", "orders"
BEAT = 0.4  # seconds between heartbeats
SESSION = 2_000  # ms
FAULT = "Produce:error=NOT_LEADER_OR_FOLLOWER,times=1"
Say = Callable[[str], None]


def play(capture: Path, say: Say) -> None:
    """Lives through it all and writes what was on the wire to capture. say gets each turn of the
    story as it comes. Raises KwireError when the broker cannot start."""
    groups = GroupSettings(group_min_session_timeout_ms=1_000, group_initial_rebalance_delay_ms=300)
    with Broker(topics={TOPIC: 4}, capture=capture, faults=[FAULT], settings=BrokerSettings(groups=groups)) as broker:
        say(f"a broker listens on {broker.address}, topic {TOPIC} has 4 partitions")
        first, second = (_Consumer(broker.address, f"billing-{number}") for number in (1, 2))
        first.start()
        say(f"billing-1 joins group {GROUP}; it is alone and gets {_count(first)}")
        _produce(broker.address, say)
        time.sleep(2 * BEAT)
        second.start()
        first.settled(2)
        say(f"billing-2 joins: the group rebalances; now {_count(first)} and {_count(second)}")
        time.sleep(2 * BEAT)
        second.freeze()
        say("billing-2 is stopped, as by a long garbage collection: no heartbeat leaves it")
        first.settled(4)
        say(f"its session timeout of {SESSION:,} ms is over: it is evicted, billing-1 gets {_count(first)}")
        time.sleep(BEAT)
        error = second.wake()
        assert error == codes.UNKNOWN_MEMBER_ID
        say("billing-2 is back and sends a heartbeat: UNKNOWN_MEMBER_ID")
        second.start()
        first.settled(2)
        say("it joins anew, as a client must")
        time.sleep(BEAT)
        for consumer in (second, first):
            consumer.leave()
        say("both leave")


class _Consumer:
    """A member with a thread that polls and beats, and joins again when the group rebalances."""

    def __init__(self, address: str, client_id: str) -> None:
        options = ConsumerConfig(session_timeout_ms=SESSION, rebalance_timeout_ms=3_000)
        self.member = ClassicMember(address, GROUP, TOPIC, options, ClusterClient(client_id=client_id))
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._settled = threading.Condition()

    def start(self) -> None:
        """Joins as a new member, then lives on in a thread."""
        self.member.forget()
        self.member.find()
        self._join()
        self._over.clear()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def freeze(self) -> None:
        """No more heartbeats; the connection stays."""
        self._over.set()
        assert self._thread is not None
        self._thread.join()

    def wake(self) -> int:
        """The answer to the first heartbeat after that."""
        return self.member.heartbeat()

    def leave(self) -> None:
        self.freeze()
        self.member.leave()
        self.member.close()

    def settled(self, partitions: int) -> None:
        """Waits until so many partitions are assigned to it. Raises TimeoutError."""
        with self._settled:
            if not self._settled.wait_for(lambda: len(self.member.partitions) == partitions, timeout=10):
                raise TimeoutError(f"{GROUP} did not settle")

    def _join(self) -> None:
        while True:
            self.member.join()
            try:
                self.member.sync()
            except Refusal as refusal:
                if refusal.code != codes.REBALANCE_IN_PROGRESS:
                    raise
            else:
                break
        with self._settled:
            self._settled.notify_all()

    def _live(self) -> None:
        while not self._over.wait(BEAT):
            if self.member.heartbeat() == codes.REBALANCE_IN_PROGRESS:
                self._join()
            self.member.poll(wait_ms=50)


def _produce(address: str, say: Say) -> None:
    """Three records to each partition; the first batch meets the fault."""
    with BrokerConnection.open(Address.parse_all(address)[0], client_id="shop") as connection:
        for partition in range(4):
            records = [(f"order-{partition}{number}".encode(), b'{"total": 12.5}') for number in range(3)]
            try:
                produce(connection, TOPIC, partition, records)
            except Refusal:
                say("shop produces; the broker refuses the first batch (a fault on purpose), and the producer retries")
                produce(connection, TOPIC, partition, records)


def _count(consumer: _Consumer) -> str:
    return counted(len(consumer.member.partitions), "partition")
