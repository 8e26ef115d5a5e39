"""StreamsGroupHeartbeat (KIP-1071) at the coordinator: which group it goes to, and the topics that the group needs."""

from __future__ import annotations

from kwire.coordinator import classic, modern
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.group import Group, GroupState
from kwire.coordinator.streams.group import StreamsGroup
from kwire.coordinator.types import Check
from kwire.schema.codes import GROUP_ID_NOT_FOUND


def heartbeat(context: Context, request: CoordinatorRequest) -> Reply:
    """StreamsGroupHeartbeat. An empty classic group makes way; any other group stays what it is."""
    name = request.body["GroupId"]
    found = context.groups.get(name)
    makes_way = found is None or (isinstance(found, Group) and found.state is GroupState.EMPTY)
    if not makes_way and not isinstance(found, StreamsGroup):
        check = Check(2, "group kind", GROUP_ID_NOT_FOUND, f"group {name} is no streams group")
        return Reply({"ErrorCode": check.error, "ErrorMessage": check.why}, check)
    group = found if isinstance(found, StreamsGroup) else fresh(context, name)
    group.configure(context.settings_of(name))
    body, check, new = group.heartbeat(request.body, request.caller, context.now)
    if not group.fresh:
        if isinstance(found, Group):
            classic.bury(context, found, "a streams group takes its place")
        context.groups[name] = group
        modern.settle(context, group)
    if new:
        context.new_topics(new)
    return Reply(body, check)


def fresh(context: Context, name: str) -> StreamsGroup:
    """A group that is not stored yet."""
    return StreamsGroup(name, context.settings, context.all_topics)
