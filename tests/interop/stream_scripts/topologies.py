"""Topologies of streams groups: topics that are missing, that are made, that do not fit; endpoints; the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams_lab import StreamsLab


async def streams_internal(lab: StreamsLab) -> None:
    """A repartition and a changelog topic are made, then there are tasks."""
    a = lab.worker("a")
    await lab.beat(a, 0, Parts=lab.stateful())
    await lab.look()
    await asyncio.sleep(1.2)
    for _ in range(3):
        await lab.own(a)
    await lab.look()


async def streams_missing(lab: StreamsLab) -> None:
    """A source topic is missing, then it is there."""
    a = lab.worker("a")
    await lab.beat(a, 0, Parts=[lab.part("0", "t", "x"), lab.part("1", "u")])
    await asyncio.sleep(0.9)
    await lab.own(a)
    await lab.look()
    await lab.create_topic(f"{lab.group}-x", 3)
    await asyncio.sleep(0.5)
    for _ in range(2):
        await lab.own(a)
    await lab.look()


async def streams_copartition(lab: StreamsLab) -> None:
    """Topics that are joined have different partition counts."""
    a = lab.worker("a")
    joined = [{"SourceTopics": [0, 1], "SourceTopicRegex": [], "RepartitionSourceTopics": []}]
    await lab.beat(a, 0, Parts=[lab.part("0", "t", "u", CopartitionGroups=joined)])
    await asyncio.sleep(0.9)
    await lab.own(a)
    await lab.look()


async def streams_joined(lab: StreamsLab) -> None:
    """A repartition topic gets as many partitions as what it is joined with."""
    a = lab.worker("a")
    joined = [{"SourceTopics": [0], "SourceTopicRegex": [], "RepartitionSourceTopics": [0]}]
    first = lab.part("0", "u", RepartitionSinkTopics=[f"{lab.group}-r"])
    second = lab.part("1", "t", RepartitionSourceTopics=[lab.internal("r")], CopartitionGroups=joined)
    await lab.beat(a, 0, Parts=[first, second])
    await asyncio.sleep(1.2)
    for _ in range(2):
        await lab.own(a)
    await lab.look()


async def streams_index(lab: StreamsLab) -> None:
    """A copartition group names topics that are not there."""
    joined = [{"SourceTopics": [5], "SourceTopicRegex": [], "RepartitionSourceTopics": []}]
    await lab.beat(lab.worker("a"), 0, Parts=[lab.part("0", CopartitionGroups=joined)])


async def streams_endpoints(lab: StreamsLab) -> None:
    """Members that can be asked for their state, of one process each."""
    a, b = lab.worker("a"), lab.worker("b")
    await lab.beat(a, 0, UserEndpoint={"Host": "one", "Port": 1})
    await lab.beat(b, 0, UserEndpoint={"Host": "two", "Port": 2}, ClientTags=[{"Key": "zone", "Value": "x"}])
    await asyncio.sleep(0.9)
    for epoch in (0, 1, 2, 3, 4, 5):
        for one in (a, b):
            await lab.own(one, EndpointInformationEpoch=epoch)
    await lab.look()
    await lab.beat(b, -1)
    await lab.own(a, EndpointInformationEpoch=5)
    await lab.own(a)


async def streams_shutdown(lab: StreamsLab) -> None:
    """A member asks for the end of the application; the others are told until all have gone."""
    a, b = lab.worker("a"), lab.worker("b")
    await lab.beat(a, 0)
    await lab.beat(b, 0)
    await asyncio.sleep(0.9)
    await lab.own(a)
    await lab.own(b)
    await lab.beat(a, ShutdownApplication=True)
    await lab.own(b)
    await lab.beat(a, -1)
    await lab.own(b)
    await lab.beat(b, -1)
    await lab.beat(b, 0)


async def streams_offsets(lab: StreamsLab) -> None:
    """Offsets of a streams group: committed by a member, by nobody, with a wrong epoch."""
    a = lab.worker("a")
    await lab.beat(a, 0)
    await asyncio.sleep(0.9)
    await lab.own(a)
    topic = f"{lab.group}-t"
    row = {"PartitionIndex": 0, "CommittedOffset": 5, "CommittedMetadata": ""}
    rows = [{"Name": topic, "Partitions": [row]}]
    for member, epoch in ((a.id, a.epoch), (a.id, a.epoch + 1), (a.id, 1), ("", -1), ("other", 1)):
        body = {"GroupId": lab.group, "GenerationIdOrMemberEpoch": epoch, "MemberId": member, "Topics": rows}
        await lab.ask("a", "OffsetCommit", 9, body | {"GroupInstanceId": None})
        asked = {"GroupId": lab.group, "MemberId": member or None, "MemberEpoch": epoch, "Topics": None}
        await lab.ask("a", "OffsetFetch", 9, {"Groups": [asked], "RequireStable": False})
    await lab.ask("a", "DeleteGroups", 2, {"GroupsNames": [lab.group]})
    await lab.beat(a, -1)
    await lab.ask("a", "DeleteGroups", 2, {"GroupsNames": [lab.group]})
    await lab.look()
