"""ListGroups, DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe and DeleteGroups.

After GroupMetadataManager.listGroups, describeGroups and consumerGroupDescribe, GroupCoordinatorShard.deleteGroups.
"""

from __future__ import annotations

from typing import Any

from kwire.coordinator import preconditions
from kwire.coordinator.bodies import Body
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.group import Group, GroupState, Member
from kwire.coordinator.group_kinds import kind_of
from kwire.coordinator.share.group import ShareGroup
from kwire.coordinator.streams.group import StreamsGroup
from kwire.coordinator.types import Check
from kwire.schema.codes import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NONE

SAYS_NOT_FOUND = 6  # DescribeGroups version from which a group that is not there is an error (KIP-1043)
NOT_ASKED = -(2**31)
OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8  # read, delete, describe
CONFIG_OPERATIONS = 1 << 10 | 1 << 11  # describe and alter configs: groups have some since 3.8


def list_groups(context: Context, request: CoordinatorRequest) -> Reply:
    """ListGroups: groups that this broker coordinates and the caller may see, by state and type."""
    if not context.active:
        check = Check(
            preconditions.ACTIVE.number,
            preconditions.ACTIVE.name,
            preconditions.ACTIVE.error,
            "the coordinator is not active",
        )
        return Reply({"ErrorCode": check.error, "Groups": []}, check)
    states = {state.strip().lower() for state in request.body.get("StatesFilter") or ()}
    types = {kind.strip().lower() for kind in request.body.get("TypesFilter") or ()}
    listed = [
        _listed(name, group)
        for name, group in context.groups.items()
        if context.owns(name) and context.may(request.caller, name)
    ]
    groups = [
        each
        for each in listed
        if (not states or each["GroupState"].lower() in states) and (not types or each["GroupType"] in types)
    ]
    return Reply(
        {"ErrorCode": NONE, "Groups": groups}, Check(0, "listed", NONE, f"{len(groups)} of {len(listed)} groups")
    )


def _listed(name: str, group: Any) -> Body:
    kind = kind_of(group)
    return {
        "GroupId": name,
        "ProtocolType": kind.protocol_type(group),
        "GroupState": kind.state(group),
        "GroupType": kind.type,
    }


def _each(context: Context, request: CoordinatorRequest, names: list[str]) -> list[tuple[str, Check | None]]:
    """The groups asked for, each with the check that stops it."""
    return [
        (name, preconditions.stopped(context, context.preconditions, request.api, request.caller, name))
        for name in names
    ]


def _worst(checks: list[Check | None], done: str) -> Check:
    return next((check for check in checks if check is not None and check.error), Check(0, done, NONE, done))


def describe_groups(context: Context, request: CoordinatorRequest) -> Reply:
    """DescribeGroups: classic groups; any other id is a Dead group, from v6 on with GROUP_ID_NOT_FOUND."""
    groups = []
    checks: list[Check | None] = []
    for name, check in _each(context, request, request.body["Groups"]):
        group = context.groups.get(name)
        if check is not None:
            body: Body = {"GroupId": name, "ErrorCode": check.error}
        elif isinstance(group, Group):
            body = _described(group, context.since(4, 0))
        else:
            why = f"there is no group {name}" if group is None else f"group {name} is no classic group"
            check = Check(0, "group", GROUP_ID_NOT_FOUND if request.version >= SAYS_NOT_FOUND else NONE, why)
            said = {"ErrorCode": check.error, "ErrorMessage": why} if check.error else {}
            body = {"GroupId": name, "GroupState": str(GroupState.DEAD), **said}
        body["AuthorizedOperations"] = _operations(context, request, body.get("ErrorCode", NONE))
        groups.append(body)
        checks.append(check)
    return Reply({"Groups": groups}, _worst(checks, "described"))


def _operations(context: Context, request: CoordinatorRequest, error: int) -> int:
    if error or not request.body.get("IncludeAuthorizedOperations"):
        return NOT_ASKED
    return OPERATIONS | (CONFIG_OPERATIONS if context.since(3, 8) else 0)


def _described(group: Group, keeps: bool) -> Body:
    """keeps: while it rebalances, a group shows what its members had; not so before 4.0."""
    stable = group.state is GroupState.STABLE
    return {
        "ErrorCode": NONE,
        "GroupId": group.id,
        "GroupState": str(group.state),
        "ProtocolType": group.protocol_type or "",
        "ProtocolData": group.protocol or "" if stable else "",
        "Members": [_described_member(member, group.protocol, stable, keeps) for member in group.members.values()],
    }


def _described_member(member: Member, protocol: str | None, stable: bool, keeps: bool) -> Body:
    return {
        "MemberId": member.id,
        "GroupInstanceId": member.instance_id,
        "ClientId": member.client_id,
        "ClientHost": member.client_host,
        "MemberMetadata": member.metadata(protocol) if stable else b"",
        "MemberAssignment": member.assignment if stable or keeps else b"",
    }


def describe_consumer_groups(context: Context, request: CoordinatorRequest) -> Reply:
    """ConsumerGroupDescribe: groups of KIP-848 only."""
    return _describe_modern(context, request, ConsumerGroup)


def describe_share_groups(context: Context, request: CoordinatorRequest) -> Reply:
    """ShareGroupDescribe: groups of KIP-932 only."""
    return _describe_modern(context, request, ShareGroup)


def describe_streams_groups(context: Context, request: CoordinatorRequest) -> Reply:
    """StreamsGroupDescribe: groups of KIP-1071 only."""
    return _describe_modern(context, request, StreamsGroup)


Described = type[ConsumerGroup] | type[ShareGroup] | type[StreamsGroup]


def _describe_modern(context: Context, request: CoordinatorRequest, kind: Described) -> Reply:
    groups = []
    checks: list[Check | None] = []
    for name, check in _each(context, request, request.body["GroupIds"]):
        group = context.groups.get(name)
        if check is None and not isinstance(group, kind):
            why = f"there is no group {name}" if group is None else f"group {name} is no {kind.type} group"
            check = Check(0, "group", GROUP_ID_NOT_FOUND, why)
        if check is not None:
            groups.append({"GroupId": name, "ErrorCode": check.error, "ErrorMessage": check.why})
        elif isinstance(group, kind):
            groups.append(
                group.describe(request.version) | {"AuthorizedOperations": _operations(context, request, NONE)}
            )
        checks.append(check)
    return Reply({"Groups": groups}, _worst(checks, "described"))


def delete_groups(context: Context, request: CoordinatorRequest) -> Reply:
    """DeleteGroups: empty groups with their offsets; an id that is named twice counts once."""
    results = []
    checks: list[Check | None] = []
    for name, check in _each(context, request, list(dict.fromkeys(request.body["GroupsNames"]))):
        decided = check or _delete(context, name)
        said = {"ErrorMessage": decided.why} if decided.error else {}
        results.append({"GroupId": name, "ErrorCode": decided.error, **said})
        checks.append(decided)
    return Reply({"Results": results}, _worst(checks, "deleted"))


def _delete(context: Context, name: str) -> Check:
    group = context.groups.get(name)
    if group is None:
        return Check(0, "group", GROUP_ID_NOT_FOUND, f"there is no group {name}")
    kind = kind_of(group)
    if not kind.is_empty(group):
        return Check(0, "state", NON_EMPTY_GROUP, f"group {name} is {kind.state(group)} and has members")
    kind.end(context, group, "deleted by request")
    context.offsets.forget(name)
    context.share_states.forget(name)
    return Check(0, "deleted", NONE, f"group {name} is gone, with its offsets")
