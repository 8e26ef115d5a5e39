"""Consumer groups (KIP-848) at the coordinator: which group a heartbeat goes to, their deadlines, their events."""

from __future__ import annotations

from kwire.coordinator import classic
from kwire.coordinator.classic import CLEANUP_MS
from kwire.coordinator.codes import GROUP_ID_NOT_FOUND
from kwire.coordinator.consumer_group import ConsumerGroup
from kwire.coordinator.desk import Desk, Reply, Request, shown_ms
from kwire.coordinator.group import Group, State
from kwire.coordinator.purgatory import Kind
from kwire.coordinator.timers import Key
from kwire.coordinator.words import MS, Check

CONSUMER = "consumer"  # the operation that waits for a consumer group's next deadline
CLEANUP = "consumer cleanup"  # the one that takes away a group which holds nothing any more


def kinds(desk: Desk) -> dict[str, Kind]:
    """The purgatory's table."""

    def expire(key: Key, now: int) -> None:
        desk.now = max(desk.now, now)
        group = desk.groups.get(key.group)
        if isinstance(group, ConsumerGroup):
            group.tick(now)
            settle(desk, group)

    def clean_up(key: Key, now: int) -> None:
        desk.now = max(desk.now, now)
        group = desk.groups.get(key.group)
        if isinstance(group, ConsumerGroup) and not group.members:
            if desk.offsets.holds(key.group):
                settle(desk, group)
            else:
                bury(desk, group, f"empty for {shown_ms(CLEANUP_MS)} and without offsets")

    return {CONSUMER: Kind(expire), CLEANUP: Kind(clean_up)}


def heartbeat(desk: Desk, request: Request) -> Reply:
    """ConsumerGroupHeartbeat. An empty classic group makes way; one with members stays what it is."""
    name = request.body["GroupId"]
    group = desk.groups.get(name)
    if isinstance(group, Group) and group.state is not State.EMPTY:
        check = Check(3, "group kind", GROUP_ID_NOT_FOUND, f"group {name} is a classic group and has members")
        return Reply({"ErrorCode": check.error, "ErrorMessage": check.why}, check)
    served = group if isinstance(group, ConsumerGroup) else _fresh(desk, name)
    body, check = served.heartbeat(request.version, request.body, request.caller, desk.now)
    if not served.fresh:
        if isinstance(group, Group):
            classic.bury(desk, group, "a consumer group takes its place")
        desk.groups[name] = served
        settle(desk, served)
    return Reply(body, check)


def _fresh(desk: Desk, name: str) -> ConsumerGroup:
    return ConsumerGroup(name, desk.settings, lambda: {} if desk.topics is None else desk.topics(), desk.new_id)


def settle(desk: Desk, group: ConsumerGroup) -> None:
    """Passes the group's events on and waits for its next deadline."""
    desk.events.extend(group.events())
    key = Key(CONSUMER, group.name)
    due = group.due
    if due is None:
        desk.purgatory.end(key)
    elif desk.purgatory.deadline(key) != due:
        desk.purgatory.wait(key, due)
    unused = Key(CLEANUP, group.name)
    if group.members:
        desk.purgatory.end(unused)
    elif unused not in desk.purgatory:
        desk.purgatory.wait(unused, desk.now + CLEANUP_MS * MS)


def bury(desk: Desk, group: ConsumerGroup, why: str) -> None:
    """Takes the group away."""
    for kind in (CONSUMER, CLEANUP):
        desk.purgatory.end(Key(kind, group.name))
    del desk.groups[group.name]
    desk.tell_of(group.name, "dead", why)
