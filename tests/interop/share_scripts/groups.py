"""Members of share groups: joining, epochs, assignments, leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from share_lab import ShareLab


async def share_life(lab: ShareLab) -> None:
    """One member joins, gets its partitions in its second heartbeat, leaves."""
    a = lab.reader("a")
    await lab.describe()
    await lab.beat(a, 0)
    await lab.describe()
    await asyncio.sleep(0.6)
    for _ in range(3):
        await lab.beat(a)
    await lab.look()
    await lab.describe()
    await lab.beat(a, -1)
    await lab.beat(a, 3)
    await lab.describe()
    await lab.look()


async def share_requests(lab: ShareLab) -> None:
    """Heartbeats that are refused."""
    a = lab.reader("a")
    await lab.beat(a, 1)
    await lab.beat(a, -1)
    await lab.beat(a, 0, SubscribedTopicNames=[])
    await lab.beat(a, 0, SubscribedTopicNames=None)
    await lab.beat(a, -2)
    await lab.beat(a, 0, MemberId="")
    await lab.beat(a, 0, MemberId=" ")
    await lab.beat(a, 0, MemberId="x" * 37)
    await lab.beat(a, 0, RackId="")
    await lab.beat(a, 0, RackId="r1")
    await asyncio.sleep(0.6)
    await lab.beat(a)
    await lab.describe()
    for epoch in (99, 1, 2, 3):
        await lab.beat(a, epoch)
    await lab.beat(a, 0)
    await lab.beat(lab.reader("b"), 2)
    await lab.beat(lab.reader("b"), -1)
    await lab.beat(a, 0, GroupId="")
    await lab.delete()


async def share_members(lab: ShareLab) -> None:
    """Members come and go; partitions are shared when there are more of them than partitions."""
    readers = [lab.reader(name) for name in "abcd"]
    await lab.join(readers[0])
    for one in readers[1:]:
        await lab.beat(one, 0)
        for each in readers[: readers.index(one) + 1]:
            await lab.beat(each)
        await lab.describe()
    await lab.beat(lab.reader("e"), 0)
    await lab.beat(readers[1], -1)
    for each in (readers[0], readers[2], readers[3]):
        await lab.beat(each)
    await lab.describe()
    await lab.beat(readers[0], -1)
    await lab.beat(readers[2])
    await lab.beat(readers[3])
    await lab.describe()


async def share_subscriptions(lab: ShareLab) -> None:
    """Members ask for different topics, and change their mind."""
    a, b = lab.reader("a"), lab.reader("b")
    t, u = lab.topic, f"{lab.group}-u"
    await lab.join(a)
    await lab.join(b, SubscribedTopicNames=[t, u])
    await lab.beat(a)
    await lab.beat(a, SubscribedTopicNames=[u, "nowhere"])
    await lab.beat(b)
    await lab.beat(a)
    await lab.describe()
    await lab.beat(b, SubscribedTopicNames=[t])
    await lab.beat(a)
    await lab.beat(b)
    await lab.describe()
    await lab.beat(a, SubscribedTopicNames=[t])
    await lab.beat(b)
    await lab.beat(a)
    await lab.describe()


async def share_silence(lab: ShareLab) -> None:
    """A member falls silent and is removed; what it gets when it comes back."""
    a, b = lab.reader("a"), lab.reader("b")
    await lab.join(a)
    await lab.join(b)
    await lab.beat(a)
    for _ in range(5):
        await asyncio.sleep(1)
        await lab.beat(b)
    await lab.describe()
    await lab.beat(a)
    await lab.beat(a, 0)
    await lab.beat(b)
    await lab.beat(a)
    await lab.describe()


async def share_new_topic(lab: ShareLab) -> None:
    """A topic that is subscribed to comes later."""
    a = lab.reader("a")
    new = f"{lab.group}-new{asyncio.get_running_loop().time():.0f}"
    await lab.join(a, SubscribedTopicNames=[lab.topic, new])
    await lab.create_topic(new, 3)
    await asyncio.sleep(0.5)
    await lab.beat(a)
    await asyncio.sleep(0.6)
    await lab.beat(a)
    await lab.beat(a)
    await lab.describe()


async def share_meets_others(lab: ShareLab) -> None:
    """A share group's id in the hands of other protocols, and the other way round."""
    a = lab.reader("a")
    await lab.join(a)
    body = {"GroupId": lab.group, "MemberId": "m", "MemberEpoch": 0, "RebalanceTimeoutMs": 5000}
    await lab.ask("c", "ConsumerGroupHeartbeat", 1, body | {"SubscribedTopicNames": [lab.topic], "TopicPartitions": []})
    await lab.ask("c", "ConsumerGroupDescribe", 1, {"GroupIds": [lab.group]})
    await lab.ask("c", "DescribeGroups", 5, {"Groups": [lab.group]})
    protocols = [{"Name": "range", "Metadata": b""}]
    join = {"GroupId": lab.group, "SessionTimeoutMs": 10_000, "RebalanceTimeoutMs": 5_000, "MemberId": ""}
    await lab.ask("c", "JoinGroup", 5, join | {"ProtocolType": "consumer", "Protocols": protocols})
    await lab.ask("c", "Heartbeat", 4, {"GroupId": lab.group, "GenerationId": 1, "MemberId": a.id})
    part = {"PartitionIndex": 0, "CommittedOffset": 5, "CommittedMetadata": ""}
    topics = [{"Name": lab.topic, "Partitions": [part]}]
    commit = {"GroupId": lab.group, "GenerationIdOrMemberEpoch": -1, "MemberId": "", "Topics": topics}
    await lab.ask("c", "OffsetCommit", 8, commit)
    await lab.ask("c", "OffsetCommit", 9, commit)
    wanted = [{"GroupId": lab.group, "Topics": [{"Name": lab.topic, "PartitionIndexes": [0]}]}]
    await lab.ask("c", "OffsetFetch", 8, {"Groups": wanted, "RequireStable": False})
    await lab.ask("c", "OffsetFetch", 9, {"Groups": wanted, "RequireStable": False})
    deleted = [{"Name": lab.topic, "Partitions": [{"PartitionIndex": 0}]}]
    await lab.ask("c", "OffsetDelete", 0, {"GroupId": lab.group, "Topics": deleted})
    await lab.delete()
    await lab.beat(a, -1)
    await lab.ask("c", "OffsetCommit", 9, commit)
    await lab.ask("c", "JoinGroup", 5, join | {"ProtocolType": "consumer", "Protocols": protocols})
    await lab.delete()
    await lab.describe()
