"""The checks before a transaction takes a step, as tables in the order in which Kafka makes them.

After TransactionCoordinator.scala: its order changed in 4.0 (what is still being ended is answered before ids and
epochs are compared). EndTxn has two tables: by v5 each end raises the epoch, and what looks like a fenced producer may
be one that asks again (endTransaction, endTransactionWithTV1). fails gives the reason when the request ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kwire.coordinator.transactions.transaction import (
    EPOCH_BUMPS,
    LAST_EPOCH,
    PREPARING,
    Transaction,
    TxnState,
)
from kwire.coordinator.types import Check
from kwire.schema.codes import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    PRODUCER_FENCED,
)

SINCE_FENCED = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}  # KIP-588
COMPLETE = (TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)


class TxnAsk(NamedTuple):
    """What is asked of a transaction. producer, epoch: what the request says, None where it says nothing; commit: of
    EndTxn."""

    txn: Transaction
    producer: int | None
    epoch: int | None
    commit: bool = False

    @property
    def bumped(self) -> bool:
        """The epoch is the one before: an EndTxn that was answered already, if epochs rise."""
        return self.epoch is not None and self.txn.epoch == self.epoch + 1

    @property
    def overflowed(self) -> bool:
        """The same, where the producer id was changed as no epochs were left."""
        return self.epoch == LAST_EPOCH and self.txn.previous_producer == self.producer and self.txn.epoch == 0


class TxnRule(NamedTuple):
    """One check."""

    name: str
    error: int
    fails: Callable[[TxnAsk], str | None]


def _pending(ask: TxnAsk) -> str | None:
    return f"{ask.txn.state}: markers of the transaction before are still being written" if ask.txn.pending else None


def _producer(ask: TxnAsk) -> str | None:
    if ask.producer == ask.txn.producer:
        return None
    return f"producer id {ask.producer}, {ask.txn.id} has {ask.txn.producer}"


def _epoch(ask: TxnAsk) -> str | None:
    return None if ask.epoch == ask.txn.epoch else f"epoch {ask.epoch}, {ask.txn.id} is at {ask.txn.epoch}"


def _producer_or_again(ask: TxnAsk) -> str | None:
    return None if ask.overflowed else _producer(ask)


def _epoch_or_again(ask: TxnAsk) -> str | None:
    if ask.txn.state in COMPLETE and (ask.bumped or ask.overflowed):
        return None
    return _epoch(ask)


def _known(ask: TxnAsk) -> str | None:
    """InitProducerId that names an id: the current one, or the one before if its epochs ran out."""
    txn = ask.txn
    if ask.producer is None or txn.epoch == -1 or ask.producer == txn.producer:
        return None
    if ask.producer == txn.previous_producer and (ask.epoch or 0) >= LAST_EPOCH:
        return None
    return f"producer id {ask.producer}, {txn.id} has {txn.producer} now"


def _current(ask: TxnAsk) -> str | None:
    """InitProducerId that names an epoch: the current one, or the one before (sent again)."""
    txn = ask.txn
    if (
        ask.epoch is None
        or txn.state is TxnState.ONGOING
        or txn.epoch in (-1, ask.epoch)
        or ask.epoch == txn.last_epoch
    ):
        return None
    return f"epoch {ask.epoch}, {txn.id} is at {txn.epoch}, before it was {txn.last_epoch}"


PENDING = TxnRule("pending", CONCURRENT_TRANSACTIONS, _pending)
PRODUCER = TxnRule("producer id", INVALID_PRODUCER_ID_MAPPING, _producer)
EPOCH = TxnRule("epoch", PRODUCER_FENCED, _epoch)

INIT = (PENDING, TxnRule("producer id", PRODUCER_FENCED, _known), TxnRule("epoch", PRODUCER_FENCED, _current))
ADD_OLD = (PRODUCER, EPOCH, PENDING)
ADD = (PENDING, PRODUCER, EPOCH)
VERIFY = (PRODUCER, EPOCH, PENDING)
END_OLD = (PRODUCER, EPOCH, PENDING)
END = (
    PENDING,
    TxnRule("producer id", INVALID_PRODUCER_ID_MAPPING, _producer_or_again),
    TxnRule("epoch", PRODUCER_FENCED, _epoch_or_again),
)


def stopped_by(rules: tuple[TxnRule, ...], ask: TxnAsk) -> Check | None:
    """The check that ends the request, numbered from 1 in its table; None if all let it pass."""
    for number, rule in enumerate(rules, 1):
        why = rule.fails(ask)
        if why is not None:
            return Check(number, rule.name, rule.error, why)
    return None


def ended(ask: TxnAsk, level: int) -> Check | None:
    """What the state says to EndTxn: None when the transaction is ended now; NONE when it was, as asked, before."""
    txn, wanted = ask.txn, "commit" if ask.commit else "abort"
    if txn.state is TxnState.ONGOING:
        return None
    same = txn.state is (TxnState.COMPLETE_COMMIT if ask.commit else TxnState.COMPLETE_ABORT)
    if level < EPOCH_BUMPS:
        if same:
            return Check(4, "state", NONE, f"{txn.state} already")
    elif ask.bumped or ask.overflowed:
        if same:
            return Check(4, "state", NONE, f"{txn.state} already, this is the same request again")
    elif not ask.commit and txn.state not in PREPARING:
        return None  # nothing was added, and the epoch rises all the same
    return Check(4, "state", INVALID_TXN_STATE, f"{wanted} of a transaction that is {txn.state}")


def for_version(api: str, version: int, error: int) -> int:
    """A fenced producer's error by its name of that version."""
    old = error == PRODUCER_FENCED and version < SINCE_FENCED.get(api, 0)
    return INVALID_PRODUCER_EPOCH if old else error
