"""What all transaction handlers work with: the transactions, their deadlines, the markers to be written; and the steps
that a transaction takes with all that follows from them.

Markers go out as orders: whoever keeps the logs writes them and tells so (marked). After TransactionStateManager and
TransactionMarkerChannelManager. A transaction's timeout is acted on when it is over; Kafka looks every 10 s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kwire.coordinator.bodies import Body, shape
from kwire.coordinator.context import MOST_EVENTS, anyone, counted, everything, shown_ms
from kwire.coordinator.timers import Key, Timers
from kwire.coordinator.transactions.transaction import NEVER, Place, Transaction, TxnState
from kwire.coordinator.types import MS, Answer, Check, ClientIdentity, Event, TransactionSettings
from kwire.schema.codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_REQUEST,
    NOT_COORDINATOR,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)

TIMEOUT, EXPIRY = "transaction timeout", "transactional id expiration"


class Marker(NamedTuple):
    """An order to write control records. level: the transaction.version by which the transaction ended."""

    id: str
    producer: int
    epoch: int
    commit: bool
    places: frozenset[Place]
    coordinator_epoch: int
    level: int


class TxnRequest(NamedTuple):
    """A request as handlers see it."""

    api: str
    version: int
    body: Body
    caller: ClientIdentity


def anything(topic: str, partition: int) -> bool:  # noqa: ARG001
    """Every partition exists."""
    return True


@dataclass(slots=True)
class TxnContext:
    """exists: whether there is such a partition; group_place: where a group's offsets lie; epoch: the coordinator's
    own, which grows when it moves."""

    settings: TransactionSettings
    new_producer: Callable[[], int]
    exists: Callable[[str, int], bool]
    group_place: Callable[[str], Place]
    now: int = 0
    epoch: int = 0
    transactions: dict[str, Transaction] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    markers: list[Marker] = field(default_factory=list)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    active: bool = True
    owns: Callable[[str], bool] = everything
    loading: set[str] = field(default_factory=set)
    may: Callable[[ClientIdentity, str], bool] = anyone
    places: int = 0  # partitions in all transactions

    @property
    def now_ms(self) -> int:
        return self.now // MS

    def gate(self, caller: ClientIdentity, name: str) -> Check | None:
        """What ends a request before the transaction is looked at."""
        if not self.may(caller, name):
            who = caller.principal or "nobody, logged in as such,"
            return Check(0, "authorised", TRANSACTIONAL_ID_AUTHORIZATION_FAILED, f"{who} may not use {name}")
        if not name:
            return Check(0, "transactional id", INVALID_REQUEST, "the transactional id is empty")
        return self.placed(name)

    def placed(self, name: str) -> Check | None:
        """Whether this coordinator has the id, and is ready for it."""
        if not self.active:
            return Check(0, "active", COORDINATOR_NOT_AVAILABLE, "the coordinator is not active")
        if name in self.loading:
            return Check(0, "loading", COORDINATOR_LOAD_IN_PROGRESS, f"{name} is being loaded")
        if not self.owns(name):
            return Check(0, "coordinator", NOT_COORDINATOR, f"another broker coordinates {name}")
        return None

    def answer(self, request: TxnRequest, body: Body, check: Check | None) -> Answer:
        """Shaped for the request's version."""
        shaped = shape(request.api + "Response", request.version, body)
        return Answer(0, request.api, request.version, shaped, self.now, check)

    # the steps

    def create(self, name: str, timeout_ms: int) -> Transaction | None:
        """A transactional id that is used for the first time; None when there is no room for one more."""
        if len(self.transactions) >= self.settings.most_ids:
            oldest = min((t for t in self.transactions.values() if t.idle), key=lambda t: t.updated_ms, default=None)
            if oldest is None:
                return None
            self.forget(oldest, "the room is needed")
        txn = self.transactions[name] = Transaction(name, self.new_producer(), timeout_ms, self.now_ms)
        return txn

    def initialise(self, txn: Transaction, expected: int | None, timeout_ms: int) -> None:
        """Id and epoch for a producer; expected: the epoch that it names."""
        if txn.exhausted and expected in (None, txn.epoch):
            txn.rotate(self.new_producer(), keep_epoch=expected is not None)
        else:
            txn.bump(expected)
        txn.ready(timeout_ms, self.now_ms, keep_start=self.settings.era < (4, 0))
        self._wait_for_expiry(txn)
        self.tell(txn, "producer", f"producer id {txn.producer}, epoch {txn.epoch}")

    def add(self, txn: Transaction, places: Iterable[Place]) -> bool:
        """Partitions join the transaction; False when there is no room for them."""
        new = set(places) - txn.places
        if self.places + len(new) > self.settings.most_places:
            return False
        began = txn.state is not TxnState.ONGOING
        txn.add(new, self.now_ms)
        self.places += len(new)
        self.timers.discard(Key(EXPIRY, txn.id))
        if began and txn.timeout_ms != NEVER:
            self.timers.set(Key(TIMEOUT, txn.id), self.now + txn.timeout_ms * MS)
        listed = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(new)[:5])
        self.tell(txn, "began" if began else "added", f"{listed}{', …' * (len(new) > 5)} in the transaction")
        return True

    def end(self, txn: Transaction, commit: bool, level: int, why: str = "") -> None:
        """It is decided: markers go to all its partitions."""
        self.timers.discard(Key(TIMEOUT, txn.id))
        self.timers.discard(Key(EXPIRY, txn.id))
        txn.prepare(commit, level, self.now_ms, self.new_producer)
        what = f"the transaction of {counted(len(txn.places), 'partition')} ends, epoch {txn.epoch}"
        self.tell(txn, "commit" if commit else "abort", f"{what}: {why}" if why else what)
        self.mark(txn)

    def mark(self, txn: Transaction) -> None:
        """Orders the markers of one that is decided."""
        commit, places = txn.state is TxnState.PREPARE_COMMIT, frozenset(txn.places)
        if places:
            self.markers.append(Marker(txn.id, txn.producer, txn.epoch, commit, places, self.epoch, txn.level))
        else:
            self._complete(txn)

    def take(self, txn: Transaction) -> None:
        """One that was stored."""
        self.transactions[txn.id] = txn
        self.places += len(txn.places)
        if txn.idle:
            self._wait_for_expiry(txn)

    def fence(self, txn: Transaction, why: str) -> None:
        """Aborts an open transaction for its producer, who is shut out by a new epoch."""
        txn.fence(self.settings.level)
        self.end(txn, False, self.settings.level, why)

    def marked(self, name: str, places: Iterable[Place]) -> None:
        """Markers stand in these partitions."""
        txn = self.transactions.get(name)
        if txn is None or not txn.pending:
            return
        gone = txn.places & set(places)
        txn.places -= gone
        self.places -= len(gone)
        if not txn.places:
            self._complete(txn)

    def _complete(self, txn: Transaction) -> None:
        txn.complete(self.now_ms)
        self._wait_for_expiry(txn)

    def _wait_for_expiry(self, txn: Transaction) -> None:
        self.timers.set(Key(EXPIRY, txn.id), self.now + self.settings.transactional_id_expiration_ms * MS)

    def forget(self, txn: Transaction, why: str) -> None:
        """The id is as if it had never been."""
        del self.transactions[txn.id]
        self.places -= len(txn.places)
        self.timers.discard(Key(EXPIRY, txn.id))
        self.tell(txn, "expired", why)

    def expire(self, key: Key) -> None:
        """A deadline has come."""
        txn = self.transactions.get(key.group)
        if txn is None:
            return
        if key.kind == TIMEOUT and txn.state is TxnState.ONGOING:
            self.fence(txn, f"open for longer than its {shown_ms(txn.timeout_ms)}")
        elif key.kind == EXPIRY and txn.idle:
            self.forget(txn, f"unused for {shown_ms(self.settings.transactional_id_expiration_ms)}")

    def tell(self, txn: Transaction, kind: str, why: str) -> None:
        """Something happened to a transaction."""
        facts: dict[str, Any] = {"producer": txn.producer, "epoch": txn.epoch, "state": str(txn.state)}
        self.events.append(Event(self.now, txn.id, kind, None, None, why, facts))
