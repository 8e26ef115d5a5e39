"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37), DeleteRecords (21): every node does what the controller
would."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from kwire.broker.apis import Api
from kwire.broker.configs import TOPIC, Value
from kwire.broker.context import Body, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.model import Versions
from kwire.wire.uuids import ZERO


def create_topics(request: Request, state: BrokerState) -> Body:
    names = Counter(item["Name"] for item in request.body["Topics"])
    dry = request.body.get("ValidateOnly", False)
    return {"Topics": [_created(item, state, dry, names[item["Name"]] > 1) for item in request.body["Topics"]]}


def _created(item: Body, state: BrokerState, dry: bool, twice: bool) -> Body:
    name, cluster = item["Name"], state.cluster
    try:
        if twice:
            raise Refused(codes.INVALID_REQUEST, "Duplicate topic in request.")
        assignments = sorted((a["PartitionIndex"], a["BrokerIds"]) for a in item["Assignments"])
        if assignments and (item["NumPartitions"] != -1 or item["ReplicationFactor"] != -1):
            raise Refused(codes.INVALID_REQUEST, "Both partitions and assignments are given.")
        if [index for index, _ in assignments] != list(range(len(assignments))):
            raise Refused(codes.INVALID_REPLICA_ASSIGNMENT, "Partitions must be numbered from 0 without gaps.")
        count = state.settings.partitions if item["NumPartitions"] == -1 else item["NumPartitions"]
        replication = state.replicas if item["ReplicationFactor"] == -1 else item["ReplicationFactor"]
        values = {config["Name"]: config["Value"] for config in item["Configs"]}
        cluster.configs.replace(TOPIC, name, values, dry=True)
        topic = cluster.create(name, count, replication, [nodes for _, nodes in assignments], dry)
    except Refused as refused:
        row = {"Name": name, "TopicId": ZERO, "ErrorCode": refused.code, "ErrorMessage": refused.why, "Configs": None}
        return {**row, "NumPartitions": -1, "ReplicationFactor": -1}
    if not dry:
        cluster.configs.replace(TOPIC, name, values)
        state.tell("topic", name, f"created with {counted(len(topic.partitions), 'partition')}")
    return {
        "Name": name,
        "TopicId": ZERO if dry else topic.id,
        "ErrorCode": codes.NONE,
        "ErrorMessage": None,
        "NumPartitions": len(topic.partitions),
        "ReplicationFactor": len(topic.partitions[0].replicas),
        "Configs": [_config(value) for value in cluster.configs.describe(TOPIC, name, None)],
    }


def _config(value: Value) -> Body:
    return {
        "Name": value.known.name,
        "Value": value.value,
        "ReadOnly": False,
        "ConfigSource": value.source,
        "IsSensitive": False,
    }


def delete_topics(request: Request, state: BrokerState) -> Body:
    if request.version >= 6:
        asked = [(item["Name"], item["TopicId"]) for item in request.body["Topics"]]
    else:
        asked = [(name, ZERO) for name in request.body["TopicNames"]]
    return {"Responses": [_deleted(name, topic_id, state) for name, topic_id in asked]}


def _deleted(name: str | None, topic_id: UUID, state: BrokerState) -> Body:
    topic = state.cluster.find(name, topic_id)
    if topic is None:
        code = codes.UNKNOWN_TOPIC_ID if name is None else codes.UNKNOWN_TOPIC_OR_PARTITION
        why = "This server does not host this topic ID." if name is None else "This server does not host this topic."
        return {"Name": name, "TopicId": topic_id, "ErrorCode": code, "ErrorMessage": why}
    if state.cluster.configs.broker("delete.topic.enable") != "true":
        why = "Topic deletion is disabled."
        return {"Name": name, "TopicId": topic_id, "ErrorCode": codes.TOPIC_DELETION_DISABLED, "ErrorMessage": why}
    state.cluster.delete(topic)
    state.tell("topic", topic.name, "deleted")
    return {"Name": topic.name, "TopicId": topic.id, "ErrorCode": codes.NONE, "ErrorMessage": None}


def create_partitions(request: Request, state: BrokerState) -> Body:
    rows = []
    for item in request.body["Topics"]:
        given = item["Assignments"]
        row: Body = {"Name": item["Name"], "ErrorCode": codes.NONE, "ErrorMessage": None}
        try:
            assignments = [assignment["BrokerIds"] for assignment in given or ()]
            state.cluster.grow(item["Name"], item["Count"], assignments, request.body["ValidateOnly"])
        except Refused as refused:
            row["ErrorCode"], row["ErrorMessage"] = refused.code, refused.why
        else:
            if not request.body["ValidateOnly"]:
                state.tell("topic", item["Name"], f"has {item['Count']} partitions now")
        rows.append(row)
    return {"Results": rows}


def delete_records(request: Request, state: BrokerState) -> Body:
    topics = []
    for item in request.body["Topics"]:
        topic = state.cluster.topics.get(item["Name"])
        rows = []
        for part in item["Partitions"]:
            index, offset = part["PartitionIndex"], part["Offset"]
            try:
                log = state.cluster.partition(topic, index, request.node).log
                if offset == -1:
                    offset = log.end
                if not 0 <= offset <= log.end:
                    raise Refused(codes.OFFSET_OUT_OF_RANGE, f"offset {offset}, the end is {log.end}")
                log.delete_before(offset)
                rows.append({"PartitionIndex": index, "LowWatermark": log.start, "ErrorCode": codes.NONE})
            except Refused as refused:
                rows.append({"PartitionIndex": index, "LowWatermark": -1, "ErrorCode": refused.code})
        topics.append({"Name": item["Name"], "Partitions": rows})
    return {"Topics": topics}


APIS = (
    Api("CreateTopics", Versions(0, 7), create_topics),
    Api("DeleteTopics", Versions(0, 6), delete_topics),
    Api("CreatePartitions", Versions(0, 3), create_partitions),
    Api("DeleteRecords", Versions(0, 2), delete_records),
)
