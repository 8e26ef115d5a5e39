"""DescribeTransactions and ListTransactions: what the coordinator knows (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from collections import defaultdict

from kwire.coordinator.bodies import Body
from kwire.coordinator.consumer.topic_patterns import BadPattern, TopicPattern
from kwire.coordinator.context import Reply
from kwire.coordinator.transactions.context import TxnContext, TxnRequest
from kwire.coordinator.transactions.transaction import Transaction, TxnState
from kwire.coordinator.types import Check
from kwire.schema.codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_REGULAR_EXPRESSION,
    NONE,
    TRANSACTIONAL_ID_NOT_FOUND,
)

STATES = frozenset(TxnState)


def describe_transactions(context: TxnContext, request: TxnRequest) -> Reply:
    names = dict.fromkeys(request.body["TransactionalIds"])
    return Reply({"TransactionStates": [_described(context, request, name) for name in names]})


def _described(context: TxnContext, request: TxnRequest, name: str) -> Body:
    check, txn = context.gate(request.caller, name), context.transactions.get(name)
    if check is not None or txn is None:
        return {"ErrorCode": check.error if check else TRANSACTIONAL_ID_NOT_FOUND, "TransactionalId": name}
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(txn.places):
        topics[topic].append(partition)
    return {
        "ErrorCode": NONE,
        "TransactionalId": name,
        "TransactionState": str(txn.state),
        "TransactionTimeoutMs": txn.timeout_ms,
        "TransactionStartTimeMs": txn.started_ms,
        "ProducerId": txn.producer,
        "ProducerEpoch": txn.epoch,
        "Topics": [{"Topic": topic, "Partitions": partitions} for topic, partitions in topics.items()],
    }


def list_transactions(context: TxnContext, request: TxnRequest) -> Reply:
    body = request.body
    if not context.active or context.loading:
        error = COORDINATOR_LOAD_IN_PROGRESS if context.active else COORDINATOR_NOT_AVAILABLE
        return Reply({"ErrorCode": error}, Check(0, "ready", error, "the coordinator is not ready"))
    pattern = None
    if body.get("TransactionalIdPattern"):
        try:
            pattern = TopicPattern(body["TransactionalIdPattern"])
        except BadPattern as bad:
            error = INVALID_REGULAR_EXPRESSION
            return Reply({"ErrorCode": error}, Check(0, "pattern", error, str(bad)))
    states = set(body["StateFilters"])
    rows: list[Body] = [
        {"TransactionalId": txn.id, "ProducerId": txn.producer, "TransactionState": str(txn.state)}
        for txn in context.transactions.values()
        if context.owns(txn.id) and context.may(request.caller, txn.id) and _wanted(txn, context.now_ms, body, states)
    ]
    if pattern is not None:
        named, _ = pattern.matching([row["TransactionalId"] for row in rows])
        rows = [row for row in rows if row["TransactionalId"] in named]
    unknown = [state for state in body["StateFilters"] if state not in STATES]
    return Reply({"ErrorCode": NONE, "UnknownStateFilters": unknown, "TransactionStates": rows})


def _wanted(txn: Transaction, now_ms: int, body: Body, states: set[str]) -> bool:
    longer = body.get("DurationFilter", -1)
    return (
        (not states or str(txn.state) in states)
        and (not body["ProducerIdFilters"] or txn.producer in body["ProducerIdFilters"])
        and (longer < 0 or now_ms - txn.started_ms > longer)
    )
