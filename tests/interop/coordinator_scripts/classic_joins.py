"""Joining, syncing and rejoining in a classic group."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from coordinator_lab import Member, protocol

if TYPE_CHECKING:
    from coordinator_lab import Lab


async def first_join(lab: Lab) -> None:
    """A first member gets its id with MEMBER_ID_REQUIRED, joins, syncs, heartbeats, commits and leaves."""
    await lab.look()
    member = await lab.new("a")
    await lab.look()
    pending = await lab.join(member)
    await lab.look()
    joined = await pending
    member.generation = joined["GenerationId"]
    await lab.look()
    await (await lab.sync(member, all_of=[member]))
    await lab.look()
    await lab.heartbeat(member)
    await lab.commit(member)
    await lab.fetch("a")
    await lab.leave("a", member)
    await lab.look()


async def two_within_delay(lab: Lab) -> None:
    """Two members join within the initial rebalance delay: one generation holds both; the follower's sync waits."""
    a, b = await lab.new("a"), await lab.new("b")
    joins = [await lab.join(a), await lab.join(b)]
    for member, answer in zip((a, b), await asyncio.gather(*joins), strict=True):
        member.generation = answer["GenerationId"]
    waiting = await lab.sync(b)
    await asyncio.sleep(0.5)
    await lab.look()
    await (await lab.sync(a, all_of=[a, b]))
    await waiting
    await lab.look()


async def delay_extended(lab: Lab) -> None:
    """Each new member within the initial delay prolongs it, up to the rebalance timeout."""
    members = [Member(name) for name in "abc"]
    joins = []
    for member in members:
        member.id = (await lab.new(member.client)).id
        joins.append(await lab.join(member))
        await asyncio.sleep(0.4)
    await lab.settle(members, joins)
    await lab.look()


async def third_joins(lab: Lab) -> None:
    """A third member joins a stable group: heartbeats of the others say REBALANCE_IN_PROGRESS, they rejoin."""
    leader, follower = await lab.stable("a", "b")
    await lab.heartbeat(leader)
    third = await lab.new("c")
    await lab.heartbeat(leader)
    joining = await lab.join(third)
    await lab.look()
    await lab.heartbeat(leader)
    await lab.heartbeat(follower)
    joins = [await lab.join(leader), await lab.join(follower), joining]
    await lab.settle([leader, follower, third], joins)
    for member in (leader, follower, third):
        await lab.heartbeat(member)
    await lab.look()


async def leader_rejoins(lab: Lab) -> None:
    """The leader of a stable group joins again with the same metadata: that alone begins a rebalance."""
    leader, follower = await lab.stable("a", "b")
    again = await lab.join(leader)
    await lab.heartbeat(follower)
    await lab.settle([leader, follower], [again, await lab.join(follower)])
    await lab.look()


async def follower_rejoins_same(lab: Lab) -> None:
    """A follower of a stable group joins again with the same metadata: the current generation at once, no rebalance."""
    leader, follower = await lab.stable("a", "b")
    await (await lab.join(follower))
    await lab.heartbeat(leader)
    await (await lab.sync(follower))
    await lab.look()


async def follower_rejoins_changed(lab: Lab) -> None:
    """A follower of a stable group joins again with other metadata: a rebalance."""
    leader, follower = await lab.stable("a", "b")
    again = await lab.join(follower, Protocols=[protocol("range", "another subscription")])
    await lab.heartbeat(leader)
    await lab.settle([leader, follower], [await lab.join(leader), again])
    await lab.look()


async def rejoin_before_sync(lab: Lab) -> None:
    """In CompletingRebalance: joining again with the same metadata gives the same answer, with others a rebalance."""
    a, b = await lab.new("a"), await lab.new("b")
    joins = [await lab.join(a), await lab.join(b)]
    for member, answer in zip((a, b), await asyncio.gather(*joins), strict=True):
        member.generation = answer["GenerationId"]
    await (await lab.join(b))
    await (await lab.join(a))
    await lab.look()
    changed = await lab.join(b, Protocols=[protocol("range", "another subscription")])
    await lab.heartbeat(a)
    await lab.look()
    await lab.settle([a, b], [await lab.join(a), changed])


async def sync_interrupted(lab: Lab) -> None:
    """A follower waits in SyncGroup when a new member begins the next rebalance: REBALANCE_IN_PROGRESS."""
    a, b = await lab.new("a"), await lab.new("b")
    for member, answer in zip((a, b), await asyncio.gather(await lab.join(a), await lab.join(b)), strict=True):
        member.generation = answer["GenerationId"]
    waiting = await lab.sync(b)
    c = await lab.new("c")
    joining = await lab.join(c)
    await waiting
    await (await lab.sync(a, all_of=[a, b]))
    await lab.settle([a, b, c], [await lab.join(a), await lab.join(b), joining])


async def sync_refused(lab: Lab) -> None:
    """SyncGroup of an unknown group, an unknown member, with a wrong generation, a wrong protocol; twice."""
    ghost = Member("a", id="ghost", generation=1)
    await (await lab.sync(ghost))
    (a,) = await lab.stable("a")
    await (await lab.sync(ghost))
    await (await lab.sync(a, GenerationId=a.generation + 1))
    await (await lab.sync(a, GenerationId=a.generation - 1))
    await (await lab.sync(a, ProtocolName="roundrobin"))
    await (await lab.sync(a, ProtocolType="connect"))
    await (await lab.sync(a, ProtocolType=None, ProtocolName=None))
    await (await lab.sync(a))
    await (await lab.sync(a, all_of=[a, ghost]))
    await (await lab.sync(a, GroupId=""))


async def join_refused(lab: Lab) -> None:
    """JoinGroup with session timeouts of 5 ms and 2 h, no group id, no protocols, unknown ids, other protocol types."""
    new = Member("a")
    await (await lab.join(new, SessionTimeoutMs=5))
    await (await lab.join(new, SessionTimeoutMs=7_200_000))
    await (await lab.join(new, SessionTimeoutMs=5_999))
    await (await lab.join(new, SessionTimeoutMs=1_800_001))
    await (await lab.join(new, GroupId=""))
    await (await lab.join(new, Protocols=[]))
    await (await lab.join(new, ProtocolType=""))
    await (await lab.join(Member("a", id="ghost")))
    await lab.look()
    (a,) = await lab.stable("a")
    await (await lab.join(Member("b", id="ghost")))
    await (await lab.join(Member("b"), ProtocolType="connect"))
    await (await lab.join(Member("b"), Protocols=[protocol("roundrobin", "")]))
    await (await lab.join(Member("b"), Protocols=[]))
    await (await lab.join(a, Protocols=[protocol("roundrobin", "")]))
    await lab.look()


async def protocol_selection(lab: Lab) -> None:
    """The protocol that all members have and most of them prefer is chosen; changes with who is there."""
    wishes = {"a": ["sticky", "range"], "b": ["range", "sticky", "roundrobin"], "c": ["range", "sticky"]}

    def fields(client: str) -> dict[str, Any]:
        return {"Protocols": [protocol(name, f"{name} of {client}") for name in wishes[client]]}

    members = [await lab.new(client, **fields(client)) for client in wishes]
    joins = [await lab.join(member, **fields(member.client)) for member in members]
    await asyncio.gather(*joins)
    await lab.look()
    await lab.leave("b", members[1])
    await lab.leave("c", members[2])
    await (await lab.join(members[0], **fields("a")))
    await lab.look()


async def old_versions(lab: Lab) -> None:
    """JoinGroup below v4 hands out the id with the join itself; the oldest version of each request."""
    low = {api: lab.versions[api][0] for api in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetFetch")}
    commit = max(1, lab.versions["OffsetCommit"][0])
    for version in range(low["JoinGroup"], 4):
        member = Member("a")
        joined = await (await lab.join(member, version))
        member.id, member.generation = joined["MemberId"], joined["GenerationId"]
        await (await lab.sync(member, low["SyncGroup"], all_of=[member]))
        plain = {"GroupId": lab.group, "GenerationId": member.generation, "MemberId": member.id}
        await lab.ask("a", "Heartbeat", low["Heartbeat"], plain)
        await lab.commit(member, commit)
        await lab.fetch("a", max(1, low["OffsetFetch"]))
        await lab.ask("a", "LeaveGroup", low["LeaveGroup"], {"GroupId": lab.group, "MemberId": member.id})
        await lab.ask("a", "Heartbeat", low["Heartbeat"], plain)


async def old_versions_two(lab: Lab) -> None:
    """Two members with JoinGroup v3: both wait out the initial delay; a third comes later, one misses the rebalance."""
    a, b, c = Member("a"), Member("b"), Member("c")
    await lab.settle([a, b], [await lab.join(a, 3), await lab.join(b, 3)])
    joining = await lab.join(c, 3)
    await lab.heartbeat(a)
    joins = [await lab.join(a, 3), joining]
    await lab.settle([a, c], joins)
    await lab.heartbeat(b)
    await lab.look()


async def pending_member(lab: Lab) -> None:
    """A member id that was handed out and not used holds a rebalance up until it joins or its session ends."""
    a = await lab.new("a")
    b = await lab.new("b", SessionTimeoutMs=6_000)
    first = await lab.join(a)
    await lab.settle([a], [first])
    await lab.look()
    await lab.heartbeat(Member("b", id=b.id, generation=a.generation))
    again = await lab.join(a)
    await lab.settle([a], [again])
    await lab.heartbeat(a)
    await asyncio.sleep(2)
    await lab.heartbeat(a)
    await (await lab.join(b, SessionTimeoutMs=6_000))


async def pending_member_leaves(lab: Lab) -> None:
    """A member id that was handed out leaves unused; after that it is unknown."""
    a, b = await lab.new("a"), await lab.new("b")
    waiting = await lab.join(a)
    await lab.leave("b", b)
    await lab.leave("b", b)
    await (await lab.join(b))
    await lab.settle([a], [waiting])


async def group_full(lab: Lab) -> None:
    """group.max.size is reached: GROUP_MAX_SIZE_REACHED for the next one, before and after the group is stable."""
    members = [await lab.new(client) for client in "abcd"]
    extra = Member("e")
    first = await lab.join(extra)
    joins = [await lab.join(member) for member in members]
    answer = await first
    if answer["ErrorCode"] == 79:
        extra.id = answer["MemberId"]
        await (await lab.join(extra))
    await lab.settle(members, joins)
    await (await lab.join(Member("f")))


async def late_joiner(lab: Lab) -> None:
    """A member rejoins late within the rebalance timeout: the others wait for it, then all go on together."""
    leader, follower = await lab.stable("a", "b")
    third = await lab.new("c")
    joins = [await lab.join(third), await lab.join(leader)]
    await asyncio.sleep(2.5)
    await lab.heartbeat(follower)
    joins.append(await lab.join(follower))
    await lab.settle([third, leader, follower], joins)


async def rebalance_timeout(lab: Lab) -> None:
    """A member heartbeats but never rejoins: after the rebalance timeout the others go on without it."""
    leader, follower = await lab.stable("a", "b", RebalanceTimeoutMs=2_000)
    third = await lab.new("c", RebalanceTimeoutMs=2_000)
    joins = [await lab.join(third, RebalanceTimeoutMs=2_000), await lab.join(leader, RebalanceTimeoutMs=2_000)]
    for _ in range(3):
        await lab.heartbeat(follower)
        await asyncio.sleep(0.5)
    await asyncio.sleep(0.7)
    await lab.settle([third, leader], joins)
    await lab.heartbeat(follower)
    await lab.commit(follower)
    await (await lab.join(follower))
    await lab.look()


async def leader_misses_rebalance(lab: Lab) -> None:
    """The leader never rejoins: another member leads the next generation."""
    leader, follower = await lab.stable("a", "b", RebalanceTimeoutMs=2_000)
    joins = [await lab.join(follower, RebalanceTimeoutMs=2_000, Protocols=[protocol("range", "new")])]
    await lab.heartbeat(leader)
    await lab.settle([follower], joins)
    await lab.heartbeat(leader)
    await lab.look()


async def leader_never_syncs(lab: Lab) -> None:
    """The leader does not sync within the rebalance timeout: the group prepares another rebalance without it."""
    a, b = await lab.new("a", RebalanceTimeoutMs=2_000), await lab.new("b", RebalanceTimeoutMs=2_000)
    joins = [await lab.join(a, RebalanceTimeoutMs=2_000), await lab.join(b, RebalanceTimeoutMs=2_000)]
    for member, answer in zip((a, b), await asyncio.gather(*joins), strict=True):
        member.generation = answer["GenerationId"]
    answer = await (await lab.sync(b))
    await lab.look()
    await lab.settle([b], [await lab.join(b, RebalanceTimeoutMs=2_000)])
    await lab.heartbeat(a)
    await lab.look()


async def join_waits_beyond_session(lab: Lab) -> None:
    """A member that waits for its JoinGroup answer longer than its session timeout is not evicted."""
    slow = {"RebalanceTimeoutMs": 8_000, "SessionTimeoutMs": 6_000}
    leader, follower = await lab.stable("a", "b", **slow)
    waiting = await lab.join(leader, **slow)
    await asyncio.sleep(3)
    await lab.heartbeat(follower)
    await asyncio.sleep(3.7)
    await lab.heartbeat(follower)
    await lab.settle([leader, follower], [waiting, await lab.join(follower, **slow)])
