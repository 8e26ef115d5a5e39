"""What a consumer asks, in the fields of each version; and its answers, read alike whatever the version.

Where versions differ in more than a field: FindCoordinator asks for many keys from v4 on, OffsetFetch for many groups
from v8 and by topic id from v10, LeaveGroup for many members from v3, Fetch goes by topic id from v13.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from kwire.client.address import Address
from kwire.client.exchange import Body
from kwire.errors import KwireError
from kwire.records import Batches, read_records

Partition = tuple[str, int]
EARLIEST, LATEST = -2, -1


def first(rows: list[Body], api: str) -> Body:
    """Where one was asked for. Raises KwireError when there is none."""
    if not rows:
        raise KwireError(f"the answer to {api} is empty")
    return rows[0]


def metadata(version: int, topics: list[str] | None, create: bool = False) -> Body:
    """topics None: all of them. create: v4 and up, let the broker create those that it lacks; before it always may."""
    listed: Any = None if topics is None else [{"Name": name} for name in topics]
    body: Body = {"Topics": [] if listed is None and version == 0 else listed}
    return body | ({"AllowAutoTopicCreation": create} if version >= 4 else {})


def find_coordinator(version: int, group: str) -> Body:
    return {"CoordinatorKeys": [group]} if version >= 4 else {"Key": group}


class CoordinatorAnswer(NamedTuple):
    """FindCoordinator's answer."""

    error: int
    message: str | None
    node: int
    address: Address


def found_coordinator(body: Body) -> CoordinatorAnswer:
    """Raises KwireError for an answer without one."""
    row = first(body["Coordinators"], "FindCoordinator") if "Coordinators" in body else body
    address = Address(row["Host"], row["Port"])
    return CoordinatorAnswer(row["ErrorCode"], row.get("ErrorMessage"), row["NodeId"], address)


def join_group(
    version: int, group: str, member: str, session_ms: int, rebalance_ms: int, protocols: list[tuple[str, bytes]],
    instance: str | None = None,
) -> Body:  # fmt: skip
    body: Body = {"GroupId": group, "SessionTimeoutMs": session_ms, "MemberId": member, "ProtocolType": "consumer"}
    body["Protocols"] = [{"Name": name, "Metadata": data} for name, data in protocols]
    body |= {"RebalanceTimeoutMs": rebalance_ms} if version >= 1 else {}
    return body | ({"GroupInstanceId": instance} if version >= 5 else {})


def sync_group(
    version: int, group: str, generation: int, member: str, protocol: str | None, assignments: dict[str, bytes],
    instance: str | None = None,
) -> Body:  # fmt: skip
    body = _in_group(version, group, generation, member, instance)
    rows = [{"MemberId": who, "Assignment": data} for who, data in assignments.items()]
    body |= {"Assignments": rows}
    return body | ({"ProtocolType": "consumer", "ProtocolName": protocol} if version >= 5 else {})


def heartbeat(version: int, group: str, generation: int, member: str, instance: str | None = None) -> Body:
    return _in_group(version, group, generation, member, instance)


def _in_group(version: int, group: str, generation: int, member: str, instance: str | None) -> Body:
    body: Body = {"GroupId": group, "GenerationId": generation, "MemberId": member}
    return body | ({"GroupInstanceId": instance} if version >= 3 else {})


def leave_group(version: int, group: str, member: str, instance: str | None = None, reason: str | None = None) -> Body:
    if version < 3:
        return {"GroupId": group, "MemberId": member}
    row: Body = {"MemberId": member, "GroupInstanceId": instance} | ({"Reason": reason} if version >= 5 else {})
    return {"GroupId": group, "Members": [row]}


def left(body: Body) -> int:
    """LeaveGroup's error: the group's, else the member's."""
    own = [row["ErrorCode"] for row in body.get("Members") or [] if row["ErrorCode"]]
    return int(body["ErrorCode"] or (own[0] if own else 0))


def _by_topic(partitions: list[Partition]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for topic, index in partitions:
        rows.setdefault(topic, []).append(index)
    return rows


def offset_fetch(
    version: int, group: str, partitions: list[Partition], ids: dict[str, UUID], member: str | None = None,
    epoch: int = -1,
) -> Body:  # fmt: skip
    """member and epoch: those of a KIP-848 consumer, v9 and up."""
    rows: list[Body] = [
        ({"TopicId": ids[name]} if version >= 10 else {"Name": name}) | {"PartitionIndexes": indexes}
        for name, indexes in _by_topic(partitions).items()
    ]
    if version < 8:
        return {"GroupId": group, "Topics": rows}
    body: Body = {"GroupId": group, "Topics": rows}
    body |= {"MemberId": member, "MemberEpoch": epoch} if version >= 9 else {}
    return {"Groups": [body]}


class OffsetFetchAnswer(NamedTuple):
    """OffsetFetch's answer: the group's error, and by partition the offset (-1: none) with its error."""

    error: int
    offsets: dict[Partition, tuple[int, int]]


def committed(body: Body, names: dict[UUID, str]) -> OffsetFetchAnswer:
    group = (body.get("Groups") or [body])[0]
    offsets = {
        (_name(topic, "Name", names), row["PartitionIndex"]): (row["CommittedOffset"], row["ErrorCode"])
        for topic in group.get("Topics") or []
        for row in topic["Partitions"]
    }
    return OffsetFetchAnswer(group.get("ErrorCode", 0), offsets)


def _name(topic: Body, field: str, names: dict[UUID, str]) -> str:
    if field in topic:
        return str(topic[field])
    return names.get(topic["TopicId"], str(topic["TopicId"]))


def list_offsets(version: int, partitions: list[Partition], time: int) -> Body:
    """time: ms since the epoch, EARLIEST or LATEST."""
    row: Body = {"Timestamp": time} | ({"MaxNumOffsets": 1} if version == 0 else {})
    topics = [
        {"Name": name, "Partitions": [row | {"PartitionIndex": index} for index in indexes]}
        for name, indexes in _by_topic(partitions).items()
    ]
    return {"ReplicaId": -1, "Topics": topics} | ({"TimeoutMs": 30_000} if version >= 10 else {})


def listed_offsets(body: Body) -> dict[Partition, tuple[int, int]]:
    """By partition offset and error."""
    return {
        (topic["Name"], row["PartitionIndex"]): (
            row.get("Offset", (row.get("OldStyleOffsets") or [-1])[0]), row["ErrorCode"],
        )
        for topic in body["Topics"]
        for row in topic["Partitions"]
    }  # fmt: skip


def fetch(version: int, positions: dict[Partition, int], ids: dict[str, UUID], wait_ms: int, max_bytes: int) -> Body:
    """max_bytes: of each partition. Without a fetch session."""
    topics = [
        ({"TopicId": ids[name]} if version >= 13 else {"Topic": name})
        | {"Partitions": [
            {"Partition": index, "FetchOffset": positions[name, index], "PartitionMaxBytes": max_bytes}
            for index in indexes
        ]}
        for name, indexes in _by_topic(list(positions)).items()
    ]  # fmt: skip
    body: Body = {"MaxWaitMs": wait_ms, "MinBytes": 1, "Topics": topics}
    body |= {"ReplicaId": -1} if version < 15 else {}
    return body | ({"MaxBytes": 50 << 20} if version >= 3 else {})


class FetchAnswer(NamedTuple):
    """A partition's part of a Fetch answer. high: the end of what may be read, -1 with an error."""

    error: int
    high: int
    data: bytes

    def batches(self) -> Batches:
        """Raises DecodeError for what is no batch."""
        return read_records(self.data)


def fetched(body: Body, names: dict[UUID, str]) -> tuple[int, dict[Partition, FetchAnswer]]:
    """The answer's own error, and by partition what came."""
    rows = {
        (_name(topic, "Topic", names), row["PartitionIndex"]): FetchAnswer(
            row["ErrorCode"], row["HighWatermark"], row["Records"] or b""
        )
        for topic in body["Responses"]
        for row in topic["Partitions"]
    }
    return body.get("ErrorCode", 0), rows
