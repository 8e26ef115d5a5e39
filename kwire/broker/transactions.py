"""Transactions: the bridge from requests to the transaction coordinator, and from its orders to the logs.

One coordinator serves all nodes; each node owns the transactional ids that the cluster's hash gives it. What a broker
asks a coordinator about a producer's batches and offsets (Kafka's AddPartitionsToTxnManager) is a call here, and
markers are written as soon as a transaction is decided.
"""

from __future__ import annotations

from dataclasses import replace

from kwire.broker.bridge import Alarm, load, move
from kwire.broker.context import MS, Body, Request
from kwire.broker.core import BrokerCore
from kwire.broker.refused import Refused
from kwire.coordinator.context import everything
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.transactions.context import Marker
from kwire.coordinator.transactions.coordinator import OFFSETS_TOPIC, TransactionCoordinator
from kwire.coordinator.transactions.transaction import Place
from kwire.coordinator.types import Check, ClientIdentity
from kwire.records.batch import Header
from kwire.schema import codes
from kwire.schema.codes import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_TXN_STATE,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
)

ADDS = {"Produce": 12, "TxnOffsetCommit": 5}  # from this version on the request itself adds partitions (KIP-890)
ABORTABLE = {"Produce": 11, "TxnOffsetCommit": 4}  # from this version on the client knows TRANSACTION_ABORTABLE
RETRIED = (CONCURRENT_TRANSACTIONS, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE)


class Transactions:
    """The transactions of all nodes. groups: whose offsets are committed in them."""

    def __init__(self, state: BrokerCore, groups: Coordinator) -> None:
        self.state, self._groups = state, groups
        settings = replace(state.settings.transactions, era=state.settings.era or state.settings.transactions.era)
        self.coordinator = TransactionCoordinator(settings, state.cluster.new_producer, self._exists)
        self._alarm = Alarm(state.clock, self._tick)

    def ask(self, request: Request) -> Body:
        """A transaction request's answer."""
        peer, cluster = request.peer, self.state.cluster
        caller = ClientIdentity(request.client_id or "", f"/{peer.host}", peer.principal)
        self.coordinator.owns = lambda name: cluster.coordinator(name) == request.node
        self.coordinator.epoch = cluster.moved
        answer = self.coordinator.ask(request.api, request.version, request.body, caller, request.time)
        self._drain()
        return answer.body

    # ------------------------------------------------------------ asked by brokers

    def claim(self, request: Request, header: Header, name: str | None, place: Place) -> None:
        """A batch may be written: its partition is, or is now, in the producer's transaction. Raises Refused."""
        if name is None:
            why = "records of a transaction, and no transactional id"
            raise Refused(codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why)
        check = self._claimed(request, name, header.producer_id, header.producer_epoch, place)
        if check.error in RETRIED:
            raise Refused(codes.NOT_ENOUGH_REPLICAS, check.why)  # by which any client tries again
        if check.error:
            raise Refused(check.error, check.why)

    def claim_offsets(self, request: Request) -> Check | None:
        """The same for offsets: what is wrong, or None."""
        body = request.body
        place = self.coordinator.group_place(body["GroupId"])
        check = self._claimed(request, body["TransactionalId"], body["ProducerId"], body["ProducerEpoch"], place)
        return check if check.error else None

    def _claimed(self, request: Request, name: str, producer: int, epoch: int, place: Place) -> Check:
        coordinator, now = self.coordinator, request.time
        coordinator.owns = everything  # the broker finds the right node
        if request.version >= ADDS[request.api] and coordinator.settings.level:
            check = coordinator.add(name, producer, epoch, [place], now)
        else:
            check, inside = coordinator.verify(name, producer, epoch, [place], now)
            if not check.error and place not in inside:
                old = request.version < ABORTABLE[request.api]
                error = INVALID_TXN_STATE if old else coordinator.missing_error
                check = Check(4, "added", error, f"{place[0]}-{place[1]} was not added to the transaction of {name}")
        self._drain()
        if check.error == PRODUCER_FENCED:
            return replace(check, error=codes.INVALID_PRODUCER_EPOCH)
        if check.error == TRANSACTION_ABORTABLE and request.version < ABORTABLE[request.api]:
            return replace(check, error=INVALID_TXN_STATE)
        return check

    # ------------------------------------------------------------ markers

    def write(self, marker: Marker, place: Place) -> None:
        """One control record; offsets of the group's become committed or vanish. Raises Refused."""
        topic, index = place
        if topic == OFFSETS_TOPIC:
            self._groups.end_transaction(marker.producer, marker.commit)
            return
        found = self.state.cluster.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
        partition, now = found.partitions[index], self.state.clock.now() // MS
        partition.log.mark(
            marker.producer, marker.epoch, marker.commit, marker.coordinator_epoch, marker.level, partition.epoch, now
        )

    def _drain(self) -> None:
        """Writes what is ordered, tells what happened, and sets the next alarm."""
        while markers := self.coordinator.markers():
            for marker in markers:
                for place in sorted(marker.places):
                    try:
                        self.write(marker, place)
                    except Refused as refused:  # the topic is gone, or a newer epoch stands there: nothing to end
                        text = f"no marker in {place[0]}-{place[1]}: {refused.why}"
                        self.state.tell("marker", marker.id, text)
                self.coordinator.marked(marker.id, marker.places, self.state.clock.now())
        for event in self.coordinator.events():
            self.state.tell(event.kind, event.group, event.why, event=event)
        self._alarm.set(self.coordinator.due)

    # ------------------------------------------------------------ time and faults

    def act(self, what: str, name: str, value: int = 0) -> None:
        """A fault: forget the transactional id, let its transaction time out, move its coordinator, or have it loaded,
        for value ns."""
        self.coordinator.tick(self.state.clock.now())
        if what == "move":
            move(self.state, name)
        elif what == "forget":
            self.coordinator.forget(name)
        elif what == "expire":
            self.coordinator.expire(name)
        elif what == "loading":
            load(self.state, self.coordinator.loading, name, value)
        self._drain()

    def loaded(self) -> None:
        """What was stored is there again: its markers are written."""
        self._drain()

    def stop(self) -> None:
        self._alarm.cancel()

    def _tick(self) -> None:
        self.coordinator.tick(self.state.clock.now())
        self._drain()

    def _exists(self, topic: str, index: int) -> bool:
        if topic == OFFSETS_TOPIC:
            return 0 <= index < self.coordinator.settings.offsets_topic_num_partitions
        found = self.state.cluster.topics.get(topic)
        return found is not None and 0 <= index < len(found.partitions)
