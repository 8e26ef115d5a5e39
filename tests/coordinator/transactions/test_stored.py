"""Transactional ids come back from their records; what was open is aborted."""

from __future__ import annotations

from typing import Any

from kwire.codec.library import builtin_library
from kwire.coordinator.transactions.coordinator import TransactionCoordinator
from kwire.coordinator.transactions.stored import stored
from kwire.coordinator.transactions.transaction import TxnState
from kwire.coordinator.types import MS

INIT = {"TransactionalId": "x", "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}


def through_bytes(made: TransactionCoordinator) -> dict[str, Any]:
    fields = stored(made.transactions["x"])
    codec = builtin_library().codec("TransactionLogValue", 1)
    assert codec.decode(codec.encode(fields)) == fields
    return fields


def opened() -> TransactionCoordinator:
    made = TransactionCoordinator()
    answer = made.ask("InitProducerId", 5, INIT, now=1_000 * MS).body
    made.add("x", answer["ProducerId"], answer["ProducerEpoch"], [("t", 1), ("t", 0)], 2_000 * MS)
    return made


def end(made: TransactionCoordinator, commit: bool) -> dict[str, Any]:
    txn = made.transactions["x"]
    body = {"TransactionalId": "x", "ProducerId": txn.producer, "ProducerEpoch": txn.epoch, "Committed": commit}
    answer: dict[str, Any] = made.ask("EndTxn", 5, body, now=3_000 * MS).body
    return answer


def test_a_producer_goes_on_with_its_id_and_epoch() -> None:
    made = opened()
    assert end(made, True)["ErrorCode"] == 0
    (marker,) = made.markers()
    made.marked("x", marker.places, 4_000 * MS)
    again = TransactionCoordinator()
    again.revive("x", through_bytes(made), 9_000 * MS)
    before, after = made.transactions["x"], again.transactions["x"]
    assert (after.state, after.producer, after.epoch) == (TxnState.COMPLETE_COMMIT, before.producer, before.epoch)
    assert stored(after) == stored(before)
    assert again.markers() == []
    assert again.add("x", after.producer, after.epoch, [("t", 0)], 9_500 * MS).error == 0
    assert again.due is not None


def test_what_was_open_is_aborted_and_its_producer_shut_out() -> None:
    made = opened()
    fields = through_bytes(made)
    again = TransactionCoordinator()
    again.revive("x", fields, 9_000 * MS)
    (marker,) = again.markers()
    assert (marker.commit, set(marker.places)) == (False, {("t", 0), ("t", 1)})
    again.marked("x", marker.places, 9_000 * MS)
    assert again.transactions["x"].state is TxnState.COMPLETE_ABORT
    check = again.add("x", fields["ProducerId"], fields["ProducerEpoch"], [("t", 0)], 9_500 * MS)
    assert check.name == "epoch"
    assert again.ask("InitProducerId", 5, INIT, now=9_600 * MS).body["ErrorCode"] == 0


def test_what_was_decided_is_ended() -> None:
    made = opened()
    end(made, True)
    fields = through_bytes(made)
    assert fields["TransactionStatus"] == 2
    again = TransactionCoordinator()
    again.revive("x", fields, 9_000 * MS)
    (marker,) = again.markers()
    assert (marker.commit, marker.epoch) == (True, fields["ProducerEpoch"])


def test_an_id_that_was_never_used() -> None:
    made = TransactionCoordinator()
    made.ask("InitProducerId", 5, INIT, now=1_000 * MS)
    again = TransactionCoordinator()
    again.revive("x", through_bytes(made), 2_000 * MS)
    assert again.transactions["x"].state is TxnState.EMPTY
