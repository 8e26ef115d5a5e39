"""AlterPartitionReassignments (45) and ListPartitionReassignments (46).

All replicas are one log here, so a reassignment is over when it is answered: none is ever listed, nor can be cancelled.
"""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.codes import Code, Refused
from kwire.broker.context import Body, Request
from kwire.broker.partition import Partition
from kwire.broker.state import BrokerState
from kwire.schema.model import Versions


def alter(request: Request, state: BrokerState) -> Body:
    free = request.body.get("AllowReplicationFactorChange", True)
    responses = []
    for item in request.body["Topics"]:
        topic = state.cluster.topics.get(item["Name"])
        rows = []
        for part in item["Partitions"]:
            index = part["PartitionIndex"]
            row: Body = {"ErrorCode": Code.NONE, "ErrorMessage": None}
            try:
                if topic is None or not 0 <= index < len(topic.partitions):
                    raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, "The server does not host this topic-partition.")
                _move(state, topic.partitions[index], part["Replicas"], free)
                state.tell("moved", f"{item['Name']}-{index}", f"its replicas are {part['Replicas']} now")
            except Refused as refused:
                row = {"ErrorCode": refused.code, "ErrorMessage": refused.why}
            rows.append({"PartitionIndex": index, **row})
        responses.append({"Name": item["Name"], "Partitions": rows})
    return {"ErrorCode": Code.NONE, "ErrorMessage": None, "AllowReplicationFactorChange": free, "Responses": responses}


def _move(state: BrokerState, partition: Partition, replicas: list[int] | None, free: bool) -> None:
    """The partition's replicas are these; who leads stays if it is one of them. Raises Refused."""
    if replicas is None:
        raise Refused(Code.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    state.cluster.check_replicas([replicas])
    if not free and len(replicas) != len(partition.replicas):
        why = f"The replication factor is changed from {len(partition.replicas)} to {len(replicas)}"
        raise Refused(Code.INVALID_REPLICATION_FACTOR, why)
    partition.place(list(replicas))
    partition.fall_behind(state.cluster.down(replicas))
    if partition.leader not in replicas:
        state.topology.elect(partition)


def listed(request: Request, state: BrokerState) -> Body:  # noqa: ARG001
    return {"ErrorCode": Code.NONE, "ErrorMessage": None, "Topics": []}


APIS = (
    Api("AlterPartitionReassignments", Versions(0, 1), alter),
    Api("ListPartitionReassignments", Versions(0, 0), listed),
)
