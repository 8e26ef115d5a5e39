"""Consumer groups (KIP-848) at the coordinator: which group a heartbeat goes to, their deadlines, their events."""

from __future__ import annotations

from kwire.coordinator import classic
from kwire.coordinator.classic import CLEANUP_MS
from kwire.coordinator.codes import GROUP_ID_NOT_FOUND
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.context import Context, Reply, Request, shown_ms
from kwire.coordinator.group import Group, State
from kwire.coordinator.purgatory import Kind
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS, Check

CONSUMER = "consumer"  # the operation that waits for a consumer group's next deadline
CLEANUP = "consumer cleanup"  # the one that takes away a group which holds nothing any more


def kinds(context: Context) -> dict[str, Kind]:
    """The purgatory's table."""

    def expire(key: Key, now: int) -> None:
        context.now = max(context.now, now)
        group = context.groups.get(key.group)
        if isinstance(group, ConsumerGroup):
            group.tick(now)
            settle(context, group)

    def clean_up(key: Key, now: int) -> None:
        context.now = max(context.now, now)
        group = context.groups.get(key.group)
        if isinstance(group, ConsumerGroup) and not group.members:
            if context.offsets.holds(key.group):
                settle(context, group)
            else:
                bury(context, group, f"empty for {shown_ms(CLEANUP_MS)} and without offsets")

    return {CONSUMER: Kind(expire), CLEANUP: Kind(clean_up)}


def heartbeat(context: Context, request: Request) -> Reply:
    """ConsumerGroupHeartbeat. An empty classic group makes way; one with members stays what it is."""
    name = request.body["GroupId"]
    group = context.groups.get(name)
    if isinstance(group, Group) and group.state is not State.EMPTY:
        check = Check(3, "group kind", GROUP_ID_NOT_FOUND, f"group {name} is a classic group and has members")
        return Reply({"ErrorCode": check.error, "ErrorMessage": check.why}, check)
    served = group if isinstance(group, ConsumerGroup) else _fresh(context, name)
    body, check = served.heartbeat(request.version, request.body, request.caller, context.now)
    if not served.fresh:
        if isinstance(group, Group):
            classic.bury(context, group, "a consumer group takes its place")
        context.groups[name] = served
        settle(context, served)
    return Reply(body, check)


def _fresh(context: Context, name: str) -> ConsumerGroup:
    return ConsumerGroup(
        name, context.settings, lambda: {} if context.topics is None else context.topics(), context.new_id
    )


def settle(context: Context, group: ConsumerGroup) -> None:
    """Passes the group's events on and waits for its next deadline."""
    context.events.extend(group.events())
    key = Key(CONSUMER, group.name)
    due = group.due
    if due is None:
        context.purgatory.end(key)
    elif context.purgatory.deadline(key) != due:
        context.purgatory.wait(key, due)
    unused = Key(CLEANUP, group.name)
    if group.members:
        context.purgatory.end(unused)
    elif unused not in context.purgatory:
        context.purgatory.wait(unused, context.now + CLEANUP_MS * MS)


def bury(context: Context, group: ConsumerGroup, why: str) -> None:
    """Takes the group away."""
    for kind in (CONSUMER, CLEANUP):
        context.purgatory.end(Key(kind, group.name))
    del context.groups[group.name]
    context.tell_of(group.name, "dead", why)
