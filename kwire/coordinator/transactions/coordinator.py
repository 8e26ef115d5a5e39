"""The transaction coordinator: a table of APIs in front of the transactions. No I/O; whoever asks brings the time.

    coordinator = TransactionCoordinator(settings, new_producer=lambda: ...)
    answer = coordinator.ask("InitProducerId", 5, body, caller, now)
    for marker in coordinator.markers():       # control records that somebody has to write
        coordinator.marked(marker.id, marker.places, now)
    coordinator.tick(now)                      # when coordinator.due has come

Brokers ask on behalf of producers: add and verify, for what Produce and TxnOffsetCommit bring (KIP-890). After
TransactionCoordinator, TransactionStateManager and TransactionMetadata of Kafka 4.3 and 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from kwire.coordinator.context import Reply
from kwire.coordinator.transactions import apis, listing, stored
from kwire.coordinator.transactions.context import Marker, TxnContext, TxnRequest, anything
from kwire.coordinator.transactions.transaction import Place, Transaction, TxnState
from kwire.coordinator.types import Answer, Check, ClientIdentity, Event, TransactionSettings
from kwire.errors import UnknownName

OFFSETS_TOPIC = "__consumer_offsets"
NOBODY = ClientIdentity()

APIS: dict[str, Callable[[TxnContext, TxnRequest], Reply]] = {
    "InitProducerId": apis.init_producer_id,
    "AddPartitionsToTxn": apis.add_partitions,
    "AddOffsetsToTxn": apis.add_offsets,
    "EndTxn": apis.end_txn,
    "DescribeTransactions": listing.describe_transactions,
    "ListTransactions": listing.list_transactions,
}


def offsets_place(group: str, partitions: int) -> Place:
    """Where a group's offsets lie: Java's hash of its name over so many partitions."""
    value = 0
    for unit in memoryview(group.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return OFFSETS_TOPIC, (0 if signed == -(1 << 31) else abs(signed)) % partitions


class TransactionCoordinator:
    """Transactional ids and their transactions. Times are ns; one that lies before the last is taken for the last."""

    def __init__(
        self,
        settings: TransactionSettings | None = None,
        new_producer: Callable[[], int] | None = None,
        exists: Callable[[str, int], bool] = anything,
    ) -> None:
        chosen = settings or TransactionSettings()
        self._context = TxnContext(chosen, new_producer or count().__next__, exists, self.group_place)

    def ask(
        self, api: str, version: int, body: Mapping[str, Any], caller: ClientIdentity = NOBODY, now: int = 0
    ) -> Answer:
        """The answer, which never waits; its ticket is 0.

        Raises UnknownName for an API that a transaction coordinator does not answer, or a version that the API lacks.
        """
        handle = APIS.get(api)
        if handle is None:
            raise UnknownName("transaction coordinator API", api, tuple(APIS))
        self.tick(now)
        request = TxnRequest(api, version, dict(body), caller)
        reply = handle(self._context, request)
        return self._context.answer(request, reply.body, reply.check)

    def add(self, name: str, producer: int, epoch: int, places: Iterable[Place], now: int) -> Check:
        """A broker adds partitions for the producer that writes to them; error NONE: they belong to it now."""
        self.tick(now)
        if not name:
            return apis.nameless()
        return self._context.placed(name) or apis.added(self._context, name, producer, epoch, places)

    def verify(
        self, name: str, producer: int, epoch: int, places: Iterable[Place], now: int
    ) -> tuple[Check, set[Place]]:
        """A broker asks whether partitions belong to the open transaction; with those that do."""
        self.tick(now)
        check = self._context.placed(name) if name else apis.nameless()
        return (check, set()) if check else apis.verified(self._context, name, producer, epoch, places)

    @property
    def missing_error(self) -> int:
        """The error for a partition that is not in the transaction."""
        return apis.missing_error(self._context)

    def group_place(self, group: str) -> Place:
        """The partition of __consumer_offsets that joins a transaction with the group's offsets."""
        return offsets_place(group, self.settings.offsets_topic_num_partitions)

    # markers

    def markers(self) -> list[Marker]:
        """Drains the orders to write markers."""
        orders, self._context.markers = self._context.markers, []
        return orders

    def marked(self, name: str, places: Iterable[Place], now: int) -> None:
        """Markers of the transaction stand in these partitions, or never will because the partitions are gone."""
        self.tick(now)
        self._context.marked(name, places)

    # after a restart

    def revive(self, name: str, fields: Mapping[str, Any], now: int) -> None:
        """A transactional id from its record; what was open is aborted."""
        self.tick(now)
        stored.restore(self._context, name, dict(fields))

    # faults

    def forget(self, name: str) -> None:
        """Drops a transactional id as if it had expired; what it has open is aborted first."""
        txn = self._context.transactions.get(name)
        if txn is not None:
            self.expire(name)
            self._context.forget(txn, "it was dropped on purpose")

    def expire(self, name: str) -> bool:
        """Aborts the open transaction as if it had timed out; says whether there was one."""
        txn = self._context.transactions.get(name)
        if txn is None or txn.state is not TxnState.ONGOING:
            return False
        self._context.fence(txn, "it was timed out on purpose")
        return True

    # time

    def tick(self, now: int) -> None:
        """Aborts and forgets what is due, each as of its own deadline."""
        while (found := self._context.timers.pop(now)) is not None:
            key, deadline = found
            self._context.now = max(self._context.now, deadline)
            self._context.expire(key)
        self._context.now = max(self._context.now, now)

    @property
    def due(self) -> int | None:
        """When tick must be called next; None when nothing waits."""
        return self._context.timers.due

    def events(self) -> list[Event]:
        """Drains what happened; Event.group is the transactional id."""
        happened = list(self._context.events)
        self._context.events.clear()
        return happened

    # what may be seen and switched

    @property
    def settings(self) -> TransactionSettings:
        return self._context.settings

    @property
    def level(self) -> int:
        """The transaction.version in force."""
        return self.settings.level

    @level.setter
    def level(self, level: int) -> None:
        self._context.settings = replace(self._context.settings, transaction_version=level)

    @property
    def transactions(self) -> dict[str, Transaction]:
        """By transactional id."""
        return self._context.transactions

    @property
    def epoch(self) -> int:
        """The coordinator's own epoch, which markers carry."""
        return self._context.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._context.epoch = epoch

    @property
    def owns(self) -> Callable[[str], bool]:
        """Whether this coordinator is that transactional id's; else NOT_COORDINATOR."""
        return self._context.owns

    @owns.setter
    def owns(self, owns: Callable[[str], bool]) -> None:
        self._context.owns = owns

    @property
    def loading(self) -> set[str]:
        """Transactional ids that are being loaded: COORDINATOR_LOAD_IN_PROGRESS."""
        return self._context.loading

    @property
    def may(self) -> Callable[[ClientIdentity, str], bool]:
        """Whether the caller may use that transactional id; else TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""
        return self._context.may

    @may.setter
    def may(self, may: Callable[[ClientIdentity, str], bool]) -> None:
        self._context.may = may
