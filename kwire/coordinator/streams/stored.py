"""A streams group as the records that Kafka keeps of it, by the names of their messages; and the group again from them.

A group that comes back has its epochs, topology, members and tasks; its members have a whole session to be heard of.
Records: StreamsCoordinatorRecordHelpers; what follows their loading: GroupMetadataManager.onLoaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kwire.coordinator.stored_records import Fields, RecordKey, Rows
from kwire.coordinator.streams import tasks
from kwire.coordinator.streams.group import REBALANCE, SESSION, StreamsGroup
from kwire.coordinator.streams.tasks import StreamsMember, Task, Tasks, TaskState
from kwire.coordinator.streams.topology import StreamsTopology
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS

KINDS: Final = {  # the number that a record's key begins with
    "Metadata": 17, "MemberMetadata": 19, "TargetAssignmentMetadata": 20, "TargetAssignmentMember": 21,
    "CurrentMemberAssignment": 22, "Topology": 23,
}  # fmt: skip
STATES: Final = {TaskState.STABLE: 1, TaskState.UNREVOKED: 2, TaskState.UNRELEASED: 3}
STANDBYS: Final = "num.standby.replicas"


def stored(group: StreamsGroup, kind: str) -> dict[RecordKey, Fields]:
    """Its records of that kind."""
    members, name = group.members.values(), group.name
    if kind == "Metadata":
        standbys = [] if group.standbys is None else [{"Key": STANDBYS, "Value": str(group.standbys)}]
        return {(name,): {
            "Epoch": group.epoch, "MetadataHash": group.topics_hash, "ValidatedTopologyEpoch": group.validated_epoch,
            "LastAssignmentConfigs": standbys,
        }}  # fmt: skip
    if kind == "Topology":
        return {} if group.topology is None else {(name,): group.topology.recorded()}
    if kind == "TargetAssignmentMetadata":
        return {(name,): {"AssignmentEpoch": group.target_epoch, "AssignmentTimestamp": (group.target_time or 0) // MS}}
    if kind == "TargetAssignmentMember":
        return {(name, member): tasks.assignment(target) for member, target in group.targets.items()}
    if kind == "MemberMetadata":
        return {(name, each.id): _said(each) for each in members}
    return {(name, each.id): _current(each) for each in members}


def _said(member: StreamsMember) -> Fields:
    endpoint = member.endpoint
    return {
        "InstanceId": None, "RackId": member.rack, "ClientId": member.client_id, "ClientHost": member.client_host,
        "RebalanceTimeoutMs": member.rebalance_timeout_ms, "TopologyEpoch": member.topology_epoch,
        "ProcessId": member.process,
        "UserEndpoint": None if endpoint is None else {"Host": endpoint[0], "Port": endpoint[1]},
        "ClientTags": [{"Key": key, "Value": value} for key, value in member.tags],
    }  # fmt: skip


def _current(member: StreamsMember) -> Fields:
    """Active tasks come with the epoch since which the member has them."""
    fields: Fields = {
        "MemberEpoch": member.epoch, "PreviousMemberEpoch": member.previous_epoch, "State": STATES[member.state],
    }  # fmt: skip
    for suffix, held in (("", member.assigned), ("PendingRevocation", member.revoking)):
        fields |= {f"{role}{suffix}": rows for role, rows in tasks.assignment(held).items()}
        for row in fields[f"ActiveTasks{suffix}"]:
            row["AssignmentEpochs"] = [
                member.since.get((row["SubtopologyId"], partition), member.epoch) for partition in row["Partitions"]
            ]
    return fields


def restore(group: StreamsGroup, found: Mapping[str, Rows], now: int) -> None:
    """found: its records by kind; there is one that says its epoch."""
    name, metadata = (group.name,), found["Metadata"][group.name,]
    group.fresh, group.epoch, group.topics_hash = False, metadata["Epoch"], metadata["MetadataHash"]
    group.validated_epoch = metadata.get("ValidatedTopologyEpoch", -1)
    configs = {row["Key"]: row["Value"] for row in metadata.get("LastAssignmentConfigs") or ()}
    group.standbys = int(configs[STANDBYS]) if STANDBYS in configs else None
    target = found["TargetAssignmentMetadata"].get(name, {})
    group.target_epoch = target.get("AssignmentEpoch", group.epoch)
    group.target_time = target.get("AssignmentTimestamp", 0) * MS or None
    topology = StreamsTopology.read(found["Topology"][name]) if name in found["Topology"] else None
    group.topology = topology if isinstance(topology, StreamsTopology) else None
    if group.topology is None:
        return
    for (_, who), row in found["TargetAssignmentMember"].items():
        group.targets[who] = _tasks(row, "")
    for (_, who), row in found["MemberMetadata"].items():
        current = found["CurrentMemberAssignment"].get((group.name, who), {})
        member = group.members[who] = _member(who, row, current)
        _wait(group, member, now)


def _wait(group: StreamsGroup, member: StreamsMember, now: int) -> None:
    member.heard = now
    session = group.settings.group_streams_session_timeout_ms
    group.timers.set(Key(SESSION, group.name, member.id), now + session * MS)
    if member.state is TaskState.UNREVOKED:
        group.timers.set(Key(REBALANCE, group.name, member.id), now + max(member.rebalance_timeout_ms, 0) * MS)


def _member(name: str, said: Fields, current: Fields) -> StreamsMember:
    endpoint = said.get("UserEndpoint")
    member = StreamsMember(
        name, said["RackId"], said["RebalanceTimeoutMs"], said["ClientId"], said["ClientHost"], said["TopologyEpoch"],
        said["ProcessId"], (endpoint["Host"], endpoint["Port"]) if endpoint else None,
        tuple((row["Key"], row["Value"]) for row in said["ClientTags"]),
    )  # fmt: skip
    if current:
        member.epoch, member.previous_epoch = current["MemberEpoch"], current["PreviousMemberEpoch"]
        states = {number: state for state, number in STATES.items()}
        member.state = states.get(current["State"], TaskState.STABLE)
        member.assigned, member.revoking = _tasks(current, ""), _tasks(current, "PendingRevocation")
        rows = [*current["ActiveTasks"], *current["ActiveTasksPendingRevocation"]]
        member.since = {
            (row["SubtopologyId"], partition): since
            for row in rows
            for partition, since in zip(row["Partitions"], row.get("AssignmentEpochs") or (), strict=False)
        }
    return member


def _tasks(fields: Fields, suffix: str) -> Tasks:
    roles = (f"{role}{suffix}" for role in ("ActiveTasks", "StandbyTasks", "WarmupTasks"))
    return Tasks(*(_held(fields[role]) for role in roles))


def _held(rows: Iterable[Fields]) -> frozenset[Task]:
    return frozenset((row["SubtopologyId"], partition) for row in rows for partition in row["Partitions"])
