"""Which broker a request belongs to: a group's or a transaction's coordinator, a partition's leader, else any broker.

A request that names several groups or partitions goes where the first of them lives; the others are told of. What an
API names is read from the schema's entities, so that newer APIs are routed too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.exchange import Body
from kwire.codec.named import named
from kwire.codec.plan import Plan
from kwire.errors import KwireError
from kwire.schema.errorcodes import errors

GROUP, TRANSACTION = 0, 1
BY_GROUP = frozenset({
    "OffsetCommit", "OffsetFetch", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups",
    "DeleteGroups", "OffsetDelete", "TxnOffsetCommit", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe",
    "ShareGroupHeartbeat", "ShareGroupDescribe", "StreamsGroupHeartbeat", "StreamsGroupDescribe",
    "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
})  # fmt: skip
BY_TRANSACTION = frozenset(
    {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "DescribeTransactions"}
)
BY_LEADER = {  # arrays of topics and of partitions, and the field with a partition's number, if it is not the element
    "Produce": ("TopicData", "PartitionData", "Index"),
    "Fetch": ("Topics", "Partitions", "Partition"),
    "ListOffsets": ("Topics", "Partitions", "PartitionIndex"),
    "OffsetForLeaderEpoch": ("Topics", "Partitions", "Partition"),
    "DeleteRecords": ("Topics", "Partitions", "PartitionIndex"),
    "DescribeProducers": ("Topics", "PartitionIndexes", ""),
    "ShareFetch": ("Topics", "Partitions", "PartitionIndex"),
    "ShareAcknowledge": ("Topics", "Partitions", "PartitionIndex"),
}
SHOWN = 3


class Route(NamedTuple):
    """address: where the request goes, None: it may stay. why: in words; others: what lives elsewhere, in words."""

    address: Address | None
    why: str = ""
    others: str = ""


def is_routed(api: str) -> bool:
    return api in BY_GROUP or api in BY_TRANSACTION or api in BY_LEADER


def route(connection: BrokerConnection, api: str, plan: Plan, body: Body) -> Route:
    """Asks the broker at the other end where the request belongs. Raises KwireError when it cannot tell."""
    if api in BY_LEADER:
        return _to_leader(connection, api, body)
    kind, entity = (GROUP, "groupId") if api in BY_GROUP else (TRANSACTION, "transactionalId")
    keys = list(dict.fromkeys(named(plan.root, body, entity)))
    if not keys:
        return Route(None)
    found = [_coordinator(connection, key, kind) for key in keys[: SHOWN + 1]]
    away = [key for key, (_, address) in zip(keys, found, strict=False) if address != found[0][1]]
    others = f"{_some(away)} {'has' if len(away) == 1 else 'have'} another coordinator" if away else ""
    node, address = found[0]
    return Route(address, f"node {node} coordinates {keys[0]}", others)


def _coordinator(connection: BrokerConnection, key: str, kind: int) -> tuple[int, Address]:
    version = connection.version("FindCoordinator")
    asked: Body = {"CoordinatorKeys": [key]} if version >= 4 else {"Key": key}
    answer = connection.request("FindCoordinator", version, asked | ({"KeyType": kind} if version else {})).body()
    row = answer["Coordinators"][0] if answer.get("Coordinators") else answer
    if row["ErrorCode"]:
        raise KwireError(f"no coordinator of {key}: {errors.label(row['ErrorCode'])}")
    return row["NodeId"], Address(row["Host"], row["Port"])


def _to_leader(connection: BrokerConnection, api: str, body: Body) -> Route:
    wanted = list(dict.fromkeys(_partitions(api, body)))
    if not wanted:
        return Route(None)
    names = list(dict.fromkeys(topic for topic, _ in wanted))
    version = connection.version("Metadata")
    if version < 12:
        names = [name for name in names if not isinstance(name, UUID)]
    asked = [{"TopicId": name, "Name": None} if isinstance(name, UUID) else {"Name": name} for name in names]
    more = {"AllowAutoTopicCreation": False} if version >= 4 else {}
    answer = connection.request("Metadata", version, {"Topics": asked, **more}).body()
    brokers = {row["NodeId"]: Address(row["Host"], row["Port"]) for row in answer["Brokers"]}
    leaders: dict[tuple[str | UUID, int], int] = {}
    for topic in answer["Topics"]:
        for row in topic["Partitions"]:
            for name in (topic.get("Name"), topic.get("TopicId")):
                if name is not None:
                    leaders[name, row["PartitionIndex"]] = row["LeaderId"]
    led = [(leaders.get(each), each) for each in wanted]
    first = next(((node, each) for node, each in led if node in brokers), None)
    if first is None:
        return Route(None)
    node, (topic, index) = first
    assert node is not None
    away = [f"{name}-{number}" for other, (name, number) in led if other is not None and other != node]
    others = f"{_some(away)} {'has' if len(away) == 1 else 'have'} another leader" if away else ""
    return Route(brokers[node], f"node {node} leads {topic}-{index}", others)


def _partitions(api: str, body: Body) -> Iterator[tuple[str | UUID, int]]:
    topics, partitions, number = BY_LEADER[api]
    for topic in body.get(topics) or ():
        name: Any = topic.get("Name") or topic.get("Topic") or topic.get("TopicId")
        for each in topic.get(partitions) or ():
            yield name, each[number] if number else each


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
