"""What call fills in where the schema's default would make a request useless: the values that clients send.

A path of DEFAULTS is a field, through arrays and structs; it counts for the versions that have the field, where the
body has the struct around it and does not give the field itself. Everything else gets the schema's default.
"""

from __future__ import annotations

from typing import Any

from kwire.client.exchange import Body
from kwire.client.software import SAID
from kwire.codec.plan import Plan, StructPlan

ANY = 1  # of ACL filters: MATCH, 0 is unknown and refused
DEFAULTS: dict[str, dict[str, Any]] = {
    "Produce": {"Acks": -1, "TimeoutMs": 30_000},
    "Fetch": {"MaxWaitMs": 500, "MinBytes": 1, "Topics.Partitions.PartitionMaxBytes": 1 << 20},
    "ListOffsets": {"ReplicaId": -1, "Topics.Partitions.Timestamp": -1, "TimeoutMs": 30_000},
    "Metadata": {"Topics": None, "AllowAutoTopicCreation": False},
    "OffsetFetch": {"Topics": None, "Groups.Topics": None},
    "OffsetCommit": {"GenerationIdOrMemberEpoch": -1, "RetentionTimeMs": -1},
    "JoinGroup": {"SessionTimeoutMs": 45_000, "RebalanceTimeoutMs": 300_000, "ProtocolType": "consumer"},
    "ApiVersions": SAID,
    "CreateTopics": {"TimeoutMs": 30_000, "Topics.NumPartitions": -1, "Topics.ReplicationFactor": -1},
    "DeleteTopics": {"TimeoutMs": 30_000},
    "DeleteRecords": {"TimeoutMs": 30_000},
    "CreatePartitions": {"TimeoutMs": 30_000, "Topics.Assignments": None},
    "DescribeAcls": {
        "ResourceTypeFilter": ANY, "ResourceNameFilter": None, "PatternTypeFilter": ANY, "PrincipalFilter": None,
        "HostFilter": None, "Operation": ANY, "PermissionType": ANY,
    },
    "DescribeConfigs": {"Resources.ConfigurationKeys": None},
    "DescribeLogDirs": {"Topics": None},
    "DescribeDelegationToken": {"Owners": None},
    "DescribeUserScramCredentials": {"Users": None},
    "ListPartitionReassignments": {"TimeoutMs": 30_000, "Topics": None},
    "DescribeQuorum": {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]},
    "OffsetForLeaderEpoch": {"ReplicaId": -1, "Topics.Partitions.CurrentLeaderEpoch": -1},
}  # fmt: skip


def filled(api: str, plan: Plan, body: Body) -> Body:
    """The body with the defaults of its API."""
    out = body
    for path, value in DEFAULTS.get(api, {}).items():
        out = _put(plan.root, out, path.split("."), value)
    return out


def _put(plan: StructPlan, body: Any, path: list[str], value: Any) -> Any:
    if not isinstance(body, dict):
        return body
    name, *rest = path
    slot = next((slot for slot in (*plan.slots, *plan.tagged.values()) if slot.name == name), None)
    if slot is None or (value is None and not rest and not slot.nullable):
        return body
    if not rest:
        return body if name in body else {**body, name: value}
    inner = body.get(name)
    if slot.struct is None or inner is None:
        return body
    listed = isinstance(inner, list)
    put = [_put(slot.struct, one, rest, value) for one in inner] if listed else _put(slot.struct, inner, rest, value)
    return {**body, name: put}
