"""AlterPartitionReassignments (45) and ListPartitionReassignments (46).

What is under way is in broker/reassignments.py.
"""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.cluster import Topic
from kwire.broker.context import Body, Request
from kwire.broker.partition import Partition
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions


def alter(request: Request, state: BrokerState) -> Body:
    free = request.body.get("AllowReplicationFactorChange", True)
    responses = []
    for item in request.body["Topics"]:
        topic = state.cluster.topics.get(item["Name"])
        rows = []
        for part in item["Partitions"]:
            index = part["PartitionIndex"]
            row: Body = {"ErrorCode": codes.NONE, "ErrorMessage": None}
            try:
                if topic is None or not 0 <= index < len(topic.partitions):
                    raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, "The server does not host this topic-partition.")
                _move(state, topic, topic.partitions[index], part["Replicas"], free)
            except Refused as refused:
                row = {"ErrorCode": refused.code, "ErrorMessage": refused.why}
            rows.append({"PartitionIndex": index, **row})
        responses.append({"Name": item["Name"], "Partitions": rows})
    return {"ErrorCode": codes.NONE, "ErrorMessage": None, "AllowReplicationFactorChange": free, "Responses": responses}


def _move(state: BrokerState, topic: Topic, partition: Partition, replicas: list[int] | None, free: bool) -> None:
    """To these replicas; None: what is under way is cancelled. Raises Refused."""
    if replicas is None:
        state.reassignments.cancel(partition)
        return
    state.cluster.check_replicas([replicas])
    have = state.reassignments.settled(partition)
    if not free and len(replicas) != len(have):
        why = f"The replication factor is changed from {len(have)} to {len(replicas)}"
        raise Refused(codes.INVALID_REPLICATION_FACTOR, why)
    state.reassignments.begin(topic, partition, list(replicas))


def listed(request: Request, state: BrokerState) -> Body:
    asked = request.body["Topics"]
    wanted = None if asked is None else {(item["Name"], index) for item in asked for index in item["PartitionIndexes"]}
    found: dict[str, list[Body]] = {}
    for each in state.reassignments.going.values():
        place = (each.topic.name, each.partition.index)
        if wanted is None or place in wanted:
            row: Body = {"PartitionIndex": place[1], "Replicas": each.partition.replicas}
            row |= {"AddingReplicas": each.adding, "RemovingReplicas": each.removing}
            found.setdefault(place[0], []).append(row)
    topics = [{"Name": name, "Partitions": rows} for name, rows in found.items()]
    return {"ErrorCode": codes.NONE, "ErrorMessage": None, "Topics": topics}


APIS = (
    Api("AlterPartitionReassignments", Versions(0, 1), alter),
    Api("ListPartitionReassignments", Versions(0, 0), listed),
)
