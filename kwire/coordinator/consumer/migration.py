"""Online migration (KIP-848): groups that change their protocol while their members go on.

Upgrade: the first member that comes to a classic group with ConsumerGroupHeartbeat turns it into a consumer group; the
others stay in it with the classic protocol, and here are their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.
Downgrade: when the last member of the consumer protocol goes, the group becomes a classic one, and rebalances. Both as
group.consumer.migration.policy allows. Rules: convertToConsumerGroup, convertToClassicGroup and the methods named
classicGroup…ToConsumerGroup of Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kwire.coordinator import classic, modern
from kwire.coordinator.bodies import Body
from kwire.coordinator.consumer import checks, protocol, seating
from kwire.coordinator.consumer.checks import JOIN
from kwire.coordinator.consumer.group import ConsumerGroup
from kwire.coordinator.consumer.members import ClassicTerms, ConsumerMember
from kwire.coordinator.consumer.reconciliation import Hold, MemberState
from kwire.coordinator.context import Context, CoordinatorRequest, Reply
from kwire.coordinator.group import CONSUMER, Group, GroupState, Member
from kwire.coordinator.join_request import JoinRequest
from kwire.coordinator.timers import Key
from kwire.coordinator.types import MS, Check
from kwire.schema import codes

UPGRADES: Final = ("bidirectional", "upgrade")
DOWNGRADES: Final = ("bidirectional", "downgrade")
NEEDS_MEMBER_ID: Final = 4  # JoinGroup version from which a dynamic member must come back with the id handed out


# ------------------------------------------------------------ upgrade


def upgraded(context: Context, group: Group) -> ConsumerGroup | Check:
    """The consumer group that a classic one with members becomes, not stored yet; or why it does not."""
    name, policy = group.id, context.settings.group_consumer_migration_policy
    most = context.settings.group_consumer_max_size
    why = None
    if policy not in UPGRADES:
        why = f"group {name} is classic and has members, and group.consumer.migration.policy is {policy}"
    elif group.protocol_type != CONSUMER:
        why = f"group {name} is classic, of protocol type {group.protocol_type}"
    elif len(group.members) > most:
        why = f"group {name} is classic and has {len(group.members):,} members, group.consumer.max.size is {most:,}"
    if why is not None:
        return Check(3, "group kind", codes.GROUP_ID_NOT_FOUND, why)
    if group.protocol is None:
        why = f"group {name} is classic, and its members have not agreed on a protocol yet"
        return Check(3, "group kind", codes.UNKNOWN_SERVER_ERROR, why)
    made = ConsumerGroup(name, context.settings_of(name), context.all_topics, context.new_id)
    made.fresh = False
    made.epoch = made.target_epoch = group.generation
    ids = {topic.name: topic.id for topic in context.all_topics().values()}
    for old in group.members.values():
        said = protocol.subscription(old.metadata(group.protocol))
        assigned = protocol.assignment(old.assignment, ids) if old.assignment else frozenset()
        if said is None or assigned is None:
            why = f"group {name} is classic; what member {old.id} said, or was given, is not of the consumer protocol"
            return Check(3, "group kind", codes.GROUP_ID_NOT_FOUND, why)
        _take_over(made, old, said, assigned, group.generation, context.now)
    made.topics.refresh()
    return made


def _take_over(
    made: ConsumerGroup, old: Member, said: protocol.Subscription, assigned: frozenset[Any], epoch: int, now: int
) -> None:
    member = ConsumerMember(
        old.id, old.instance_id, said.rack, old.rebalance_timeout_ms, old.client_id, old.client_host
    )
    member.classic = ClassicTerms(old.session_timeout_ms, old.protocols)
    member.names, member.heard = frozenset(said.topics), now
    member.hold = Hold(MemberState.STABLE, epoch, epoch, dict.fromkeys(assigned, epoch), {})
    target: dict[Any, set[int]] = {}
    for topic, partition in assigned:
        target.setdefault(topic, set()).add(partition)
    made.targets[member.id] = {topic: frozenset(partitions) for topic, partitions in target.items()}
    made.roster.put(member)
    made.reconciled.add(member.id)
    made.topics.rename((), member.names)
    _expect(made, member, now)


def replace_classic(context: Context, group: Group, made: ConsumerGroup) -> None:
    """The consumer group takes the classic one's place: who waits there is to join again."""
    classic.bury(context, group, "it becomes a consumer group", codes.REBALANCE_IN_PROGRESS)
    context.groups[made.name] = made


def _expect(group: ConsumerGroup, member: ConsumerMember, now: int) -> None:
    """The next sign of life is due in the session timeout that the member's JoinGroup named."""
    assert member.classic is not None
    group.timers.set(Key(seating.SESSION, group.name, member.id), now + member.classic.session_timeout_ms * MS)


def _await_join(group: ConsumerGroup, member: ConsumerMember, now: int) -> None:
    key = Key(seating.JOINING, group.name, member.id)
    if key not in group.timers:
        group.timers.set(key, now + max(member.rebalance_timeout_ms, 0) * MS)


# ------------------------------------------------------------ members of the classic protocol in a consumer group


def join(context: Context, request: CoordinatorRequest, group: ConsumerGroup, asked: JoinRequest) -> Reply:
    """JoinGroup: answered at once, with the member's epoch for a generation."""
    group.configure(context.settings_of(group.name))
    refused = _refuse_join(context, request, group, asked)
    if refused is not None:
        return refused
    said = protocol.subscription(asked.protocols[0][1])
    if said is None:
        return _unjoined(codes.INCONSISTENT_GROUP_PROTOCOL, "protocol", "its subscription cannot be read", asked.member)
    body = {
        "MemberId": asked.member or context.new_id(asked.instance or request.caller.client_id),
        "InstanceId": asked.instance,
        "RackId": said.rack,
        "MemberEpoch": 1 if asked.member in group.members else JOIN,
        "RebalanceTimeoutMs": asked.rebalance_ms,
        "SubscribedTopicNames": said.topics,
        "SubscribedTopicRegex": "",
    }
    last = group.roster.static(asked.instance)
    downgrades = (
        last is not None and last.classic is None and group.left_classic({last.id}) and _may_downgrade(context, group)
    )
    ids = {topic.name: topic.id for topic in context.all_topics().values()}
    owned = frozenset((ids[name], index) for name, index in said.owned if name in ids)
    member = group.join_classic(
        body, ClassicTerms(asked.session_ms, asked.protocols), owned, request.caller, context.now, downgrades
    )
    name = asked.protocols[0][0]
    answer = {
        "ErrorCode": codes.NONE, "MemberId": member.id, "GenerationId": member.hold.epoch, "ProtocolType": CONSUMER,
        "ProtocolName": name, "Leader": "", "Members": [],
    }  # fmt: skip
    if downgrades:
        downgrade(context, group, f"member {member.id} took the last one's place", group.target_epoch < group.epoch)
    else:
        group.timers.discard(Key(seating.JOINING, group.name, member.id))
        _expect(group, member, context.now)
        group.timers.set(Key(seating.SYNCING, group.name, member.id), context.now + max(asked.rebalance_ms, 0) * MS)
        modern.settle(context, group)
    why = f"a member of the classic protocol, at epoch {member.hold.epoch}"
    return Reply(answer, Check(0, "joined", codes.NONE, why))


def _refuse_join(
    context: Context, request: CoordinatorRequest, group: ConsumerGroup, asked: JoinRequest
) -> Reply | None:
    settings = context.settings
    if settings.group_consumer_migration_policy == "disabled":
        why = f"group {group.name} is a consumer group, and group.consumer.migration.policy is disabled"
        return _unjoined(codes.INCONSISTENT_GROUP_PROTOCOL, "group kind", why, asked.member)
    if len(group.members) >= settings.group_consumer_max_size and asked.member not in group.members:
        why = f"{len(group.members):,} members, group.consumer.max.size is {settings.group_consumer_max_size:,}"
        return _unjoined(codes.GROUP_MAX_SIZE_REACHED, "size", why, asked.member)
    names = asked.names
    if asked.protocol_type != CONSUMER or not group.supports_classic(names):
        why = f"protocol type {asked.protocol_type} with {', '.join(names) or 'no protocols'}: not what the others have"
        return _unjoined(codes.INCONSISTENT_GROUP_PROTOCOL, "protocol", why, asked.member)
    if not asked.member and asked.instance is None and request.version >= NEEDS_MEMBER_ID:
        why = f"JoinGroup v{request.version} without a member id; it must come back with the id that it was given"
        return _unjoined(codes.MEMBER_ID_REQUIRED, "member id", why, context.new_id(request.caller.client_id))
    if asked.instance is not None and asked.member:
        check = checks.check_instance(group.roster.static(asked.instance), asked.member, asked.instance)
        if check is not None:
            return Reply(classic.unjoined_body(check.error, asked.member), check)
    return None


def _unjoined(error: int, name: str, why: str, member: str) -> Reply:
    return Reply(classic.unjoined_body(error, member), Check(0, name, error, why))


def _classic_member(group: ConsumerGroup, body: Mapping[str, Any]) -> ConsumerMember | Check:
    """Who asks, if it is a member of the classic protocol at the generation that it names."""
    member_id, instance = body["MemberId"], body.get("GroupInstanceId")
    member = group.members.get(member_id)
    if instance is not None:
        member = group.roster.static(instance)
        check = checks.check_instance(member, member_id, instance)
        if check is not None:
            return check
    if member is None:
        return checks.unknown_member(group.name, member_id)
    if member.classic is None:
        return Check(5, "member", codes.UNKNOWN_MEMBER_ID, f"{member_id} does not use the classic protocol")
    if body["GenerationId"] != member.hold.epoch:
        why = f"generation {body['GenerationId']}, the member's epoch is {member.hold.epoch}"
        return Check(8, "generation", codes.ILLEGAL_GENERATION, why)
    return member


def sync(context: Context, request: CoordinatorRequest, group: ConsumerGroup) -> Reply:
    """SyncGroup: what the member has been given."""
    member = _classic_member(group, request.body)
    if isinstance(member, Check):
        return Reply({"ErrorCode": member.error}, member)
    assert member.classic is not None
    name, metadata = member.classic.protocols[0]
    for field, own in (("ProtocolType", CONSUMER), ("ProtocolName", name)):
        given = request.body.get(field)
        if given is not None and given != own:
            why = f"{field} {given}, the member's is {own}"
            return Reply(
                {"ErrorCode": codes.INCONSISTENT_GROUP_PROTOCOL},
                Check(0, "protocol", codes.INCONSISTENT_GROUP_PROTOCOL, why),
            )
    if group.target_epoch > member.hold.epoch and member.hold.state is not MemberState.UNREVOKED_PARTITIONS:
        _await_join(group, member, context.now)
        modern.settle(context, group)
        return _rebalancing(f"the target is of epoch {group.target_epoch}, the member is at {member.hold.epoch}")
    group.timers.discard(Key(seating.SYNCING, group.name, member.id))
    _expect(group, member, context.now)
    modern.settle(context, group)
    topics = {topic.id: topic.name for topic in context.all_topics().values()}
    body: Body = {
        "ErrorCode": codes.NONE, "ProtocolType": request.body.get("ProtocolType"),
        "ProtocolName": request.body.get("ProtocolName"),
        "Assignment": protocol.assigned(member.hold.assigned, topics, protocol.version_of(metadata)),
    }  # fmt: skip
    return Reply(body, Check(0, "synced", codes.NONE, f"what member {member.id} has at epoch {member.hold.epoch}"))


def _rebalancing(why: str) -> Reply:
    error = codes.REBALANCE_IN_PROGRESS
    return Reply({"ErrorCode": error}, Check(9, "state", error, f"{why}: it must join again"))


def heartbeat(context: Context, request: CoordinatorRequest, group: ConsumerGroup) -> Reply:
    member = _classic_member(group, request.body)
    if isinstance(member, Check):
        return Reply({"ErrorCode": member.error}, member)
    hold = member.hold
    _expect(group, member, context.now)
    member.heard = context.now
    unreleased = hold.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member)
    if hold.epoch < group.target_epoch or hold.state is MemberState.UNREVOKED_PARTITIONS or unreleased:
        _await_join(group, member, context.now)
        modern.settle(context, group)
        return _rebalancing(
            f"the member is {hold.state.value} at epoch {hold.epoch}, the target is {group.target_epoch}"
        )
    modern.settle(context, group)
    return Reply({"ErrorCode": codes.NONE}, Check(9, "state", codes.NONE, f"epoch {hold.epoch} stands"))


def leave(context: Context, group: ConsumerGroup, member_id: str, instance: str | None, reason: str) -> int:
    """One member of a LeaveGroup, of either protocol."""
    member = group.members.get(member_id)
    if instance is not None:
        member = group.roster.static(instance)
        check = checks.check_instance(member, member_id or (member.id if member else ""), instance)
        if check is not None:
            return check.error
    if member is None:
        return codes.UNKNOWN_MEMBER_ID
    group.remove(member, context.now, "left", f"of its own will; reason: {reason}", {"reason": reason})
    return codes.NONE


# ------------------------------------------------------------ downgrade


def _may_downgrade(context: Context, group: ConsumerGroup) -> bool:
    policy, most = context.settings.group_consumer_migration_policy, context.settings.group_max_size
    return policy in DOWNGRADES and len(group.members) <= most


def settle(context: Context, group: ConsumerGroup, why: str = "the others are gone") -> None:
    """After a while, or after members have gone: a group in which all that are left use the classic protocol becomes a
    classic one."""
    before, group.epoch_before = group.epoch_before, None
    if before is not None and group.members and group.left_classic(()) and _may_downgrade(context, group):
        group.epoch = before  # the next generation comes with the classic group's rebalance
        downgrade(context, group, why, rebalance=True)
    else:
        modern.settle(context, group)


def downgrade(context: Context, group: ConsumerGroup, why: str, rebalance: bool) -> None:
    """The consumer group's place is taken by a classic one of the same members, with what they are to have."""
    context.events.extend(group.events())
    modern.forget(context, group)
    made = classic.new_group(context, group.name)
    made.state, made.generation, made.protocol_type = GroupState.STABLE, group.epoch, CONSUMER
    topics = {topic.id: topic.name for topic in context.all_topics().values()}
    for member in group.members.values():
        assert member.classic is not None
        terms = member.classic
        made.add(
            Member(
                member.id, member.instance, member.client_id, member.client_host, terms.session_timeout_ms,
                member.rebalance_timeout_ms, CONSUMER, terms.protocols,
            )
        )  # fmt: skip
    made.protocol = made.select_protocol()
    for each in made.members.values():
        target = group.targets.get(each.id, {})
        held = [(topic, index) for topic, found in target.items() for index in found]
        each.assignment = protocol.assigned(held, topics, protocol.version_of(each.metadata(made.protocol)))
        classic.keep_alive(context, made, each, "downgrade")
    context.tell(made, "generation", f"the group becomes a classic one: {why}")
    if rebalance:
        classic.prepare(context, made, why, None, "downgrade")
