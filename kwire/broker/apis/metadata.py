"""Metadata (3), DescribeCluster (60) and DescribeTopicPartitions (75): nodes, topics, leaders.

Metadata creates the topics that it is asked for, when the request allows it and the broker does.
"""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.cluster import Cluster, Topic
from kwire.broker.context import Body, Request
from kwire.broker.nodes import Endpoint
from kwire.broker.partition import OFFLINE, Partition
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions
from kwire.wire.uuids import ZERO

BY_ID = 12  # the version from which topics may be asked for by id
NOT_ASKED = -(2**31)
TOPIC_OPERATIONS = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))  # AclOperation codes: all that concern topics
CLUSTER_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))


def metadata(request: Request, state: BrokerState) -> Body:
    cluster, body = state.cluster, request.body
    operations = TOPIC_OPERATIONS if body.get("IncludeTopicAuthorizedOperations") else NOT_ASKED
    asked = body["Topics"]
    if asked is None or (request.version == 0 and not asked):
        topics = [described(topic, operations, cluster) for topic in sorted(cluster.topics.values())]
    else:
        create = body.get("AllowAutoTopicCreation", True)
        topics = [_asked(state, item, request.version, create, operations) for item in asked]
    return {
        "Brokers": [_broker(node) for node in cluster.addresses(request.api, request.peer.listener)],
        "ClusterId": cluster.id,
        "ControllerId": cluster.controller,
        "Topics": topics,
        "ClusterAuthorizedOperations": (
            CLUSTER_OPERATIONS if body.get("IncludeClusterAuthorizedOperations") else NOT_ASKED
        ),
    }


def _asked(state: BrokerState, item: Body, version: int, create: bool, operations: int) -> Body:
    name, topic_id = item["Name"], item.get("TopicId", ZERO)
    if name is None or (topic_id != ZERO and version >= BY_ID):  # Java clients that ask by id leave the name empty
        topic = state.cluster.by_id.get(topic_id)
        missing, name = codes.UNKNOWN_TOPIC_ID, None
    else:
        missing = codes.UNKNOWN_TOPIC_OR_PARTITION
        try:
            topic = state.named(name, create)
        except Refused as refused:
            topic, missing = None, refused.code
    if topic is None:
        row: Body = {"ErrorCode": missing, "Name": name, "TopicId": topic_id, "Partitions": []}
        return {**row, "TopicAuthorizedOperations": operations}
    return described(topic, operations, state.cluster)


def described(topic: Topic, operations: int, cluster: Cluster) -> Body:
    """A topic as Metadata and DescribeTopicPartitions tell of it."""
    return {
        "ErrorCode": codes.NONE,
        "Name": topic.name,
        "TopicId": topic.id,
        "IsInternal": topic.internal,
        "Partitions": [_partition(partition, cluster) for partition in topic.partitions],
        "TopicAuthorizedOperations": operations,
    }


def _partition(partition: Partition, cluster: Cluster) -> Body:
    return {
        "ErrorCode": codes.LEADER_NOT_AVAILABLE if partition.leader == OFFLINE else codes.NONE,
        "PartitionIndex": partition.index,
        "LeaderId": partition.leader,
        "LeaderEpoch": partition.epoch,
        "ReplicaNodes": partition.replicas,
        "IsrNodes": partition.in_sync,
        "OfflineReplicas": cluster.down(partition.replicas),
        "EligibleLeaderReplicas": [],
        "LastKnownElr": [],
    }


def _broker(node: Endpoint) -> Body:
    return {"NodeId": node.id, "BrokerId": node.id, "Host": node.host, "Port": node.port, "Rack": node.rack}


def describe_cluster(request: Request, state: BrokerState) -> Body:
    cluster = state.cluster
    if request.body.get("EndpointType", 1) != 1:
        return {
            "ErrorCode": codes.UNSUPPORTED_ENDPOINT_TYPE,
            "ErrorMessage": "This is a broker's listener.",
            "ClusterId": "",
            "Brokers": [],
        }
    asked = request.body["IncludeClusterAuthorizedOperations"]
    return {
        "ClusterId": cluster.id,
        "ControllerId": cluster.controller,
        "Brokers": [_broker(node) for node in cluster.addresses(request.api, request.peer.listener)],
        "ClusterAuthorizedOperations": CLUSTER_OPERATIONS if asked else NOT_ASKED,
    }


def describe_topic_partitions(request: Request, state: BrokerState) -> Body:
    """Paged: by topic name and partition, from the cursor on (KIP-966)."""
    body, topics = request.body, state.cluster.topics
    names = sorted({item["Name"] for item in body["Topics"]} or topics)
    cursor = body["Cursor"] or {"TopicName": "", "PartitionIndex": 0}
    left = max(1, min(body["ResponsePartitionLimit"], 2_000))
    out: list[Body] = []
    for name in names:
        if name < cursor["TopicName"]:
            continue
        topic = topics.get(name)
        if topic is None:
            out.append({"ErrorCode": codes.UNKNOWN_TOPIC_OR_PARTITION, "Name": name, "Partitions": []})
            continue
        first = cursor["PartitionIndex"] if name == cursor["TopicName"] else 0
        if left <= 0:
            return {"Topics": out, "NextCursor": {"TopicName": name, "PartitionIndex": 0}}
        row = described(topic, TOPIC_OPERATIONS, state.cluster)
        row["Partitions"] = row["Partitions"][first : first + left]
        out.append(row)
        left -= len(row["Partitions"])
        last = first + len(row["Partitions"])
        if last < len(topic.partitions):
            return {"Topics": out, "NextCursor": {"TopicName": name, "PartitionIndex": last}}
    return {"Topics": out, "NextCursor": None}


APIS = (
    Api("Metadata", Versions(0, 13), metadata),
    Api("DescribeCluster", Versions(0, 2), describe_cluster),
    Api("DescribeTopicPartitions", Versions(0, 0), describe_topic_partitions),
)
