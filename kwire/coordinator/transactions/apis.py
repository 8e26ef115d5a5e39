"""What a transaction coordinator answers: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn, all versions.

After the handlers of the same name in KafkaApis and TransactionCoordinator. None of them waits: what cannot be done yet
is answered CONCURRENT_TRANSACTIONS, and the client asks again.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.bodies import Body
from kwire.coordinator.context import Reply
from kwire.coordinator.transactions import checks
from kwire.coordinator.transactions.checks import TxnAsk
from kwire.coordinator.transactions.context import TxnContext, TxnRequest
from kwire.coordinator.transactions.transaction import EPOCH_BUMPS, NEVER, Place, Transaction, TxnState
from kwire.coordinator.types import Check
from kwire.schema.codes import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NONE,
    OPERATION_NOT_ATTEMPTED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
FROM_BROKERS = 4  # AddPartitionsToTxn from this version on
DONE = Check(0, "done", NONE, "all checks let it pass")


def full(what: str) -> Check:
    return Check(0, "room", COORDINATOR_NOT_AVAILABLE, f"there is no room for more {what}")


def nameless() -> Check:
    return Check(0, "transactional id", INVALID_REQUEST, "the transactional id is empty")


def refused(request: TxnRequest, check: Check) -> Body:
    """An answer that has the error and nothing else."""
    return {
        "ErrorCode": checks.for_version(request.api, request.version, check.error),
        "ProducerId": -1,
        "ProducerEpoch": -1,
    }


# InitProducerId


def init_producer_id(context: TxnContext, request: TxnRequest) -> Reply:
    body = request.body
    name, producer, epoch = body["TransactionalId"], body.get("ProducerId", -1), body.get("ProducerEpoch", -1)
    if name is not None and not context.may(request.caller, name):
        check = context.gate(request.caller, name)
        assert check is not None
        return Reply(refused(request, check), check)
    if (producer == -1) != (epoch == -1):
        check = Check(0, "id and epoch", INVALID_REQUEST, f"producer id {producer} with epoch {epoch}: both or neither")
        return Reply(refused(request, check), check)
    if name is None:
        check = Check(0, "no transactional id", NONE, "a producer that is idempotent only gets a fresh id")
        return Reply({"ErrorCode": NONE, "ProducerId": context.new_producer(), "ProducerEpoch": 0}, check)
    txn, check = _initialised(
        context, request, name, None if producer == -1 else producer, None if epoch == -1 else epoch
    )
    if txn is None:
        return Reply(refused(request, check), check)
    return Reply({"ErrorCode": NONE, "ProducerId": txn.producer, "ProducerEpoch": txn.epoch}, check)


def _initialised(
    context: TxnContext, request: TxnRequest, name: str, producer: int | None, epoch: int | None
) -> tuple[Transaction | None, Check]:
    """The transaction when its producer may go on with the id and epoch that it has now; and the check that decided."""
    body = request.body
    two_phases, timeout = body.get("Enable2Pc", False), body["TransactionTimeoutMs"]
    check = _asked_rightly(context, name, two_phases, body.get("KeepPreparedTxn", False), timeout) or context.placed(
        name
    )
    if check is not None:
        return None, check
    timeout = NEVER if two_phases else timeout
    txn = context.transactions.get(name) or context.create(name, timeout)
    if txn is None:
        return None, full("transactional ids")
    check = checks.stopped_by(checks.INIT, TxnAsk(txn, producer, epoch))
    if check is not None:
        return None, check
    if txn.state is TxnState.ONGOING:
        context.fence(txn, "another producer takes the transactional id over")
        return None, Check(4, "open", CONCURRENT_TRANSACTIONS, "its open transaction is aborted first; ask again")
    context.initialise(txn, epoch, timeout)
    return txn, DONE


def _asked_rightly(context: TxnContext, name: str, two_phases: bool, keep: bool, timeout: int) -> Check | None:
    most = context.settings.transaction_max_timeout_ms
    if not name:
        return Check(0, "transactional id", INVALID_REQUEST, "the transactional id is empty")
    if two_phases and not context.settings.transaction_two_phase_commit_enable:
        why = "transaction.two.phase.commit.enable is false"
        return Check(0, "two phases", TRANSACTIONAL_ID_AUTHORIZATION_FAILED, why)
    if keep:
        return Check(0, "keep prepared", UNSUPPORTED_VERSION, "no broker keeps a prepared transaction yet")
    if not two_phases and not 0 < timeout <= most:
        why = f"a timeout of {timeout} ms, transaction.max.timeout.ms is {most}"
        return Check(0, "timeout", INVALID_TRANSACTION_TIMEOUT, why)
    return None


# AddPartitionsToTxn, AddOffsetsToTxn


def added(context: TxnContext, name: str, producer: int, epoch: int, places: Iterable[Place]) -> Check:
    """Adds partitions to the transaction, beginning one if none is open. Error NONE: they belong to it."""
    txn = context.transactions.get(name)
    if txn is None:
        return Check(0, "known", INVALID_PRODUCER_ID_MAPPING, f"no producer has initialised {name}")
    rules = checks.ADD if context.settings.era >= (4, 0) else checks.ADD_OLD
    check = checks.stopped_by(rules, TxnAsk(txn, producer, epoch))
    if check is not None:
        return check
    wanted = set(places)
    if txn.state is TxnState.ONGOING and wanted <= txn.places:
        return Check(4, "added", NONE, "they belong to the transaction already")
    return DONE if context.add(txn, wanted) else full("partitions in transactions")


def verified(
    context: TxnContext, name: str, producer: int, epoch: int, places: Iterable[Place]
) -> tuple[Check, set[Place]]:
    """Whether partitions belong to the open transaction; with the set of those that do."""
    txn = context.transactions.get(name)
    if txn is None:
        return Check(0, "known", INVALID_PRODUCER_ID_MAPPING, f"no producer has initialised {name}"), set()
    check = checks.stopped_by(checks.VERIFY, TxnAsk(txn, producer, epoch))
    return check or DONE, set() if check else txn.places & set(places)


def missing_error(context: TxnContext) -> int:
    """What verification says of a partition that is not in the transaction (KIP-890)."""
    return TRANSACTION_ABORTABLE if context.settings.era >= (3, 8) else INVALID_TXN_STATE


def add_partitions(context: TxnContext, request: TxnRequest) -> Reply:
    body = request.body
    if request.version < FROM_BROKERS:
        name, producer = body["V3AndBelowTransactionalId"], body["V3AndBelowProducerId"]
        given = {"TransactionalId": name, "ProducerId": producer, "ProducerEpoch": body["V3AndBelowProducerEpoch"]}
        rows, check = _added(context, request, given | {"Topics": body["V3AndBelowTopics"]})
        return Reply({"ResultsByTopicV3AndBelow": rows}, check)
    results, check = [], DONE
    for given in body["Transactions"]:
        rows, check = _added(context, request, given)
        results.append({"TransactionalId": given["TransactionalId"], "TopicResults": rows})
    return Reply({"ErrorCode": NONE, "ResultsByTransaction": results}, check)


def _added(context: TxnContext, request: TxnRequest, given: Body) -> tuple[list[Body], Check]:
    """One transaction's rows."""
    name, producer, epoch = given["TransactionalId"], given["ProducerId"], given["ProducerEpoch"]
    places = [(topic["Name"], index) for topic in given["Topics"] for index in topic["Partitions"]]
    from_broker = request.version >= FROM_BROKERS
    errors: dict[Place, int] = {}
    check = context.gate(request.caller, name)
    if check is not None and check.error == TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return _rows(given, dict.fromkeys(places, check.error)), check
    for place in places:
        if not from_broker and place[0] in INTERNAL:
            errors[place] = TOPIC_AUTHORIZATION_FAILED
        elif not context.exists(*place):
            errors[place] = UNKNOWN_TOPIC_OR_PARTITION
    if errors:
        first = next(iter(errors))
        check = Check(0, "partitions", errors[first], f"{first[0]}-{first[1]} cannot be added, so none is")
        return _rows(given, dict.fromkeys(places, OPERATION_NOT_ATTEMPTED) | errors), check
    if check is None and given.get("VerifyOnly", False):
        check, inside = verified(context, name, producer, epoch, places)
        errors = dict.fromkeys(places, check.error or missing_error(context)) | dict.fromkeys(inside, NONE)
        return _rows(given, errors), check
    check = check or added(context, name, producer, epoch, places)
    return _rows(given, dict.fromkeys(places, checks.for_version(request.api, request.version, check.error))), check


def _rows(given: Body, errors: dict[Place, int]) -> list[Body]:
    return [
        {
            "Name": topic["Name"],
            "ResultsByPartition": [
                {"PartitionIndex": index, "PartitionErrorCode": errors[topic["Name"], index]}
                for index in topic["Partitions"]
            ],
        }
        for topic in given["Topics"]
    ]


def add_offsets(context: TxnContext, request: TxnRequest) -> Reply:
    body = request.body
    check = context.gate(request.caller, body["TransactionalId"])
    if check is None:
        place = context.group_place(body["GroupId"])
        check = added(context, body["TransactionalId"], body["ProducerId"], body["ProducerEpoch"], [place])
    return Reply({"ErrorCode": checks.for_version(request.api, request.version, check.error)}, check)


# EndTxn


def end_txn(context: TxnContext, request: TxnRequest) -> Reply:
    body, level = request.body, EPOCH_BUMPS if request.version >= 5 else 0
    check = context.gate(request.caller, body["TransactionalId"])
    if check is not None:
        return Reply(refused(request, check), check)
    txn = context.transactions.get(body["TransactionalId"])
    if txn is None:
        why = f"no producer has initialised {body['TransactionalId']}"
        check = Check(0, "known", INVALID_PRODUCER_ID_MAPPING, why)
        return Reply(refused(request, check), check)
    ask = TxnAsk(txn, body["ProducerId"], body["ProducerEpoch"], body["Committed"])
    rules = checks.END if level else checks.END_OLD
    check = checks.stopped_by(rules, ask) or checks.ended(ask, level)
    if check is not None and check.error != NONE:
        return Reply(refused(request, check), check)
    if check is None:
        context.end(txn, ask.commit, level)
    producer, epoch = txn.promised()
    return Reply({"ErrorCode": NONE, "ProducerId": producer, "ProducerEpoch": epoch}, check or DONE)
