"""Groups that migrate between the classic and the consumer protocol while their members go on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from coordinator_lab import Member

import kwire

if TYPE_CHECKING:
    from coordinator_lab import Body, Lab


def _protocols(
    *topics: str, owned: tuple[int, ...] = (), version: int = 1, names: tuple[str, ...] = ("range",)
) -> Body:
    rows = [{"Topic": "orders", "Partitions": list(owned)}] if owned else []
    body: Body = {"Topics": list(topics or ("orders",)), "UserData": None}
    if version >= 1:
        body["OwnedPartitions"] = rows
    if version >= 2:
        body["GenerationId"] = -1
    if version >= 3:
        body["RackId"] = None
    data = version.to_bytes(2, "big") + kwire.encode("ConsumerProtocolSubscription", version, body)
    return {"Protocols": [{"Name": name, "Metadata": data} for name in names], "SessionTimeoutMs": 6_000}


def _assignment(*partitions: int) -> bytes:
    body = {"AssignedPartitions": [{"Topic": "orders", "Partitions": list(partitions)}], "UserData": None}
    return b"\0\1" + kwire.encode("ConsumerProtocolAssignment", 1, body)


async def _classic_group(lab: Lab, shares: dict[str, tuple[int, ...]], **fields: Any) -> dict[str, Member]:
    """A stable classic group whose members have these partitions."""
    members = [await lab.new(client, **_protocols() | fields) for client in shares]
    joins = [await lab.join(member, **_protocols() | fields) for member in members]
    for member, answer in zip(members, await asyncio.gather(*joins), strict=True):
        member.id, member.generation, leader = answer["MemberId"], answer["GenerationId"], answer["Leader"]
    given = [{"MemberId": one.id, "Assignment": _assignment(*shares[one.client])} for one in members]
    followers = [await lab.sync(one) for one in members if one.id != leader]
    (first,) = [one for one in members if one.id == leader]
    await asyncio.gather(*followers, await lab.sync(first, Assignments=given))
    return {one.client: one for one in members}


async def _rejoin(lab: Lab, member: Member, *owned: int, sync: bool = True, **fields: Any) -> Body:
    answer = await (await lab.join(member, **_protocols(owned=owned) | fields))
    if answer["ErrorCode"] == 0:
        member.id, member.generation = answer["MemberId"], answer["GenerationId"]
        if sync:
            return await (await lab.sync(member))
    return answer


async def migrate_up_and_down(lab: Lab) -> None:
    """A classic group of two; a member of the consumer protocol joins, and leaves again."""
    members = await _classic_group(lab, {"a": (0, 1), "b": (2, 3)})
    a, b = members["a"], members["b"]
    await lab.look()
    await lab.beat("c", "member-c", 0)
    await lab.describe()
    await lab.look()
    for one in (a, b):
        await lab.heartbeat(one)
    await lab.commit(a, 9)
    await lab.commit(a, 8)
    await _rejoin(lab, a, 0, 1)
    await lab.heartbeat(a)
    await _rejoin(lab, a, 0)
    await lab.heartbeat(a)
    await _rejoin(lab, b, 2, 3)
    await lab.heartbeat(b)
    c = await lab.beat("c", "member-c", (await lab.beat("c", "member-c", 0))["MemberEpoch"], TopicPartitions=[])
    await lab.describe()
    await lab.commit(b, 9, GenerationIdOrMemberEpoch=1)
    await lab.heartbeat(b, GenerationId=1)
    await (await lab.sync(b, GenerationId=1))
    await (await lab.sync(b, ProtocolName="other"))
    await lab.heartbeat(Member("x", "nobody", 3))
    await lab.heartbeat(Member("c", "member-c", c["MemberEpoch"]))
    await lab.beat("c", "member-c", -1)
    await lab.look()
    await lab.describe()
    await lab.heartbeat(a)
    joins = [await lab.join(one, **_protocols()) for one in (a, b)]
    await asyncio.gather(*joins)
    await lab.look()


async def migrate_classic_joins_consumer(lab: Lab) -> None:
    """A consumer group gets members of the classic protocol; the last consumer member falls silent."""
    await lab.beat("c", "member-c", 0)
    await lab.ask("x", "JoinGroup", 9, {**_join(lab), "Protocols": []})
    await lab.ask("x", "JoinGroup", 9, {**_join(lab), "ProtocolType": "connect"})
    a = await lab.new("a", **_protocols())
    await _rejoin(lab, a)
    await lab.describe()
    await lab.beat("c", "member-c", 2, TopicPartitions=lab.owned(0, 1, 2, 3))
    await lab.beat("c", "member-c", 2, TopicPartitions=lab.owned(0, 1))
    await lab.heartbeat(a)
    await _rejoin(lab, a)
    await lab.heartbeat(a)
    b = await lab.new("b", **_protocols())
    await lab.ask("x", "JoinGroup", 9, {**_join(lab), **_protocols(names=("sticky",))})
    await _rejoin(lab, b)
    for _ in range(3):
        await lab.heartbeat(a)
        await lab.heartbeat(b)
        await asyncio.sleep(1.5)
    await lab.look()
    await lab.describe()


def _join(lab: Lab) -> Body:
    body: Body = {"GroupId": lab.group, "SessionTimeoutMs": 6_000, "RebalanceTimeoutMs": 5_000, "MemberId": ""}
    return body | {"GroupInstanceId": None, "ProtocolType": "consumer", "Reason": None}


async def migrate_leave(lab: Lab) -> None:
    """Members of both protocols leave a migrated group by LeaveGroup."""
    members = await _classic_group(lab, {"a": (0,), "b": (1,), "d": (2, 3)})
    await lab.beat("c", "member-c", 0)
    await lab.leave("a", members["a"])
    await lab.leave("a", members["a"], Member("x", "nobody"))
    await lab.describe()
    await lab.heartbeat(members["b"])
    await lab.leave("admin", Member("c", "member-c"))
    await lab.look()
    await lab.heartbeat(members["b"])


async def migrate_timeouts(lab: Lab) -> None:
    """A member of the classic protocol does not come back in its rebalance timeout, another never syncs."""
    members = await _classic_group(lab, {"a": (0, 1), "b": (2, 3)}, RebalanceTimeoutMs=1_500)
    await lab.beat("c", "member-c", 0)
    await lab.heartbeat(members["a"])
    await _rejoin(lab, members["b"], 2, sync=False, RebalanceTimeoutMs=1_500)
    for _ in range(3):
        await asyncio.sleep(0.7)
        await lab.beat("c", "member-c", 2)
    await lab.heartbeat(members["a"])
    await lab.heartbeat(members["b"])
    await lab.describe()


async def migrate_itself(lab: Lab) -> None:
    """A member of the classic protocol comes back with the consumer protocol under its own id."""
    members = await _classic_group(lab, {"a": (0, 1, 2, 3)})
    a = members["a"]
    await lab.beat("a", a.id, 0)
    await lab.describe()
    await lab.heartbeat(a)
    await lab.beat("a", a.id, 2)
    await lab.describe()


async def migrate_not(lab: Lab) -> None:
    """Nobody but who joins turns a classic group into another, here one that has no assignment yet."""
    first = await lab.new("a", **_protocols())
    joining = await lab.join(first, **_protocols())
    answer = await joining
    first.generation = answer["GenerationId"]
    await lab.beat("c", "member-c", 1)
    await lab.beat("c", "member-c", 0)
    await lab.describe()
    await lab.heartbeat(first)
    await (await lab.sync(first))


async def migrate_foreign(lab: Lab) -> None:
    """A classic group that is none of consumers."""
    connect = {"ProtocolType": "connect", "Protocols": [{"Name": "default", "Metadata": b"x"}]}
    member = Member("a")
    answer = await (await lab.join(member, 3, **connect))
    member.id, member.generation = answer["MemberId"], answer["GenerationId"]
    await lab.beat("c", "member-c", 0)
    await lab.look()


async def migrate_static(lab: Lab) -> None:
    """A static member restarts with the other protocol, either way."""
    for instance, client in (("i1", "a"), ("i2", "b")):
        await lab.beat(client, f"member-{client}", 0, InstanceId=instance)
    first = Member("a", instance="i1")
    await _rejoin(lab, first)
    await lab.describe()
    await lab.heartbeat(Member("x", "member-a", 3, "i1"))
    await lab.beat("b", "member-b", 3, InstanceId="i2", TopicPartitions=lab.owned(2, 3))
    await _rejoin(lab, first, 0, 1)
    second = Member("b", instance="i2")
    await _rejoin(lab, second)
    await lab.look()
    await lab.heartbeat(first)
    await lab.heartbeat(second)
    await lab.beat("b", "member-b2", 0, InstanceId="i2")
    await lab.describe()
