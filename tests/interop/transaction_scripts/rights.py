"""What is answered to who lacks rights: one topic, group and transactional id are denied, others beside them not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.records import build

if TYPE_CHECKING:
    from transaction_lab import TxnLab

TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5


async def denied(lab: TxnLab) -> None:
    """Every API that names a topic, a group or a transactional id, of which the one is denied and the other is not."""
    bad, good = f"{lab.name}-d", lab.name
    await lab.deny(bad, (TOPIC, GROUP, TRANSACTIONAL_ID))
    topics = [bad, lab.topic, f"{lab.name}-d-none"]

    async def ask(api: str, version: int, **body: Any) -> None:
        await lab.ask("a", api, version, body)

    batch = build([(b"k", b"v")])
    rows = [{"Name": name, "PartitionData": [{"Index": 0, "Records": batch}]} for name in topics]
    for version in (9, 11):
        await ask("Produce", version, TransactionalId=None, Acks=-1, TimeoutMs=1000, TopicData=rows)
    parts = [{"Partition": 0, "FetchOffset": 0, "PartitionMaxBytes": 1000}]
    wanted = [{"Topic": name, "Partitions": parts} for name in topics]
    await ask("Fetch", 11, MaxWaitMs=0, MinBytes=0, MaxBytes=1000, Topics=wanted)
    latest = [{"PartitionIndex": 0, "Timestamp": -1}]
    await ask("ListOffsets", 7, ReplicaId=-1, Topics=[{"Name": name, "Partitions": latest} for name in topics])
    ends = [{"Topic": name, "Partitions": [{"Partition": 0, "LeaderEpoch": 0}]} for name in topics]
    await ask("OffsetForLeaderEpoch", 3, ReplicaId=-1, Topics=ends)
    await ask("DescribeProducers", 0, Topics=[{"Name": name, "PartitionIndexes": [0]} for name in topics])
    for key_type in (0, 1):
        await ask("FindCoordinator", 4, KeyType=key_type, CoordinatorKeys=[bad])
        await ask("FindCoordinator", 2, KeyType=key_type, Key=bad)
    offsets = [{"PartitionIndex": 0, "CommittedOffset": 5, "CommittedMetadata": ""}]
    commits = [{"Name": name, "Partitions": offsets} for name in topics]
    for group in (bad, good):
        await ask("OffsetCommit", 8, GroupId=group, Topics=commits)
        await ask("Heartbeat", 4, GroupId=group, GenerationId=1, MemberId="m")
        await ask("SyncGroup", 4, GroupId=group, GenerationId=1, MemberId="m", Assignments=[])
        await ask("LeaveGroup", 4, GroupId=group, Members=[{"MemberId": "m"}])
        asked = [{"Name": name, "PartitionIndexes": [0]} for name in topics]
        await ask("OffsetFetch", 7, GroupId=group, Topics=asked, RequireStable=False)
        await ask("OffsetFetch", 7, GroupId=group, Topics=None, RequireStable=False)
        await ask("OffsetFetch", 8, Groups=[{"GroupId": group, "Topics": asked}], RequireStable=False)
    join = {"SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 1_000, "MemberId": "", "ProtocolType": "consumer"}
    await ask("JoinGroup", 7, GroupId=bad, **join, Protocols=[{"Name": "range", "Metadata": b""}])
    await ask("DescribeGroups", 5, Groups=[bad, f"{good}-none"])
    await ask("DeleteGroups", 2, GroupsNames=[bad, f"{good}-none"])
    await ask("OffsetDelete", 0, GroupId=bad, Topics=[{"Name": lab.topic, "Partitions": [{"PartitionIndex": 0}]}])
    deletes = [{"Name": name, "Partitions": [{"PartitionIndex": 0}]} for name in topics]
    await ask("OffsetDelete", 0, GroupId=good, Topics=deletes)
    for name in (bad, good):
        await ask("InitProducerId", 4, TransactionalId=name, TransactionTimeoutMs=1000)
        await ask("EndTxn", 3, TransactionalId=name, ProducerId=1, ProducerEpoch=0, Committed=True)
        for group in (bad, good):
            who = {"TransactionalId": name, "ProducerId": 1, "ProducerEpoch": 0, "GroupId": group}
            await ask("AddOffsetsToTxn", 3, **who)
            await ask("TxnOffsetCommit", 3, **who, Topics=commits)
        listed = [{"Name": topic, "Partitions": [0]} for topic in topics[:2]]
        who = {"V3AndBelowTransactionalId": name, "V3AndBelowProducerId": 1, "V3AndBelowProducerEpoch": 0}
        await ask("AddPartitionsToTxn", 3, **who, V3AndBelowTopics=listed)
    await ask("DescribeTransactions", 0, TransactionalIds=[bad, good])
    await ask("ListTransactions", 0, StateFilters=[], ProducerIdFilters=[])
    new = {"NumPartitions": 1, "ReplicationFactor": 1}
    await ask("CreateTopics", 4, Topics=[{"Name": f"{bad}-new", **new}], TimeoutMs=1000, ValidateOnly=True)
    await ask("CreatePartitions", 3, Topics=[{"Name": bad, "Count": 9}], TimeoutMs=1000, ValidateOnly=True)
    below = [{"PartitionIndex": 0, "Offset": 0}]
    await ask("DeleteRecords", 2, Topics=[{"Name": name, "Partitions": below} for name in topics], TimeoutMs=1000)
    await ask("DeleteTopics", 5, TopicNames=[bad, f"{lab.name}-d-none"], TimeoutMs=1000)
    resources = [{"ResourceType": 2, "ResourceName": name, "ConfigurationKeys": ["retention.ms"]} for name in topics]
    await ask("DescribeConfigs", 4, Resources=resources)
    change = [{"Name": "retention.ms", "Value": "7", "ConfigOperation": 0}]
    changes = [{"ResourceType": 2, "ResourceName": name, "Configs": change} for name in topics]
    await ask("IncrementalAlterConfigs", 1, Resources=changes, ValidateOnly=True)
