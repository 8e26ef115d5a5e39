"""Random sequences of classic requests: four clients that join, sync, heartbeat, commit, leave, wait as dice tell."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from coordinator_lab import Member, assignment, protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_lab import Body, Lab

WALKS, STEPS = 16, 60
TIMES = {"SessionTimeoutMs": 6_000, "RebalanceTimeoutMs": 1_500}
WISHES = (["range"], ["range"], ["range", "sticky"], ["sticky", "range"])
ACTIONS = ["join"] * 6 + ["sync"] * 5 + ["heartbeat"] * 4 + ["commit"] * 2 + ["nap"] * 2
ACTIONS += ["leave", "changed", "stale heartbeat", "stale sync", "stale commit", "look"]
UNKNOWN_MEMBER_ID, MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID = 25, 79, 82


class _Walker:
    """A client that remembers what it was told, and forgets its id when it is told to."""

    def __init__(self, client: str, instance: str | None) -> None:
        self.member = Member(client, instance=instance)
        self.pending: asyncio.Task[Body] | None = None
        self.kind = ""
        self.all_of: list[str] = []

    def settle(self) -> None:
        """Takes in the answer that has come."""
        assert self.pending is not None
        answer, self.pending = self.pending.result(), None
        error = answer["ErrorCode"]
        if error in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID):
            self.member.id, self.member.generation = "", -1
        elif self.kind == "join" and error in (0, MEMBER_ID_REQUIRED):
            self.member.id, self.member.generation = answer["MemberId"], answer["GenerationId"]
            self.all_of = [row["MemberId"] for row in answer["Members"]]


async def _act(lab: Lab, dice: random.Random, walker: _Walker) -> None:
    """One request, or a nap."""
    member, action = walker.member, dice.choice(ACTIONS)
    if action == "nap":
        await asyncio.sleep(dice.choice((0.2, 0.5, 1.1)))
    elif action == "look":
        await lab.look()
    elif action in ("join", "changed"):
        data = member.client if action == "join" else f"{member.client} {dice.random()}"
        version = dice.choice((3, 5, 9, 9, 9))
        names = WISHES[ord(member.client[0]) % len(WISHES)]
        fields = TIMES | {"Protocols": [protocol(name, data) for name in names]}
        if member.instance and version < 5:
            version = 5
        walker.pending, walker.kind = await lab.join(member, version, **fields), "join"
    elif "sync" in action:
        stale: dict[str, Any] = {"GenerationId": member.generation - 1} if action.startswith("stale") else {}
        rows = [{"MemberId": one, "Assignment": assignment(one)} for one in walker.all_of]
        walker.pending, walker.kind = await lab.sync(member, 3, Assignments=rows, **stale), "sync"
    elif "heartbeat" in action:
        stale = {"GenerationId": member.generation + 1} if action.startswith("stale") else {}
        await lab.heartbeat(member, **stale)
    elif "commit" in action:
        stale = {"GenerationIdOrMemberEpoch": member.generation + 1} if action.startswith("stale") else {}
        await lab.commit(member, **stale)
    elif dice.random() < 0.5:
        await lab.leave(member.client, member)


async def _beside(lab: Lab, dice: random.Random, walker: _Walker) -> None:
    """What a client does on another connection while an answer is due."""
    if dice.random() < 0.3 and walker.member.id:
        await lab.heartbeat(walker.member, walker.member.client + "-beside")
    await asyncio.sleep(0.1)


def _walk(seed: int) -> Callable[[Lab], Any]:
    async def walk(lab: Lab) -> None:
        dice = random.Random(seed)
        static = static_of(seed)
        walkers = [_Walker(client, "instance-a" if static and client in "ab" else None) for client in "abcd"]
        for _ in range(STEPS):
            walker = dice.choice(walkers)
            if walker.pending is not None and walker.pending.done():
                walker.settle()
            await (_act if walker.pending is None else _beside)(lab, dice, walker)
        for walker in walkers:
            if walker.pending is not None:
                await walker.pending

    walk.__doc__ = f"A random walk of four clients{', two of them one static member' if static_of(seed) else ''}."
    return walk


def static_of(seed: int) -> bool:
    return seed % 3 == 2


for _seed in range(WALKS):
    globals()[f"random_walk_{_seed:02}"] = _walk(_seed)
