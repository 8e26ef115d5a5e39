"""A classic group as the record that Kafka keeps of it: of the last generation that was whole; and the group again.

A group that comes back is in that generation, and its members have a whole session to be heard of. Record:
newGroupMetadataRecord; what follows its loading: GroupMetadataManager.replay and onLoaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kwire.coordinator import classic
from kwire.coordinator.context import Context
from kwire.coordinator.group import Group, GroupState, Member
from kwire.coordinator.stored_records import Fields, RecordKey, Rows
from kwire.coordinator.types import MS

KINDS: Final = {"Metadata": 2}  # the number that a record's key begins with


def stored(group: Group, kind: str) -> dict[RecordKey, Fields | None]:  # noqa: ARG001
    """Nothing of a group that only has offsets; None while it rebalances: what was stored before stays."""
    if group.state is GroupState.EMPTY and not group.generation:
        return {}
    if group.state not in (GroupState.EMPTY, GroupState.STABLE):
        return {(group.id,): None}
    return {(group.id,): {
        "ProtocolType": group.protocol_type or "", "Generation": group.generation, "Protocol": group.protocol,
        "Leader": group.leader, "CurrentStateTimestamp": group.since // MS,
        "Members": [_row(member, group.protocol) for member in group.members.values()],
    }}  # fmt: skip


def _row(member: Member, protocol: str | None) -> Fields:
    return {
        "MemberId": member.id, "GroupInstanceId": member.instance_id, "ClientId": member.client_id,
        "ClientHost": member.client_host, "RebalanceTimeout": member.rebalance_timeout_ms,
        "SessionTimeout": member.session_timeout_ms, "Subscription": member.metadata(protocol),
        "Assignment": member.assignment,
    }  # fmt: skip


def revive(context: Context, name: str, found: Mapping[str, Rows]) -> None:
    """The group takes its place at the coordinator."""
    fields = found["Metadata"][name,]
    group = classic.new_group(context, name)
    group.generation, group.protocol, group.leader = fields["Generation"], fields["Protocol"], fields["Leader"]
    since = fields.get("CurrentStateTimestamp", -1)
    if since >= 0:
        group.since = since * MS
    for row in fields["Members"]:
        session, rebalance = row["SessionTimeout"], row.get("RebalanceTimeout", -1)
        protocols = ((group.protocol or "", row["Subscription"]),)
        member = Member(
            row["MemberId"], row.get("GroupInstanceId"), row["ClientId"], row["ClientHost"], session,
            session if rebalance < 0 else rebalance, fields["ProtocolType"], protocols, row["Assignment"],
        )  # fmt: skip
        group.add(member)
        classic.keep_alive(context, group, member, "the group was loaded")
    group.protocol_type = fields["ProtocolType"] or None
    group.topics = group.subscribed()
    if not group.members:
        classic.clean_up_later(context, group)
        return
    group.before, group.state = GroupState.COMPLETING, GroupState.STABLE
    if len(group.members) > context.settings.group_max_size:
        classic.prepare(context, group, "it was loaded, and has more members than it may have", None, "loaded")
