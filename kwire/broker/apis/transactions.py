"""Everything that a transaction coordinator answers, and what leaders and group coordinators do for transactions:
InitProducerId (22), AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26), WriteTxnMarkers (27),
TxnOffsetCommit (28), DescribeTransactions (65), ListTransactions (66)."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.context import Body, Later, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.coordinator.transactions.context import Marker
from kwire.schema import codes
from kwire.schema.model import Versions


def ask(request: Request, state: BrokerState) -> Body:
    return state.transactions.ask(request)


def commit_offsets(request: Request, state: BrokerState) -> Body | Later:
    """The group decides, once the coordinator of the transaction has let the offsets in."""
    body = request.body
    ours = body["GroupId"] and state.cluster.coordinator(body["GroupId"]) == request.node
    return state.groups.ask(request, state.transactions.claim_offsets(request) if ours else None)


def write_markers(request: Request, state: BrokerState) -> Body:
    """A coordinator's orders, or those of an admin who ends a hanging transaction (KIP-664)."""
    rows = []
    for item in request.body["Markers"]:
        topics = [_marked(request, state, item, topic) for topic in item["Topics"]]
        rows.append({"ProducerId": item["ProducerId"], "Topics": topics})
    return {"Markers": rows}


def _marked(request: Request, state: BrokerState, item: Body, topic: Body) -> Body:
    found = state.cluster.topics.get(topic["Name"])
    partitions = []
    for index in topic["PartitionIndexes"]:
        marker = Marker(
            "", item["ProducerId"], item["ProducerEpoch"], item["TransactionResult"],
            frozenset([(topic["Name"], index)]), item["CoordinatorEpoch"], item.get("TransactionVersion", 0),
        )  # fmt: skip
        error = codes.NONE
        try:
            if found is not None:
                state.cluster.partition(found, index, request.node)
            state.transactions.write(marker, (topic["Name"], index))
        except Refused as refused:
            error = refused.code
        partitions.append({"PartitionIndex": index, "ErrorCode": error})
    return {"Name": topic["Name"], "Partitions": partitions}


APIS = (
    Api("InitProducerId", Versions(0, 6), ask),
    Api("AddPartitionsToTxn", Versions(0, 5), ask),
    Api("AddOffsetsToTxn", Versions(0, 4), ask),
    Api("EndTxn", Versions(0, 5), ask),
    Api("WriteTxnMarkers", Versions(0, 2), write_markers),
    Api("TxnOffsetCommit", Versions(0, 6), commit_offsets),
    Api("DescribeTransactions", Versions(0, 0), ask),
    Api("ListTransactions", Versions(0, 2), ask),
)
