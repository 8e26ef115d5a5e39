"""What admin tools ask in passing, and what has one true answer in a broker without disks, ACLs and followers:
AlterReplicaLogDirs (34), DescribeLogDirs (35), ElectLeaders (43), DescribeProducers (61), UnregisterBroker (64)."""

from __future__ import annotations

from kwire.broker.apis import Api
from kwire.broker.cluster import Topic
from kwire.broker.context import Body, Outcome, Request, Work, finish
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.broker.topology import Election
from kwire.schema import codes
from kwire.schema.model import Versions

LOG_DIR = "/memory"
MANY = 500  # topics and partitions that are told of in one go


def describe_log_dirs(request: Request, state: BrokerState) -> Outcome:
    work = _log_dirs(request, state)
    return work if state.cluster.size > MANY else finish(work)


def _log_dirs(request: Request, state: BrokerState) -> Work[Body]:
    """One directory for each node, with what it leads."""
    asked = request.body["Topics"]
    wanted = None if asked is None else {item["Topic"]: set(item["Partitions"]) for item in asked}
    topics = []
    for name in sorted(state.cluster.topics):
        topic = state.cluster.topics.get(name)
        if topic is None or (wanted is not None and name not in wanted):
            continue
        rows = _sizes(topic, request.node, None if wanted is None else wanted[topic.name])
        if rows:
            topics.append({"Name": topic.name, "Partitions": rows})
            yield
    room = state.cluster.room
    row = {"ErrorCode": codes.NONE, "LogDir": LOG_DIR, "Topics": topics, "TotalBytes": room.limit}
    return {"ErrorCode": codes.NONE, "Results": [{**row, "UsableBytes": max(room.limit - room.used, 0)}]}


def _sizes(topic: Topic, node: int, wanted: set[int] | None) -> list[Body]:
    return [
        {
            "PartitionIndex": p.index,
            "PartitionSize": p.used.size if p.used is not None else 0,
            "OffsetLag": 0,
            "IsFutureKey": False,
        }
        for p in topic.partitions
        if p.leader == node and (wanted is None or p.index in wanted)
    ]


def alter_replica_log_dirs(request: Request, state: BrokerState) -> Body:
    """All is in the one directory already."""
    rows: dict[str, list[Body]] = {}
    for item in request.body["Dirs"]:
        for topic in item["Topics"]:
            found = state.cluster.topics.get(topic["Name"])
            for index in topic["Partitions"]:
                there = found is not None and 0 <= index < len(found.partitions)
                code = codes.NONE if there else codes.UNKNOWN_TOPIC_OR_PARTITION
                code = code if item["Path"] == LOG_DIR else codes.LOG_DIR_NOT_FOUND
                rows.setdefault(topic["Name"], []).append({"PartitionIndex": index, "ErrorCode": code})
    return {"Results": [{"TopicName": name, "Partitions": parts} for name, parts in rows.items()]}


def unregister_broker(request: Request, state: BrokerState) -> Body:
    """A node that is down goes for good. One that runs gives up what it leads and registers again at once."""
    number = request.body["BrokerId"]
    node = state.cluster.nodes.get(number)
    if node is None:
        raise Refused(codes.BROKER_ID_NOT_REGISTERED, f"Broker ID {number} is not currently registered")
    if node.alive:
        state.topology.down(number)
        state.topology.up(number)
    else:
        state.topology.remove(number)
    return {"ErrorCode": codes.NONE, "ErrorMessage": None}


def elect_leaders(request: Request, state: BrokerState) -> Body:
    """The first replica leads again, or with an unclean election any live one leads what is offline."""
    asked = request.body["TopicPartitions"]
    every = asked is None
    if asked is None:
        topics = state.cluster.topics.values()
        asked = [{"Topic": t.name, "Partitions": [p.index for p in t.partitions]} for t in topics]
    kind = request.body.get("ElectionType", Election.PREFERRED.value)
    if kind not in (0, 1):
        raise Refused(codes.INVALID_REQUEST, f"no election of type {kind}")
    results = []
    for item in asked:
        topic = state.cluster.topics.get(item["Topic"])
        rows = []
        for index in item["Partitions"]:
            code, why = codes.NONE, None
            try:
                if topic is None or not 0 <= index < len(topic.partitions):
                    raise Refused(codes.UNKNOWN_TOPIC_OR_PARTITION, "No such topic or partition.")
                state.topology.asked_to_elect(topic.partitions[index], Election(kind))
            except Refused as refused:
                code, why = refused.code, refused.why
            if not (every and code == codes.ELECTION_NOT_NEEDED):
                rows.append({"PartitionId": index, "ErrorCode": code, "ErrorMessage": why})
        if rows or not every:
            results.append({"Topic": item["Topic"], "PartitionResult": rows})
    return {"ErrorCode": codes.NONE, "ReplicaElectionResults": results}


def describe_producers(request: Request, state: BrokerState) -> Body:
    topics = []
    for item in request.body["Topics"]:
        topic = state.cluster.topics.get(item["Name"])
        rows = []
        for index in item["PartitionIndexes"]:
            row: Body = {"PartitionIndex": index, "ErrorCode": codes.NONE, "ErrorMessage": None, "ActiveProducers": []}
            try:
                producers = state.cluster.partition(topic, index, request.node).log.producers.known
                row["ActiveProducers"] = [
                    {
                        "ProducerId": number,
                        "ProducerEpoch": known.epoch,
                        "LastSequence": known.batches[-1].last if known.batches else -1,
                        "LastTimestamp": known.time_ms,
                        "CoordinatorEpoch": known.coordinator_epoch,
                        "CurrentTxnStartOffset": known.opened,
                    }
                    for number, known in producers.items()
                ]
            except Refused as refused:
                row["ErrorCode"], row["ErrorMessage"] = refused.code, refused.why
            rows.append(row)
        topics.append({"Name": item["Name"], "Partitions": rows})
    return {"Topics": topics}


APIS = (
    Api("AlterReplicaLogDirs", Versions(1, 2), alter_replica_log_dirs),
    Api("DescribeLogDirs", Versions(0, 5), describe_log_dirs),
    Api("ElectLeaders", Versions(0, 2), elect_leaders),
    Api("DescribeProducers", Versions(0, 0), describe_producers),
    Api("UnregisterBroker", Versions(0, 0), unregister_broker),
)
