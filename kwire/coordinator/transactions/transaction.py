"""One transactional id: its producer id and epoch, its state, and how it moves from one state to the next.

    Empty ─► Ongoing ─► PrepareCommit ─► CompleteCommit ─► Ongoing …
                   └──► PrepareAbort ──► CompleteAbort

After TransactionMetadata (transaction-coordinator in 4.x, core before). Whether a step is allowed is asked before it is
taken, in transaction_checks.py. Kafka's pending transitions are not needed: what it writes to its log is done at once
here, and the one wait that is left, for the markers, is what the Prepare states are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

MAX_EPOCH: Final = 2**15 - 1
LAST_EPOCH: Final = MAX_EPOCH - 1  # the last one that a producer gets: one is kept for fencing it
NEVER: Final = 2**31 - 1  # the timeout of a transaction that somebody else decides (KIP-939)
EPOCH_BUMPS: Final = 2  # the transaction.version from which each end of a transaction raises the epoch (KIP-890)
Place = tuple[str, int]  # topic name, partition


class TxnState(StrEnum):
    """By their names in DescribeTransactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


PREPARING: Final = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)


@dataclass(slots=True)
class Transaction:
    """previous_producer, last_epoch: what the producer had before, so that a request sent again is known.
    next_producer: the id that takes over when the markers are written. started_ms: -1 before the first transaction.
    level: the transaction.version by which it was ended. places: its partitions; while it is being ended, those
    without a marker."""

    id: str
    producer: int
    timeout_ms: int
    updated_ms: int
    epoch: int = -1
    last_epoch: int = -1
    previous_producer: int = -1
    next_producer: int = -1
    state: TxnState = TxnState.EMPTY
    started_ms: int = -1
    level: int = 0
    places: set[Place] = field(default_factory=set)

    @property
    def pending(self) -> bool:
        """Decided, and markers are still to be written."""
        return self.state in PREPARING

    @property
    def exhausted(self) -> bool:
        """No epoch is left for the producer."""
        return self.epoch >= LAST_EPOCH

    @property
    def idle(self) -> bool:
        """Nothing is open: the id may be forgotten when its time is over."""
        return self.state in (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)

    def rotate(self, producer: int, keep_epoch: bool) -> None:
        """A new producer id begins at epoch 0. keep_epoch: who asked named the old one, and may ask again."""
        self.last_epoch = self.epoch if keep_epoch else -1
        self.previous_producer, self.producer, self.epoch = self.producer, producer, 0

    def bump(self, expected: int | None) -> None:
        """The next epoch; expected: the one that the producer believes in, None if it names none (KIP-360)."""
        self.previous_producer = self.producer
        if expected is None:
            self.epoch, self.last_epoch = self.epoch + 1, -1
        elif self.epoch in (-1, expected):
            self.epoch, self.last_epoch = self.epoch + 1, self.epoch
        # else expected is the last epoch: the request was answered before, and is answered so again

    def ready(self, timeout_ms: int, now_ms: int, keep_start: bool = False) -> None:
        """InitProducerId has given out id and epoch: no transaction is open. keep_start: as before 4.0, where the start
        of the last transaction was told on."""
        self.state, self.timeout_ms, self.updated_ms = TxnState.EMPTY, timeout_ms, now_ms
        self.started_ms = self.started_ms if keep_start else -1

    def add(self, places: Iterable[Place], now_ms: int) -> None:
        """Partitions join; the first ones begin the transaction."""
        if self.state is not TxnState.ONGOING:
            self.state, self.started_ms = TxnState.ONGOING, now_ms
        self.previous_producer = self.producer
        self.places.update(places)
        self.updated_ms = now_ms

    def fence(self, level: int) -> None:
        """Shuts the producer out before its transaction is aborted; with epoch bumps the abort itself does so."""
        if level < EPOCH_BUMPS:
            self.epoch, self.last_epoch = self.epoch + 1, -1

    def prepare(self, commit: bool, level: int, now_ms: int, new_producer: Callable[[], int]) -> None:
        """It is decided; the epoch of the markers stands from here on."""
        self.next_producer = -1
        if level >= EPOCH_BUMPS:
            if self.exhausted:
                self.next_producer = new_producer()
            self.last_epoch, self.epoch = self.epoch, min(self.epoch + 1, MAX_EPOCH)
        if self.state is not TxnState.ONGOING:  # an abort of nothing
            self.started_ms = now_ms
        self.state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
        self.level, self.updated_ms = level, now_ms

    def promised(self) -> tuple[int, int]:
        """Producer id and epoch as they will be when the markers are written."""
        return (self.producer, self.epoch) if self.next_producer < 0 else (self.next_producer, 0)

    def complete(self, now_ms: int) -> None:
        """All markers are written."""
        commit = self.state is TxnState.PREPARE_COMMIT
        self.previous_producer = self.producer
        self.producer, self.epoch = self.promised()
        self.next_producer = -1
        self.state = TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT
        self.updated_ms = now_ms
