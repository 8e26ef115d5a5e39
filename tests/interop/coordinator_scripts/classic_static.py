"""Static members (KIP-345): restarts without a rebalance, fencing, leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from coordinator_lab import Member, protocol

if TYPE_CHECKING:
    from coordinator_lab import Lab


async def _stable(lab: Lab, *clients: str, **fields: Any) -> list[Member]:
    """A stable group of static members, the leader first."""
    members = [Member(client, instance=f"instance-{client}") for client in clients]
    leader = await lab.settle(members, [await lab.join(member, **fields) for member in members])
    return [leader, *(member for member in members if member is not leader)]


async def static_join(lab: Lab) -> None:
    """A static member's first join needs no second one: the id comes with the answer."""
    await _stable(lab, "a")
    await lab.look()


async def static_follower_restarts(lab: Lab) -> None:
    """A static follower comes back with the same subscription: new id, same generation; the old one is fenced."""
    leader, follower = await _stable(lab, "a", "b")
    old = Member("b", follower.id, follower.generation, follower.instance)
    again = Member("b-again", instance=follower.instance)
    answer = await (await lab.join(again, Protocols=[protocol("range", "b")]))
    again.id, again.generation = answer["MemberId"], answer["GenerationId"]
    await lab.heartbeat(leader)
    await (await lab.sync(again))
    await lab.heartbeat(again)
    await lab.heartbeat(old)
    await (await lab.sync(old))
    await lab.commit(old)
    await (await lab.join(old))
    await lab.leave("b", old)
    await lab.heartbeat(old, GroupInstanceId=None)
    await lab.commit(old, GroupInstanceId=None)
    await lab.heartbeat(again)
    await lab.look()


async def static_leader_restarts(lab: Lab) -> None:
    """A static leader comes back with the same subscription: v9 is told to skip the assignment."""
    leader, follower = await _stable(lab, "a", "b")
    again = Member("again", instance=leader.instance)
    answer = await (await lab.join(again, Protocols=[protocol("range", leader.client)]))
    again.id, again.generation = answer["MemberId"], answer["GenerationId"]
    await lab.heartbeat(follower)
    await lab.look()
    await (await lab.sync(again))
    await lab.heartbeat(again)
    await lab.heartbeat(leader)


async def static_leader_restarts_v8(lab: Lab) -> None:
    """The same with JoinGroup v8, which cannot be told to skip the assignment."""
    leader, follower = await _stable(lab, "a", "b")
    again = Member("again", instance=leader.instance)
    answer = await (await lab.join(again, 8, Protocols=[protocol("range", leader.client)]))
    again.id, again.generation = answer["MemberId"], answer["GenerationId"]
    await lab.heartbeat(follower)
    await lab.look()


async def static_restart_other_subscription(lab: Lab) -> None:
    """A static member comes back with another subscription and the same protocol: no rebalance."""
    leader, follower = await _stable(lab, "a", "b")
    again = Member("b-again", instance=follower.instance)
    await (await lab.join(again, Protocols=[protocol("range", "something else")]))
    await lab.heartbeat(leader)
    await lab.heartbeat(follower)
    await lab.look()


async def static_restart_other_protocol(lab: Lab) -> None:
    """A static member comes back with fewer protocols, so that another one is chosen: a rebalance."""
    both = [protocol("range", ""), protocol("roundrobin", "")]
    a, b = (Member(client, instance=f"instance-{client}") for client in "ab")
    leader = await lab.settle([a, b], [await lab.join(one, Protocols=both) for one in (a, b)])
    again = Member("again", instance=(b if leader is a else a).instance)
    joining = await lab.join(again, Protocols=both[1:])
    await lab.heartbeat(leader)
    await asyncio.gather(joining, await lab.join(leader, Protocols=both))
    await lab.look()


async def static_restart_while_preparing(lab: Lab) -> None:
    """The old instance waits in JoinGroup when the new one joins: FENCED_INSTANCE_ID for the waiting one."""
    leader, follower = await _stable(lab, "a", "b")
    waiting = await lab.join(follower, Protocols=[protocol("range", "changed")])
    again = Member("b-again", instance=follower.instance)
    joining = await lab.join(again, Protocols=[protocol("range", "changed")])
    await waiting
    await lab.settle([leader, again], [await lab.join(leader), joining])
    await lab.heartbeat(follower)


async def static_restart_while_completing(lab: Lab) -> None:
    """The old instance waits in SyncGroup when the new one joins."""
    a, b = (Member(client, instance=f"instance-{client}") for client in "ab")
    joins = [await lab.join(a), await lab.join(b)]
    for member, answer in zip((a, b), await asyncio.gather(*joins), strict=True):
        member.id, member.generation, leader = answer["MemberId"], answer["GenerationId"], answer["Leader"]
    follower, leading = (b, a) if leader == a.id else (a, b)
    waiting = await lab.sync(follower)
    again = Member("again", instance=follower.instance)
    joining = await lab.join(again, Protocols=[protocol("range", follower.client)])
    await waiting
    await lab.heartbeat(leading)
    await lab.settle([leading, again], [await lab.join(leading), joining])
    await lab.look()


async def static_wrong_pairs(lab: Lab) -> None:
    """Instance ids that do not belong to the member id, or to nobody; a dynamic member that claims one."""
    leader, follower = await _stable(lab, "a", "b")
    (dynamic,) = [await lab.new("c")]
    for member_id, instance in (
        (leader.id, follower.instance),
        ("ghost", leader.instance),
        (leader.id, "nobody"),
        ("ghost", "nobody"),
        (leader.id, None),
        (dynamic.id, leader.instance),
    ):
        pair = Member("x", member_id, leader.generation, instance)
        await lab.heartbeat(pair)
        await lab.commit(pair)
        await (await lab.sync(pair))
    await (await lab.join(Member("x", "ghost", instance=leader.instance)))
    await (await lab.join(Member("x", "ghost", instance="nobody")))
    await lab.leave("x", Member("x", leader.id, instance=follower.instance), Member("x", "ghost", instance="nobody"))
    await lab.look()


async def static_leaves(lab: Lab) -> None:
    """A static member is removed by its instance id alone, as an administrator does; then it is unknown."""
    leader, follower = await _stable(lab, "a", "b")
    await lab.leave("admin", Member("admin", "", instance=follower.instance))
    await lab.heartbeat(leader)
    await lab.heartbeat(follower)
    await lab.commit(follower)
    await lab.settle([leader], [await lab.join(leader)])
    await lab.leave("admin", Member("admin", leader.id, instance=leader.instance))
    await lab.look()


async def static_session_ends(lab: Lab) -> None:
    """A static member stays away beyond its session timeout: evicted as any other, and it comes back as a new one."""
    leader, follower = await _stable(lab, "a", "b", SessionTimeoutMs=6_000)
    for _ in range(7):
        await asyncio.sleep(0.9)
        await lab.heartbeat(leader)
    await lab.settle([leader], [await lab.join(leader, SessionTimeoutMs=6_000)])
    await lab.heartbeat(follower)
    await lab.commit(follower)
    again = Member("b-again", instance=follower.instance)
    joining = await lab.join(again, SessionTimeoutMs=6_000)
    await lab.heartbeat(leader)
    await lab.settle([leader, again], [await lab.join(leader, SessionTimeoutMs=6_000), joining])
