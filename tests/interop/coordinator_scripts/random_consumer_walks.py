"""Random sequences of KIP-848 requests: four clients that join, reconcile, change their mind, fall silent, leave."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from coordinator_lab import Member, NotOffered

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_lab import Body, Lab

WALKS, STEPS = 12, 60
ACTIONS = ["beat"] * 9 + ["owned"] * 9 + ["nap"] * 2
ACTIONS += ["subscribe", "assignor", "commit", "describe", "stale", "leave", "rejoin"]
SUBSCRIPTIONS = (["orders"], ["orders", "payments"], ["payments"])


class _Walker:
    """A client that knows its epoch and what it was assigned last."""

    def __init__(self, client: str, instance: str | None, wishes: tuple[list[str], ...]) -> None:
        self.client, self.id, self.instance = client, f"member-{client}", instance
        self.wishes = wishes
        self.epoch = 0
        self.parts: list[Body] = []

    async def beat(self, lab: Lab, epoch: int, **fields: Any) -> None:
        if epoch == 0:
            fields = {"RebalanceTimeoutMs": 2_000} | fields
        answer = await lab.beat(self.client, self.id, epoch, InstanceId=self.instance, **fields)
        if answer["ErrorCode"]:
            self.epoch, self.parts = 0, []
            return
        self.epoch = max(answer["MemberEpoch"], 0)
        if answer["Assignment"] is not None:
            self.parts = answer["Assignment"]["TopicPartitions"]
        if epoch < 0:
            self.parts = []


async def _act(lab: Lab, dice: random.Random, walker: _Walker) -> None:
    """One request, or a nap."""
    action = dice.choice(ACTIONS)
    if action == "nap":
        await asyncio.sleep(dice.choice((0.2, 0.5, 1.3)))
    elif action == "describe":
        await lab.describe()
    elif walker.epoch == 0 or action == "rejoin":
        await walker.beat(lab, 0, SubscribedTopicNames=dice.choice(walker.wishes))
    elif action == "beat":
        await walker.beat(lab, walker.epoch)
    elif action == "owned":
        await walker.beat(lab, walker.epoch, TopicPartitions=walker.parts)
    elif action == "subscribe":
        await walker.beat(lab, walker.epoch, SubscribedTopicNames=dice.choice(walker.wishes))
    elif action == "assignor":
        await walker.beat(lab, walker.epoch, ServerAssignor=dice.choice(("range", "uniform")))
    elif action == "stale":
        await walker.beat(lab, walker.epoch + dice.choice((-2, -1, 1)) or 1, TopicPartitions=walker.parts)
    elif action == "commit":
        await lab.commit(Member(walker.client, walker.id, walker.epoch))
    else:
        await walker.beat(lab, -2 if walker.instance and dice.random() < 0.6 else -1)


def _walk(seed: int) -> Callable[[Lab], Any]:
    static, mixed = seed % 3 == 2, seed % 2 == 1
    wishes = SUBSCRIPTIONS if mixed else SUBSCRIPTIONS[1:2]

    async def walk(lab: Lab) -> None:
        if mixed and lab.newest("ConsumerGroupHeartbeat") < 1:
            raise NotOffered("the uniform assignor of 3.9 has another rule for mixed subscriptions")
        dice = random.Random(seed)
        walkers = [_Walker(client, "instance-a" if static and client in "ab" else None, wishes) for client in "abcd"]
        for _ in range(STEPS):
            await _act(lab, dice, dice.choice(walkers))
        await lab.describe()

    walk.__doc__ = "A random walk of four KIP-848 clients" + ", two of them one static member" * static + "."
    return walk


for _seed in range(WALKS):
    globals()[f"consumer_walk_{_seed:02}"] = _walk(_seed)
