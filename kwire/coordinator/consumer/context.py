"""ConsumerGroupHeartbeat (KIP-848) at the coordinator: which group a heartbeat goes to."""

from __future__ import annotations

from kwire.coordinator import classic
from kwire.coordinator.consumer import migration
from kwire.coordinator.consumer.checks import JOIN
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.group import Group, GroupState
from kwire.coordinator.types import Check
from kwire.schema.codes import GROUP_ID_NOT_FOUND


def heartbeat(context: Context, request: CoordinatorRequest) -> Reply:
    """ConsumerGroupHeartbeat. An empty classic group makes way; one with members stays what it is."""
    name = request.body["GroupId"]
    group = context.groups.get(name)
    served = _served(context, request, group)
    if isinstance(served, Check):
        return Reply({"ErrorCode": served.error, "ErrorMessage": served.why}, served)
    served.configure(context.settings_of(name))
    body, check = served.heartbeat(request.version, request.body, request.caller, context.now)
    if not served.fresh:
        if isinstance(group, Group) and group.members:
            if check.error:
                return Reply(body, check)
            migration.replace_classic(context, group, served)
        elif isinstance(group, Group):
            classic.bury(context, group, "a consumer group takes its place")
        context.groups[name] = served
        migration.settle(context, served, check.why)
    return Reply(body, check)


def _served(context: Context, request: CoordinatorRequest, group: object) -> ConsumerGroup | Check:
    """The consumer group that is asked, not stored yet when there was none."""
    name = request.body["GroupId"]
    if isinstance(group, ConsumerGroup):
        return group
    if group is None or (isinstance(group, Group) and group.state is GroupState.EMPTY):
        return ConsumerGroup(name, context.settings, context.all_topics, context.new_id)
    if isinstance(group, Group) and request.body["MemberEpoch"] == JOIN:
        return migration.upgraded(context, group)
    return Check(3, "group kind", GROUP_ID_NOT_FOUND, f"group {name} is no consumer group, and is in use")
