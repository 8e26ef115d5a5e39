"""Heartbeat of a classic group: the rules of heartbeat_rules.py in order; the first that fails decides the answer.

All releases answer NONE, blindly, while the group is being loaded: classic heartbeats in 4.x too
(GroupCoordinatorService.heartbeat). COORDINATOR_LOAD_IN_PROGRESS is what ConsumerGroupHeartbeat answers then.
"""

from __future__ import annotations

from kwire.coordinator import classic
from kwire.coordinator.consumer import migration
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context, CoordinatorRequest, Reply, elapsed, shown_ms
from kwire.coordinator.group import Group
from kwire.coordinator.heartbeat_rules import Beat
from kwire.coordinator.types import Check
from kwire.schema.codes import NONE, UNKNOWN_MEMBER_ID


def heartbeat(context: Context, request: CoordinatorRequest) -> Reply:
    """Heartbeat. preconditions.py has made checks 1 to 4."""
    body = request.body
    group = context.groups.get(body["GroupId"])
    if isinstance(group, ConsumerGroup):
        return migration.heartbeat(context, request, group)
    if not isinstance(group, Group):
        why = f"this coordinator knows no group {body['GroupId']}"
        return _reply(Check(5, "group", UNKNOWN_MEMBER_ID, why))
    beat = Beat(group, body["MemberId"], body.get("GroupInstanceId"), body["GenerationId"])
    for rule in context.heartbeat_rules:
        why_not = rule.fails(beat)
        if why_not is not None:
            if rule.counts:
                classic.keep_alive(context, group, group.members[beat.member], "Heartbeat")
            return _reply(Check(rule.number, rule.name, rule.error, why_not))
    member = group.members[beat.member]
    why = (
        f"generation {group.generation} stands; last heard of {elapsed(member.last_heartbeat, context.now)} ago, "
        f"session timeout {shown_ms(member.session_timeout_ms)}"
    )
    classic.keep_alive(context, group, member, "Heartbeat")
    return _reply(Check(8, "generation", NONE, why))


def blind(check: Check) -> Reply:
    """While the group is being loaded every heartbeat is answered with NONE."""
    return _reply(Check(check.number, check.name, NONE, f"{check.why}: answered blindly"))


def _reply(check: Check) -> Reply:
    return Reply({"ErrorCode": check.error}, check)
