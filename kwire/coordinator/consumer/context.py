"""ConsumerGroupHeartbeat (KIP-848) at the coordinator: which group a heartbeat goes to."""

from __future__ import annotations

from kwire.coordinator import classic, modern
from kwire.coordinator.codes import GROUP_ID_NOT_FOUND
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context, Reply, Request
from kwire.coordinator.group import Group, State
from kwire.coordinator.types import Check


def heartbeat(context: Context, request: Request) -> Reply:
    """ConsumerGroupHeartbeat. An empty classic group makes way; one with members stays what it is."""
    name = request.body["GroupId"]
    group = context.groups.get(name)
    makes_way = group is None or (isinstance(group, Group) and group.state is State.EMPTY)
    if not makes_way and not isinstance(group, ConsumerGroup):
        check = Check(3, "group kind", GROUP_ID_NOT_FOUND, f"group {name} is no consumer group, and is in use")
        return Reply({"ErrorCode": check.error, "ErrorMessage": check.why}, check)
    served = group if isinstance(group, ConsumerGroup) else _fresh(context, name)
    served.configure(context.settings_of(name))
    body, check = served.heartbeat(request.version, request.body, request.caller, context.now)
    if not served.fresh:
        if isinstance(group, Group):
            classic.bury(context, group, "a consumer group takes its place")
        context.groups[name] = served
        modern.settle(context, served)
    return Reply(body, check)


def _fresh(context: Context, name: str) -> ConsumerGroup:
    return ConsumerGroup(name, context.settings, context.all_topics, context.new_id)
