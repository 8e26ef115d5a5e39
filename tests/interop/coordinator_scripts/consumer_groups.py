"""Groups of KIP-848: epochs, assignment and hand-over, fencing, leaving, sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator_lab import Member

if TYPE_CHECKING:
    from coordinator_lab import Body, Lab


def _parts(answer: Body) -> list[Body] | None:
    """What an answer assigns; None: no news."""
    rows = answer["Assignment"]
    return None if rows is None else rows["TopicPartitions"]


async def _alone(lab: Lab, client: str = "a", **fields: Any) -> int:
    """A member that owns everything; its epoch."""
    answer = await lab.beat(client, f"member-{client}", 0, **fields)
    assert answer["ErrorCode"] == 0, answer
    await lab.beat(client, f"member-{client}", answer["MemberEpoch"], TopicPartitions=_parts(answer))
    return int(answer["MemberEpoch"])


async def _pair(lab: Lab) -> int:
    """Two members, a and b, each with its half of orders; their epoch."""
    epoch = await _alone(lab)
    joined = await lab.beat("b", "member-b", 0)
    keeps = _parts(await lab.beat("a", "member-a", epoch))
    epoch = (await lab.beat("a", "member-a", epoch, TopicPartitions=keeps))["MemberEpoch"]
    given = await lab.beat("b", "member-b", joined["MemberEpoch"])
    await lab.beat("b", "member-b", given["MemberEpoch"], TopicPartitions=_parts(given))
    return int(epoch)


async def consumer_join(lab: Lab) -> None:
    """A member makes up its id (v1), joins, gets all partitions, owns them, heartbeats, commits, leaves."""
    await lab.describe()
    answer = await lab.beat("a", "member-a", 0)
    await lab.describe()
    epoch = answer["MemberEpoch"]
    await lab.beat("a", "member-a", epoch, TopicPartitions=_parts(answer))
    await lab.beat("a", "member-a", epoch)
    await lab.describe()
    await lab.look()
    await lab.commit(Member("a", "member-a", epoch))
    await lab.fetch("a")
    await lab.beat("a", "member-a", -1)
    await lab.describe()
    await lab.look()
    await lab.beat("a", "member-a", epoch)
    await lab.delete()


async def consumer_join_v0(lab: Lab) -> None:
    """With v0 the coordinator gives the member id."""
    answer = await lab.beat("a", "", 0, 0)
    await lab.beat("a", answer["MemberId"], answer["MemberEpoch"], 0, TopicPartitions=_parts(answer))
    await lab.beat("a", answer["MemberId"], -1, 0)


async def consumer_second_joins(lab: Lab) -> None:
    """A second member joins: the first is told to give up half, the second gets it only when the first has."""
    epoch = await _alone(lab)
    joined = await lab.beat("b", "member-b", 0)
    await lab.describe()
    waiting = joined["MemberEpoch"]
    await lab.beat("b", "member-b", waiting)
    told = await lab.beat("a", "member-a", epoch)
    await lab.describe()
    await lab.beat("a", "member-a", epoch)
    await lab.beat("b", "member-b", waiting)
    done = await lab.beat("a", "member-a", epoch, TopicPartitions=_parts(told))
    await lab.describe()
    given = await lab.beat("b", "member-b", waiting)
    await lab.beat("b", "member-b", given["MemberEpoch"], TopicPartitions=_parts(given))
    await lab.beat("a", "member-a", done["MemberEpoch"])
    await lab.describe()


async def consumer_assignment_interval(lab: Lab) -> None:
    """Targets are computed once a second at most: until then the group is Assigning, the second member has nothing."""
    await lab.configure(consumer_assignment_interval_ms=1_000)
    epoch = await _alone(lab)
    waiting = (await lab.beat("b", "member-b", 0))["MemberEpoch"]
    await lab.describe()
    await lab.beat("a", "member-a", epoch)
    await lab.beat("b", "member-b", waiting)
    await asyncio.sleep(1.1)
    await lab.describe()
    await lab.beat("a", "member-a", epoch)
    await lab.describe()
    await lab.beat("b", "member-b", waiting)


async def consumer_second_leaves(lab: Lab) -> None:
    """One of two leaves: the other gets everything with its next heartbeat."""
    epoch = await _pair(lab)
    await lab.describe()
    await lab.beat("b", "member-b", -1)
    await lab.describe()
    answer = await lab.beat("a", "member-a", epoch)
    await lab.beat("a", "member-a", answer["MemberEpoch"], TopicPartitions=_parts(answer))
    await lab.describe()


async def consumer_three(lab: Lab) -> None:
    """Three members, the third joins while the second still waits for its partitions."""
    epoch = await _alone(lab)
    epochs = {"a": epoch}
    for client in "bc":
        epochs[client] = (await lab.beat(client, f"member-{client}", 0))["MemberEpoch"]
    await lab.describe()
    for _ in range(4):
        for client in "abc":
            answer = await lab.beat(client, f"member-{client}", epochs[client])
            parts = _parts(answer)
            if parts is not None:
                answer = await lab.beat(client, f"member-{client}", answer["MemberEpoch"], TopicPartitions=parts)
            epochs[client] = answer["MemberEpoch"]
    await lab.describe()


async def consumer_range(lab: Lab) -> None:
    """The range assignor, two topics, two members; then one of them asks for uniform."""
    both: Body = {"SubscribedTopicNames": ["orders", "payments"], "ServerAssignor": "range"}
    epoch = await _alone(lab, **both)
    joined = await lab.beat("b", "member-b", 0, **both)
    keeps = _parts(await lab.beat("a", "member-a", epoch))
    await lab.beat("a", "member-a", epoch, TopicPartitions=keeps)
    given = await lab.beat("b", "member-b", joined["MemberEpoch"])
    await lab.beat("b", "member-b", given["MemberEpoch"], TopicPartitions=_parts(given))
    await lab.describe()
    await lab.beat("b", "member-b", given["MemberEpoch"], ServerAssignor="uniform")
    await lab.describe()


async def consumer_subscriptions(lab: Lab) -> None:
    """A member changes its subscription: another topic, both, one that does not exist, none."""
    epoch = await _alone(lab)
    owned: list[Body] = lab.owned(0, 1, 2, 3)
    for names in (["payments"], ["orders", "payments"], ["payments", "no-such-topic"], []):
        answer = await lab.beat("a", "member-a", epoch, SubscribedTopicNames=names, TopicPartitions=owned)
        while (parts := _parts(answer)) is not None and parts != owned:
            owned = parts
            answer = await lab.beat("a", "member-a", answer["MemberEpoch"], TopicPartitions=owned)
        epoch = answer["MemberEpoch"]
        await lab.describe()


async def consumer_topic_appears(lab: Lab) -> None:
    """A topic that members are subscribed to is made later: the next heartbeats bring its partitions."""
    name = f"{lab.group}-topic"
    answer = await lab.beat("a", "member-a", 0, SubscribedTopicNames=[name])
    epoch = answer["MemberEpoch"]
    await lab.beat("a", "member-a", epoch)
    await lab.create_topic(name, 2)
    await asyncio.sleep(1)
    answer = await lab.beat("a", "member-a", epoch)
    await lab.beat("a", "member-a", answer["MemberEpoch"], TopicPartitions=_parts(answer))
    await lab.describe()


async def consumer_regex(lab: Lab) -> None:
    """A subscription by pattern: an invalid one, one that finds a topic; what it found comes with a later heartbeat."""
    await lab.beat("a", "member-a", 0, SubscribedTopicNames=None, SubscribedTopicRegex="or(ders")
    answer = await lab.beat("a", "member-a", 0, SubscribedTopicNames=None, SubscribedTopicRegex="or.*s")
    await asyncio.sleep(0.5)
    answer = await lab.beat("a", "member-a", answer["MemberEpoch"])
    await lab.beat("a", "member-a", answer["MemberEpoch"], TopicPartitions=_parts(answer))
    await lab.describe()


async def consumer_refused(lab: Lab) -> None:
    """Heartbeats that are invalid in themselves, unknown groups and members, an unsupported assignor."""
    await lab.beat("a", "member-a", 5)
    await lab.beat("a", "member-a", -1)
    await lab.beat("a", "member-a", -2, InstanceId="instance-a")
    await lab.beat("a", "", 0)
    await lab.beat("a", "member-a", 0, GroupId="")
    await lab.beat("a", "member-a", 0, RebalanceTimeoutMs=-1)
    await lab.beat("a", "member-a", 0, TopicPartitions=None)
    await lab.beat("a", "member-a", 0, TopicPartitions=lab.owned(0))
    await lab.beat("a", "member-a", 0, SubscribedTopicNames=None)
    await lab.beat("a", "member-a", 0, ServerAssignor="best")
    await lab.beat("a", "member-a", 0, InstanceId="")
    await lab.beat("a", "member-a", 0, RackId="")
    await lab.beat("a", "member-a", -2)
    await lab.beat("a", "member-a", -3)
    epoch = await _alone(lab)
    await lab.beat("b", "member-b", epoch)
    await lab.beat("b", "member-b", -1)
    await lab.beat("a", "member-a", epoch, ServerAssignor="best")
    await lab.beat("a", "member-a", epoch, SubscribedTopicNames=[])
    await lab.describe()


async def consumer_epochs(lab: Lab) -> None:
    """A larger epoch is fenced; the one before with what it owned is taken (a lost answer); older ones are fenced."""
    epoch = await _pair(lab)
    await lab.beat("a", "member-a", epoch + 1)
    await lab.beat("a", "member-a", epoch - 1, TopicPartitions=lab.owned(0, 1))
    await lab.beat("a", "member-a", epoch - 1, TopicPartitions=lab.owned(0, 1, 2, 3))
    await lab.beat("a", "member-a", epoch - 1)
    await lab.beat("a", "member-a", max(1, epoch - 2))
    await lab.beat("a", "member-a", epoch)
    again = await lab.beat("a", "member-a", 0)
    await lab.beat("a", "member-a", again["MemberEpoch"])
    await lab.describe()


async def consumer_commits(lab: Lab) -> None:
    """Commits and fetches with the right, a stale and a future epoch, by an unknown member, without membership."""
    epoch = await _pair(lab)
    for member_id, at in (("member-a", epoch), ("member-a", epoch - 1), ("member-a", epoch + 1), ("ghost", epoch)):
        await lab.commit(Member("a", member_id, at))
        row = {"GroupId": lab.group, "MemberId": member_id, "MemberEpoch": at, "Topics": None}
        await lab.ask("a", "OffsetFetch", 9, {"Groups": [row]})
    await lab.commit(Member("a", "", -1))
    await lab.commit(Member("a", "member-a", -1))
    await lab.commit(Member("a", "member-a", epoch - 1), 8)
    await lab.beat("a", "member-a", -1)
    await lab.beat("b", "member-b", -1)
    await lab.commit(Member("a", "", -1))
    await lab.commit(Member("a", "member-a", epoch))


async def consumer_commit_by_id(lab: Lab) -> None:
    """OffsetCommit v10 and OffsetFetch v10 name topics by id; an unknown id."""
    await lab.commit(Member("a"), 10)
    await lab.commit(Member("a"), 10, Topics=[{"TopicId": UUID(int=77), "Partitions": [{"PartitionIndex": 0}]}])
    topics = [{"TopicId": lab.topic_id("orders"), "PartitionIndexes": [0, 1]}]
    topics.append({"TopicId": UUID(int=77), "PartitionIndexes": [0]})
    await lab.ask("a", "OffsetFetch", 10, {"Groups": [{"GroupId": lab.group, "Topics": topics}]})
    await lab.ask("a", "OffsetFetch", 10, {"Groups": [{"GroupId": lab.group, "Topics": None}]})


async def consumer_static(lab: Lab) -> None:
    """A static member leaves with epoch -2 and comes back under another id with what it had; the old id is fenced."""
    epoch = await _alone(lab, InstanceId="instance-a")
    await lab.beat("b", "member-b", 0, InstanceId="instance-a")
    await lab.beat("a", "member-a", -2, InstanceId="instance-a")
    await lab.describe()
    back = await lab.beat("b", "member-b", 0, InstanceId="instance-a")
    await lab.beat("b", "member-b", back["MemberEpoch"], InstanceId="instance-a", TopicPartitions=_parts(back))
    await lab.describe()
    await lab.beat("a", "member-a", epoch, InstanceId="instance-a")
    await lab.beat("b", "member-b", back["MemberEpoch"], InstanceId="instance-b")
    await lab.beat("b", "member-b", -2, InstanceId="instance-b")
    await lab.commit(Member("a", "member-a", epoch, "instance-a"))
    await lab.beat("b", "member-b", -1, InstanceId="instance-a")
    await lab.describe()


async def consumer_static_never_returns(lab: Lab) -> None:
    """A static member leaves with epoch -2 and stays away: after the session timeout its partitions go to the other."""
    epoch = await _alone(lab, InstanceId="instance-a")
    await lab.beat("a", "member-a", -2, InstanceId="instance-a")
    answer = await lab.beat("b", "member-b", 0)
    for _ in range(5):
        await asyncio.sleep(0.9)
        answer = await lab.beat("b", "member-b", answer["MemberEpoch"])
    await lab.describe()
    await lab.beat("a", "member-a", epoch, InstanceId="instance-a")


async def consumer_session_ends(lab: Lab) -> None:
    """A member of two stays silent beyond its session timeout: UNKNOWN_MEMBER_ID later, the other gets everything."""
    epoch = await _pair(lab)
    for _ in range(5):
        await asyncio.sleep(0.9)
        answer = await lab.beat("a", "member-a", epoch)
        epoch = answer["MemberEpoch"]
    await lab.describe()
    await lab.beat("b", "member-b", epoch)
    await lab.commit(Member("b", "member-b", epoch))
    await lab.beat("b", "member-b", 0)
    await lab.describe()


async def consumer_rebalance_timeout(lab: Lab) -> None:
    """A member is told to give partitions up and does not within its rebalance timeout: fenced despite heartbeats."""
    first = await lab.beat("a", "member-a", 0, RebalanceTimeoutMs=2_000)
    epoch = first["MemberEpoch"]
    await lab.beat("a", "member-a", epoch, TopicPartitions=_parts(first))
    joined = await lab.beat("b", "member-b", 0)
    await lab.beat("a", "member-a", epoch)
    for _ in range(3):
        await asyncio.sleep(0.8)
        await lab.beat("a", "member-a", epoch)
    await lab.beat("b", "member-b", joined["MemberEpoch"])
    await lab.describe()


async def consumer_full(lab: Lab) -> None:
    """group.consumer.max.size is reached."""
    for client in "abcde":
        await lab.beat(client, f"member-{client}", 0)


async def consumer_and_classic(lab: Lab) -> None:
    """Classic requests to a consumer group: describe, list, heartbeat, sync, leave, a first join; deleting it."""
    epoch = await _alone(lab)
    await lab.look()
    await lab.heartbeat(Member("a", "member-a", epoch))
    await (await lab.sync(Member("a", "member-a", epoch)))
    await lab.leave("x", Member("x", "ghost"))
    await lab.delete()
    await (await lab.join(Member("c"), Protocols=[{"Name": "range", "Metadata": b"unreadable"}]))
    await lab.ask("a", "DescribeGroups", None, {"Groups": [lab.group]})
    await lab.ask("a", "ListGroups", 5, {"TypesFilter": ["consumer"]})
    await lab.ask("a", "ListGroups", 5, {"TypesFilter": ["classic"]})
    await lab.ask("a", "ListGroups", 5, {"StatesFilter": ["stable"]})


async def consumer_meets_classic(lab: Lab) -> None:
    """A consumer member asks to join a classic group whose assignor left user data: it is not converted."""
    (a,) = await lab.stable("a")
    await lab.beat("b", "member-b", 0)
    await lab.describe()
    await lab.heartbeat(a)


async def classic_meets_consumer(lab: Lab) -> None:
    """An empty classic group with offsets becomes a consumer group; ConsumerGroupDescribe of a classic group."""
    (a,) = await lab.stable("a")
    await lab.commit(a)
    await lab.describe()
    await lab.leave("a", a)
    await _alone(lab, "b")
    await lab.look()
    await lab.describe()
    await lab.fetch("b")
