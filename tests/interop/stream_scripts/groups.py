"""Members of streams groups: joining, epochs, tasks, leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams_lab import StreamsLab


async def streams_life(lab: StreamsLab) -> None:
    """One member joins, waits for the initial delay, gets its tasks, leaves."""
    a = lab.worker("a")
    await lab.look()
    await lab.beat(a, 0)
    await lab.look()
    await lab.beat(a)
    await asyncio.sleep(0.9)
    for _ in range(3):
        await lab.own(a)
    await lab.look()
    await lab.beat(a, -1)
    await lab.look()
    await lab.beat(a, 3)


async def streams_requests(lab: StreamsLab) -> None:
    """Heartbeats that are refused."""
    a, b = lab.worker("a"), lab.worker("b")
    for epoch in (1, -1, -2, -3):
        await lab.beat(a, epoch)
    await lab.beat(a, 0, MemberId="")
    await lab.beat(a, 0, GroupId="")
    await lab.beat(a, 0, RackId="")
    await lab.beat(a, 0, InstanceId="i")
    await lab.beat(a, 0, RebalanceTimeoutMs=-1)
    await lab.beat(a, 0, ActiveTasks=None)
    await lab.beat(a, 0, StandbyTasks=[{"SubtopologyId": "0", "Partitions": [0]}])
    await lab.beat(a, 0, Topology=None)
    await lab.beat(a, 0, Parts=[lab.part(SourceTopicRegex=["x.*"])])
    await lab.beat(a, 0, Parts=[lab.part(StateChangelogTopics=[lab.internal("c", 3)])])
    await lab.beat(a, 0)
    await asyncio.sleep(0.9)
    await lab.own(a)
    for epoch in (99, 1, 2, 3):
        await lab.beat(a, epoch)
    await lab.beat(a, ActiveTasks=[])
    await lab.beat(a, WarmupTasks=[{"SubtopologyId": "0", "Partitions": [0]}], ActiveTasks=[], StandbyTasks=[])
    await lab.beat(a, ActiveTasks=[{"SubtopologyId": "0", "Partitions": [7]}], StandbyTasks=[], WarmupTasks=[])
    await lab.beat(a, ActiveTasks=[{"SubtopologyId": "9", "Partitions": [0]}], StandbyTasks=[], WarmupTasks=[])
    await lab.beat(a, Topology={"Epoch": 0, "Subtopologies": []})
    await lab.beat(b, 2)
    await lab.beat(b, -1)
    await lab.beat(b, 0, Parts=[lab.part("0", "u")])
    await lab.beat(a, 0)
    await lab.look()


async def streams_move(lab: StreamsLab) -> None:
    """A second member: the first gives up a task, in its own time; then it leaves and gets it back."""
    a, b = lab.worker("a"), lab.worker("b")
    await lab.beat(a, 0)
    await asyncio.sleep(0.9)
    await lab.own(a)
    await lab.beat(b, 0)
    await lab.look()
    held = a.owned
    await lab.own(a)
    await lab.beat(b)
    await lab.beat(a, **held)
    await lab.look()
    await lab.own(a)
    await lab.own(b)
    await lab.own(a)
    await lab.look()
    await lab.beat(b, -1)
    await lab.own(a)
    await lab.look()


async def streams_size(lab: StreamsLab) -> None:
    """More members than tasks, and than the group may have."""
    workers = [lab.worker(name) for name in "abcde"]
    for one in workers:
        await lab.beat(one, 0)
    await asyncio.sleep(0.9)
    for one in workers[:4]:
        await lab.own(one)
    await lab.look()


async def streams_processes(lab: StreamsLab) -> None:
    """Members of one process and one of another, with standbys."""
    await lab.set_configs({"streams.num.standby.replicas": "1"})
    workers = [lab.worker("a", "p"), lab.worker("b", "p"), lab.worker("c", "q")]
    for one in workers:
        await lab.beat(one, 0, Parts=lab.stateful())
        await asyncio.sleep(0.5)
    for _ in range(4):
        for one in workers:
            await lab.own(one)
        await lab.look()
        await asyncio.sleep(0.2)


async def streams_sessions(lab: StreamsLab) -> None:
    """A member that keeps silent goes after 4 s; one that does not give up its tasks after its rebalance timeout."""
    a, b = lab.worker("a"), lab.worker("b")
    await lab.beat(a, 0)
    await asyncio.sleep(0.9)
    await lab.own(a)
    held = a.owned
    await lab.beat(b, 0)
    for _ in range(3):
        await lab.beat(a, **held)
        await lab.look()
        await asyncio.sleep(0.7)
    await lab.beat(a, **held)
    await lab.own(b)
    await lab.look()
    await asyncio.sleep(4.6)
    await lab.look()
    await lab.beat(b)


async def streams_lost(lab: StreamsLab) -> None:
    """An answer was lost: the member comes with the epoch before."""
    a, b = lab.worker("a"), lab.worker("b")
    await lab.beat(a, 0)
    await asyncio.sleep(0.9)
    before = a.epoch
    await lab.own(a)
    await lab.beat(a, before)
    await lab.beat(a, before, ActiveTasks=[], StandbyTasks=[], WarmupTasks=[])
    await lab.beat(b, 0)
    await lab.beat(b, 0)
    await lab.look()
