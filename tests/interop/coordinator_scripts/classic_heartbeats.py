"""Heartbeats in every state, sessions that end, members that leave."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator_lab import Member

if TYPE_CHECKING:
    from coordinator_lab import Lab


async def heartbeat_refused(lab: Lab) -> None:
    """Heartbeats of no group id, an unknown group, an unknown member, with wrong generations, in an empty group."""
    ghost = Member("a", id="ghost", generation=1)
    await lab.heartbeat(ghost, GroupId="")
    await lab.heartbeat(ghost)
    await lab.heartbeat(Member("a"))
    (a,) = await lab.stable("a")
    await lab.heartbeat(a)
    await lab.heartbeat(ghost)
    await lab.heartbeat(a, GenerationId=a.generation + 1)
    await lab.heartbeat(a, GenerationId=a.generation - 1)
    await lab.heartbeat(a, GenerationId=-1)
    await lab.heartbeat(ghost, GenerationId=9)
    await lab.heartbeat(a, MemberId="")
    await lab.leave("a", a)
    await lab.heartbeat(a)
    await lab.heartbeat(ghost)
    await lab.look()


async def heartbeat_while_preparing(lab: Lab) -> None:
    """In PreparingRebalance: of a member that has joined again, of one that has not, wrong generation, no member."""
    leader, follower = await lab.stable("a", "b")
    joining = await lab.join(leader)
    await lab.look()
    await lab.heartbeat(follower)
    await lab.heartbeat(leader, "a-beside")
    await lab.heartbeat(follower, GenerationId=follower.generation + 1)
    await lab.heartbeat(follower, MemberId="ghost")
    await lab.heartbeat(follower, MemberId="ghost", GenerationId=99)
    await lab.settle([leader, follower], [joining, await lab.join(follower)])


async def heartbeat_while_completing(lab: Lab) -> None:
    """In CompletingRebalance: of a member that has synced, of one that has not, wrong generation, unknown member."""
    a, b = await lab.new("a"), await lab.new("b")
    for member, answer in zip((a, b), await asyncio.gather(await lab.join(a), await lab.join(b)), strict=True):
        member.generation = answer["GenerationId"]
    await lab.heartbeat(a)
    await lab.heartbeat(b)
    waiting = await lab.sync(b)
    await lab.heartbeat(b, "b-beside")
    await lab.look()
    await lab.heartbeat(a, GenerationId=a.generation - 1)
    await lab.heartbeat(a, MemberId="ghost")
    await lab.commit(a)
    await (await lab.sync(a, all_of=[a, b]))
    await waiting
    await lab.heartbeat(a)


async def session_ends(lab: Lab) -> None:
    """A member of two is silent for longer than its session timeout: evicted; a late heartbeat and a late commit."""
    leader, follower = await lab.stable("a", "b", SessionTimeoutMs=6_000)
    await lab.heartbeat(follower)
    for _ in range(5):
        await asyncio.sleep(1)
        await lab.heartbeat(leader)
    await lab.look()
    await asyncio.sleep(1.4)
    await lab.look()
    await lab.heartbeat(leader)
    await lab.heartbeat(follower)
    await lab.commit(follower)
    await lab.settle([leader], [await lab.join(leader, SessionTimeoutMs=6_000)])
    await lab.heartbeat(follower)
    await lab.commit(follower)
    await (await lab.sync(follower))
    await (await lab.join(follower, SessionTimeoutMs=6_000))
    await lab.look()


async def session_ends_alone(lab: Lab) -> None:
    """The only member's session ends: the group is empty and keeps its offsets; late heartbeat and commit."""
    (a,) = await lab.stable("a", SessionTimeoutMs=6_000)
    await lab.commit(a)
    await asyncio.sleep(5.5)
    await lab.look()
    await asyncio.sleep(1.1)
    await lab.look()
    await lab.commit(a)
    await lab.heartbeat(a)
    await lab.fetch("a")


async def leader_session_ends(lab: Lab) -> None:
    """The leader's session ends: the follower leads the next generation."""
    leader, follower = await lab.stable("a", "b", SessionTimeoutMs=6_000)
    for _ in range(7):
        await asyncio.sleep(0.9)
        await lab.heartbeat(follower)
    await lab.settle([follower], [await lab.join(follower, SessionTimeoutMs=6_000)])
    await lab.heartbeat(leader)
    await lab.look()


async def what_keeps_a_session(lab: Lab) -> None:
    """A commit, a sync and a heartbeat keep a session; a refused heartbeat and an offset fetch do not."""
    by_commit, by_refused = await lab.stable("a", "b", SessionTimeoutMs=6_000)
    await asyncio.sleep(4)
    await lab.commit(by_commit)
    await lab.heartbeat(by_refused, GenerationId=99)
    await lab.fetch("b")
    await asyncio.sleep(2.7)
    await lab.look()
    await lab.heartbeat(by_commit)
    await lab.heartbeat(by_refused)
    await lab.settle([by_commit], [await lab.join(by_commit, SessionTimeoutMs=6_000)])
    await asyncio.sleep(4)
    await (await lab.sync(by_commit))
    await asyncio.sleep(3)
    await lab.heartbeat(by_commit)
    await lab.look()


async def heartbeats_while_rebalancing_keep(lab: Lab) -> None:
    """A heartbeat answered REBALANCE_IN_PROGRESS keeps the session: only the rebalance timeout ends the wait."""
    times = {"SessionTimeoutMs": 6_000, "RebalanceTimeoutMs": 9_000}
    leader, follower = await lab.stable("a", "b", **times)
    waiting = await lab.join(leader, **times)
    for _ in range(4):
        await asyncio.sleep(2)
        await lab.heartbeat(follower)
    await lab.settle([leader], [waiting])
    await lab.heartbeat(follower)


async def leave_single(lab: Lab) -> None:
    """LeaveGroup below v3: a member, the same again, an unknown group; the last one leaves an empty group."""
    leader, follower = await lab.stable("a", "b")
    version = 2
    for client, member_id in (("b", follower.id), ("b", follower.id), ("b", "ghost")):
        await lab.ask(client, "LeaveGroup", version, {"GroupId": lab.group, "MemberId": member_id})
        await lab.look()
    await lab.heartbeat(leader)
    await lab.ask("a", "LeaveGroup", version, {"GroupId": lab.group, "MemberId": leader.id})
    await lab.look()
    await lab.ask("a", "LeaveGroup", version, {"GroupId": lab.group, "MemberId": leader.id})
    await lab.ask("a", "LeaveGroup", version, {"GroupId": "no-such-group", "MemberId": "x"})
    await lab.ask("a", "LeaveGroup", version, {"GroupId": "", "MemberId": "x"})


async def leave_batch(lab: Lab) -> None:
    """LeaveGroup v3 and later: several members at once, an unknown one among them, nobody, an unknown group."""
    members = await lab.stable("a", "b", "c")
    await lab.leave("x", members[1], Member("x", id="ghost"), members[2])
    await lab.look()
    await lab.settle(members[:1], [await lab.join(members[0])])
    await lab.leave("x")
    await lab.leave("x", Member("x", id="", instance="nobody"))
    await lab.ask("x", "LeaveGroup", None, {"GroupId": "no-such-group", "Members": [{"MemberId": "x"}]})
    await lab.leave("x", members[0])
    await lab.look()
    await lab.leave("x", members[0])


async def leave_while_joining(lab: Lab) -> None:
    """The member that a rebalance waits for leaves: the rebalance ends at once. One that waits itself leaves."""
    leader, follower = await lab.stable("a", "b")
    waiting = await lab.join(leader)
    await lab.leave("b", follower)
    await lab.settle([leader], [waiting])
    c, d = await lab.new("c"), await lab.new("d")
    joins = [await lab.join(c), await lab.join(d)]
    await lab.leave("x", d)
    last = await lab.join(leader)
    await joins[1]
    await lab.settle([leader, c], [last, joins[0]])
    await lab.look()


async def leave_while_syncing(lab: Lab) -> None:
    """The leader leaves while a follower waits in SyncGroup: REBALANCE_IN_PROGRESS for the follower."""
    a, b = await lab.new("a"), await lab.new("b")
    for member, answer in zip((a, b), await asyncio.gather(await lab.join(a), await lab.join(b)), strict=True):
        member.generation = answer["GenerationId"]
    waiting = await lab.sync(b)
    await lab.leave("x", a)
    await waiting
    await lab.settle([b], [await lab.join(b)])


async def group_authorization(lab: Lab) -> None:
    """Nobody may do anything with the group: GROUP_AUTHORIZATION_FAILED, also for members that do not exist."""
    await lab.deny()
    ghost = Member("a", id="ghost", generation=1)
    await (await lab.join(Member("a")))
    await (await lab.sync(ghost))
    await lab.heartbeat(ghost)
    await lab.leave("a", ghost)
    await lab.commit(ghost)
    await lab.fetch("a")
    await lab.look()
    await lab.delete()


async def no_offsets_topic(lab: Lab) -> None:
    """A broker that is coordinator of no group yet: its __consumer_offsets has not been made."""
    ghost = Member("a", id="ghost", generation=1)
    await (await lab.join(Member("a")))
    await (await lab.join(Member("a"), GroupId=""))
    await (await lab.sync(ghost))
    await lab.heartbeat(ghost)
    await lab.leave("a", ghost)
    await lab.commit(ghost)
    await lab.fetch("a")
    await lab.ask("a", "DescribeGroups", 5, {"Groups": [lab.group]})
    await lab.delete()
