"""Share sessions, and offsets that are described, altered and deleted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from share_lab import ACCEPT, RELEASE

if TYPE_CHECKING:
    from share_lab import ShareLab


async def share_sessions(lab: ShareLab) -> None:
    """Epochs of a session, partitions added and forgotten."""
    a = lab.reader("a")
    await lab.earliest()
    await lab.join(a)
    await lab.fetch(a, 0, epoch=3)
    await lab.fetch(a, epoch=-1)
    await lab.acknowledge(a, [(0, 0, ACCEPT)], epoch=0)
    await lab.acknowledge(a, [(0, 0, ACCEPT)], epoch=-1)
    await lab.fetch(a, 0, acks=[(0, 0, ACCEPT)], epoch=0)
    await lab.fetch(a, 0, 1, 9, epoch=0, wait=200)
    await lab.produce(2)
    await lab.produce(1, partition=1)
    await lab.fetch(a, epoch=5)
    await lab.fetch(a, epoch=0, wait=0, GroupId=None)
    await lab.fetch(a, epoch=0, wait=0, MemberId=None)
    await lab.fetch(a, epoch=0, wait=0, MemberId="x" * 40)
    await lab.fetch(a, 0, epoch=0)
    await lab.fetch(a, 1)
    await lab.fetch(a, forget=(1,), wait=200)
    await lab.produce(2, partition=1)
    await lab.fetch(a, wait=200)
    await lab.acknowledge(a, [(0, 1, RELEASE)])
    await lab.fetch(a)
    await lab.fetch(a, 1)
    await lab.acknowledge(a, [(0, 0, ACCEPT)], epoch=-1)
    await lab.acknowledge(a, [(0, 0, ACCEPT)], epoch=9)
    await lab.fetch(a, 0, epoch=0)


async def share_not_initialised(lab: ShareLab) -> None:
    """Who is no member reads from partitions that the group does not have."""
    a = lab.reader("a")
    await lab.produce(2)
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(0, 0, ACCEPT)])
    await lab.offsets()
    await lab.offsets(0, 1)
    await lab.offsets(0, topic="nowhere")


async def share_alter(lab: ShareLab) -> None:
    """Offsets are altered and deleted, with and without members."""
    a = lab.reader("a")
    await lab.produce(10, 10)
    await lab.alter({0: 4, 1: 0, 9: 3})
    await lab.describe()
    await lab.look()
    await lab.offsets()
    await lab.join(a)
    await lab.alter({0: 1})
    await lab.forget_offsets()
    await lab.fetch(a, 0)
    await lab.acknowledge(a, [(4, 8, ACCEPT)])
    await lab.offsets(0, 1)
    await lab.fetch(a, epoch=-1)
    await lab.beat(a, -1)
    await lab.hang_up("a")
    await lab.offsets(0, 1)
    await lab.alter({0: 15}, topic="nowhere")
    await lab.alter({0: 15})
    await lab.offsets(0)
    await lab.beat(a, 0)
    await asyncio.sleep(0.5)
    await lab.beat(a)
    await lab.fetch(a, 0, epoch=0)
    await lab.acknowledge(a, [(15, 19, ACCEPT)], epoch=-1)
    await lab.beat(a, -1)
    await lab.hang_up("a")
    await lab.forget_offsets("nowhere", lab.topic, f"{lab.group}-u")
    await lab.offsets()
    await lab.offsets(0)
    await lab.forget_offsets()
    await lab.forget_offsets(group=f"{lab.group}-none")
    await lab.delete()
    await lab.offsets()


async def share_latest(lab: ShareLab) -> None:
    """Without a configuration of its own a group begins at the end."""
    a = lab.reader("a")
    await lab.produce(3)
    await lab.join(a)
    await lab.offsets(0)
    await lab.fetch(a, 0, wait=300)
    await lab.offsets(0)
    await lab.produce(2)
    await lab.fetch(a)
    await lab.acknowledge(a, [(3, 3, ACCEPT)])
    await lab.offsets(0)


async def share_by_duration(lab: ShareLab) -> None:
    """A group begins with the records of the last two hours."""
    a = lab.reader("a")
    await lab.set_configs({"share.auto.offset.reset": "by_duration:PT2H"})
    await lab.produce(3, 2)
    await lab.join(a)
    await lab.fetch(a, 0)
    await lab.offsets(0)
