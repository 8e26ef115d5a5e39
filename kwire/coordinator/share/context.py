"""ShareGroupHeartbeat (KIP-932) at the coordinator: which group a heartbeat goes to."""

from __future__ import annotations

from kwire.coordinator import modern
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.share.group import ShareGroup
from kwire.coordinator.types import Check
from kwire.schema.codes import GROUP_ID_NOT_FOUND


def heartbeat(context: Context, request: CoordinatorRequest) -> Reply:
    """ShareGroupHeartbeat. A group of another kind stays what it is."""
    name = request.body["GroupId"]
    found = context.groups.get(name)
    if found is not None and not isinstance(found, ShareGroup):
        check = Check(2, "group kind", GROUP_ID_NOT_FOUND, f"group {name} is no share group")
        return Reply({"ErrorCode": check.error, "ErrorMessage": check.why}, check)
    group = found or fresh(context, name)
    group.configure(context.settings_of(name))
    body, check = group.heartbeat(request.body, request.caller, context.now)
    if not group.fresh:
        context.groups[name] = group
        modern.settle(context, group)
    return Reply(body, check)


def fresh(context: Context, name: str) -> ShareGroup:
    """A group that is not stored yet."""
    return ShareGroup(name, context.settings, context.all_topics, context.share_states)
