"""A transactional id as the record that Kafka keeps of it in __transaction_state, and the id again from it.

Rules: TransactionLog.valueToBytes and readTxnRecordValue. What was decided is ended once more; what was open is aborted
and its producer shut out, since offsets of open transactions are not kept.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.coordinator.transactions.context import TxnContext
from kwire.coordinator.transactions.transaction import PREPARING, Place, Transaction, TxnState

STATES: Final = {state: number for number, state in enumerate(TxnState)}
BY_NUMBER: Final = {number: state for state, number in STATES.items()}
Fields = dict[str, Any]


def stored(txn: Transaction) -> Fields:
    """Tagged fields that have their default are left out."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(txn.places):
        by_topic.setdefault(topic, []).append(index)
    places = [{"Topic": topic, "PartitionIds": found} for topic, found in by_topic.items()]
    fields: Fields = {
        "ProducerId": txn.producer, "ProducerEpoch": txn.epoch, "TransactionTimeoutMs": txn.timeout_ms,
        "TransactionStatus": STATES[txn.state],
        "TransactionPartitions": None if txn.state is TxnState.EMPTY else places,
        "TransactionLastUpdateTimestampMs": txn.updated_ms, "TransactionStartTimestampMs": txn.started_ms,
    }  # fmt: skip
    if txn.previous_producer >= 0:
        fields["PreviousProducerId"] = txn.previous_producer
    if txn.next_producer >= 0:
        fields["NextProducerId"] = txn.next_producer
    if txn.level:
        fields["ClientTransactionVersion"] = txn.level
    return fields


def restore(context: TxnContext, name: str, fields: Fields) -> None:
    """The id takes its place; markers may be ordered."""
    txn = Transaction(
        name, fields["ProducerId"], fields["TransactionTimeoutMs"], fields["TransactionLastUpdateTimestampMs"],
        fields["ProducerEpoch"], -1, fields.get("PreviousProducerId", -1), fields.get("NextProducerId", -1),
        BY_NUMBER.get(fields["TransactionStatus"], TxnState.EMPTY), fields["TransactionStartTimestampMs"],
        fields.get("ClientTransactionVersion", 0), _places(fields["TransactionPartitions"]),
    )  # fmt: skip
    context.take(txn)
    if txn.state is TxnState.ONGOING:
        context.fence(txn, "the broker was started again")
    elif txn.state in PREPARING:
        context.mark(txn)


def _places(rows: list[Fields] | None) -> set[Place]:
    return {(row["Topic"], index) for row in rows or () for index in row["PartitionIds"]}
