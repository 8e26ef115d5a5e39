"""Offsets committed, fetched and deleted; groups listed, described, deleted; transactions' offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator_lab import Member

if TYPE_CHECKING:
    from coordinator_lab import Body, Lab

NOBODY = Member("a")


async def simple_commits(lab: Lab) -> None:
    """Commits without membership: of a group that does not exist, of an empty one, of one that has members."""
    await lab.fetch("a")
    await lab.commit(NOBODY)
    await lab.fetch("a")
    await lab.look()
    await lab.commit(Member("a", "", 5))
    await lab.commit(Member("a", "ghost", -1))
    await lab.commit(Member("a", "ghost", 5))
    (a,) = await lab.stable("a")
    await lab.commit(NOBODY)
    await lab.commit(Member("x", a.id, -1))
    await lab.leave("a", a)
    await lab.commit(NOBODY)
    await lab.commit(a)
    await lab.look()


async def commit_refused(lab: Lab) -> None:
    """Commits with another generation, by an unknown member, of an empty group id, of partitions that do not exist."""
    (a,) = await lab.stable("a")
    await lab.commit(a)
    await lab.commit(a, GenerationIdOrMemberEpoch=a.generation + 1)
    await lab.commit(a, GenerationIdOrMemberEpoch=a.generation - 1)
    await lab.commit(a, MemberId="ghost")
    await lab.commit(a, MemberId="")
    await lab.commit(a, GroupId="")
    await lab.commit(a, GroupId="no-such-group")
    await lab.commit(a, topic="no-such-topic")
    await lab.commit(a, topic="payments")
    await lab.fetch("a", every=True)


async def commit_in_rebalance(lab: Lab) -> None:
    """Commits in PreparingRebalance are taken, in CompletingRebalance refused; later the old generation's are, too."""
    leader, follower = await lab.stable("a", "b")
    waiting = await lab.join(leader)
    await lab.commit(follower)
    await lab.commit(follower, GenerationIdOrMemberEpoch=99)
    joins = [waiting, await lab.join(follower)]
    answers = await asyncio.gather(*joins)
    await lab.commit(follower)
    old = follower.generation
    leader.generation = follower.generation = answers[0]["GenerationId"]
    await lab.commit(follower)
    await (await lab.sync(leader, all_of=[leader, follower]))
    await (await lab.sync(follower))
    await lab.commit(follower, GenerationIdOrMemberEpoch=old)
    await lab.commit(follower)


async def commit_versions(lab: Lab) -> None:
    """Every version of OffsetCommit and OffsetFetch that names topics."""
    low, high = lab.versions["OffsetCommit"]
    for version in range(max(1, low), min(high, 9) + 1):
        await lab.commit(NOBODY, version)
    low, high = lab.versions["OffsetFetch"]
    for version in range(max(1, low), min(high, 9) + 1):
        await lab.fetch("a", version)
    await lab.fetch("a", every=True)


async def fetch_unknown(lab: Lab) -> None:
    """OffsetFetch of a group that does not exist, of partitions without a commit, of several groups, of no group id."""
    await lab.fetch("a", stable=True)
    await lab.fetch("a", every=True)
    await lab.commit(NOBODY)
    rows: list[Body] = [
        {"GroupId": group, "Topics": [{"Name": "orders", "PartitionIndexes": [0, 3, 77]}]}
        for group in (lab.group, "z", "")
    ]
    await lab.ask("a", "OffsetFetch", 8, {"Groups": rows})
    rows = [{"GroupId": lab.group, "MemberId": "ghost", "MemberEpoch": 3, "Topics": None}]
    await lab.ask("a", "OffsetFetch", 9, {"Groups": rows})


async def commit_metadata_size(lab: Lab) -> None:
    """Metadata of 4,096 bytes is taken, more is OFFSET_METADATA_TOO_LARGE; null and empty metadata."""
    for metadata in ("m" * 4096, "m" * 4097, None, ""):
        row = {"PartitionIndex": 0, "CommittedOffset": 7, "CommittedMetadata": metadata}
        await lab.commit(NOBODY, Topics=[{"Name": "orders", "Partitions": [row]}])
    await lab.fetch("a")


async def transaction_offsets(lab: Lab) -> None:
    """Offsets of an open transaction: invisible, and UNSTABLE_OFFSET_COMMIT for who requires stable ones."""
    await lab.commit(NOBODY)
    name = {"TransactionalId": lab.group}
    asked = name | {"TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    for _ in range(40):  # until the transaction coordinator is there
        await lab.admin.ask("FindCoordinator", 4, {"KeyType": 1, "CoordinatorKeys": [lab.group]})
        got = await lab.admin.ask("InitProducerId", 4, asked)
        if got["ErrorCode"] == 0:
            break
        await asyncio.sleep(0.25)
    producer = {"ProducerId": got["ProducerId"], "ProducerEpoch": got["ProducerEpoch"]}
    await lab.admin.ask("AddOffsetsToTxn", 3, name | producer | {"GroupId": lab.group})
    row = {"PartitionIndex": 0, "CommittedOffset": 500, "CommittedMetadata": None}
    topics = [{"Name": "orders", "Partitions": [row]}]
    body = name | producer | {"GroupId": lab.group, "Topics": topics}
    await lab.ask("a", "TxnOffsetCommit", 3, body)
    await lab.fetch("a")
    await lab.fetch("a", stable=True)
    await lab.ask("a", "TxnOffsetCommit", 3, body | {"GenerationIdOrMemberEpoch": 4, "MemberId": "ghost"})
    (a,) = await lab.stable("b")
    await lab.ask("a", "TxnOffsetCommit", 3, body | {"GenerationIdOrMemberEpoch": 77, "MemberId": a.id})
    await lab.ask("a", "TxnOffsetCommit", 3, body | {"GenerationIdOrMemberEpoch": a.generation, "MemberId": a.id})
    await lab.ask("a", "TxnOffsetCommit", 3, body)


async def offset_delete(lab: Lab) -> None:
    """OffsetDelete: no such group, an empty group, a topic with a subscriber, partitions without a commit."""

    async def drop(topic: str, *partitions: int) -> None:
        rows = [{"PartitionIndex": partition} for partition in partitions]
        body = {"GroupId": lab.group, "Topics": [{"Name": topic, "Partitions": rows}]}
        await lab.ask("admin", "OffsetDelete", 0, body)

    await drop("orders", 0)
    await lab.commit(NOBODY)
    await lab.commit(NOBODY, topic="payments")
    await drop("orders", 0, 1)
    await lab.fetch("a", every=True)
    await lab.commit(NOBODY)
    await lab.stable("a")
    await drop("orders", 0)
    await drop("payments", 0)
    await lab.fetch("a", every=True)
    await drop("no-such-topic", 0)


async def delete_groups(lab: Lab) -> None:
    """DeleteGroups: no such group, a group with a member, an empty one with offsets, the empty name."""
    await lab.delete()
    (a,) = await lab.stable("a")
    await lab.commit(a)
    await lab.delete()
    await lab.leave("a", a)
    await lab.delete()
    await lab.look()
    await lab.fetch("a", every=True)
    await lab.heartbeat(a)
    await lab.commit(a)
    await lab.commit(NOBODY)
    await lab.look()
    await lab.delete()
    await lab.delete(group="")


async def deleted_with_pending(lab: Lab) -> None:
    """A group is deleted while a member id is handed out and not used yet."""
    a = await lab.new("a")
    await lab.look()
    await lab.delete()
    await lab.look()
    await (await lab.join(a))


async def describe_states(lab: Lab) -> None:
    """DescribeGroups and ListGroups, newest and oldest versions, in every state; filters by state and type."""

    async def look() -> None:
        for api, body in (("DescribeGroups", {"Groups": [lab.group, "no-such-group", ""]}), ("ListGroups", {})):
            for version in sorted({lab.versions[api][0], lab.newest(api)}):
                await lab.ask("watcher", api, version, body)

    await look()
    leader, follower = await lab.stable("a", "b")
    await look()
    waiting = await lab.join(leader)
    await look()
    answers = await asyncio.gather(waiting, await lab.join(follower))
    leader.generation = follower.generation = answers[0]["GenerationId"]
    await look()
    await (await lab.sync(leader, all_of=[leader]))
    await (await lab.sync(follower))
    await look()
    for states in (["Stable"], ["stable"], ["Empty"], ["Empty", "Stable"], ["Nonsense"]):
        await lab.ask("watcher", "ListGroups", 4, {"StatesFilter": states})
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"]):
        await lab.ask("watcher", "ListGroups", 5, {"StatesFilter": [], "TypesFilter": types})
    await lab.leave("a", leader, follower)
    await look()
