"""Random sequences of a group whose clients use the classic and the consumer protocol beside each other."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from coordinator_lab import Member

import kwire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from coordinator_lab import Body, Lab

WALKS, STEPS = 10, 55
ORDERS = ["orders"]


class _Classic:
    """A client of the classic protocol that owns what it was given last."""

    def __init__(self, client: str) -> None:
        self.member, self.owned = Member(client), [0][:0]

    async def act(self, lab: Lab, dice: Random) -> None:
        action = dice.choice(["beat", "beat", "beat", "join", "commit", "leave", "stale"])
        if not self.member.id or action == "join":
            await self.join(lab, dice)
        elif action == "beat":
            answer = await lab.heartbeat(self.member)
            if answer["ErrorCode"] == 27:
                await self.join(lab, dice)
            elif answer["ErrorCode"]:
                self.forget()
        elif action == "commit":
            await lab.commit(self.member, dice.choice((8, 9)))
        elif action == "stale":
            await lab.heartbeat(self.member, GenerationId=dice.choice((0, self.member.generation + 1)))
        elif dice.random() < 0.4:
            await lab.leave(self.member.client, self.member)
            self.forget()

    def forget(self) -> None:
        self.member.id, self.member.generation, self.owned = "", -1, []

    async def join(self, lab: Lab, dice: Random) -> None:
        fields = _protocols(self.owned if dice.random() < 0.7 else self.owned[:1])
        answer = await (await lab.join(self.member, **fields))
        if answer["ErrorCode"] == 79:
            self.member.id = answer["MemberId"]
            answer = await (await lab.join(self.member, **fields))
        if answer["ErrorCode"]:
            self.forget()
            return
        self.member.id, self.member.generation = answer["MemberId"], answer["GenerationId"]
        leads = answer["Leader"] == self.member.id
        rows = [{"MemberId": each["MemberId"], "Assignment": _given(dice)} for each in answer["Members"]]
        if answer["Leader"] and not leads:
            return  # a follower in a classic group would wait for its leader
        got = await (await lab.sync(self.member, Assignments=rows if leads else []))
        if got["ErrorCode"] == 0 and len(got["Assignment"]) > 2:
            version = int.from_bytes(got["Assignment"][:2], "big")
            said = kwire.decode("ConsumerProtocolAssignment", version, got["Assignment"][2:])
            self.owned = [index for each in said["AssignedPartitions"] for index in each["Partitions"]]


class _Modern:
    """A client of the consumer protocol."""

    def __init__(self, client: str) -> None:
        self.client, self.id, self.epoch = client, f"member-{client}", 0
        self.parts: list[Body] = []

    async def act(self, lab: Lab, dice: Random) -> None:
        action = dice.choice(["beat", "beat", "owned", "owned", "owned", "leave"])
        if action == "leave" and (self.epoch == 0 or dice.random() < 0.5):
            return
        epoch = -1 if action == "leave" else self.epoch
        fields: dict[str, Any] = {"TopicPartitions": self.parts} if action == "owned" and self.epoch else {}
        answer = await lab.beat(self.client, self.id, epoch, **fields)
        if answer["ErrorCode"] or epoch < 0:
            self.epoch, self.parts = 0, []
            return
        self.epoch = answer["MemberEpoch"]
        if answer["Assignment"] is not None:
            self.parts = answer["Assignment"]["TopicPartitions"]


def _protocols(owned: list[int]) -> Body:
    rows = [{"Topic": "orders", "Partitions": owned}] if owned else []
    body: Body = {"Topics": ORDERS, "UserData": None, "OwnedPartitions": rows}
    data = b"\0\1" + kwire.encode("ConsumerProtocolSubscription", 1, body)
    return {"Protocols": [{"Name": "range", "Metadata": data}], "SessionTimeoutMs": 6_000}


def _given(dice: Random) -> bytes:
    rows = [{"Topic": "orders", "Partitions": [dice.randrange(4)]}]
    return b"\0\1" + kwire.encode("ConsumerProtocolAssignment", 1, {"AssignedPartitions": rows, "UserData": None})


def _walk(seed: int) -> Callable[[Lab], Awaitable[None]]:
    async def walk(lab: Lab) -> None:
        """Dice choose what two clients of either protocol do."""
        dice = Random(seed)
        modern = [_Modern("m"), _Modern("n")]
        clients: list[_Classic | _Modern] = [*modern, _Classic("a"), _Classic("b")]
        await modern[0].act(lab, Random(0))
        for _ in range(STEPS):
            if not any(each.epoch for each in modern):  # alone, clients of the classic protocol would wait
                await lab.describe()
                await lab.look()
                return
            await dice.choice(clients).act(lab, dice)
            if dice.random() < 0.06:
                await asyncio.sleep(dice.choice((0.3, 1.2)))
            if dice.random() < 0.15:
                await lab.describe()
        await lab.look()

    walk.__name__ = f"migrate_walk_{seed:02}"
    return walk


SCRIPTS = {f"migrate-walk-{seed:02}": _walk(seed) for seed in range(1, WALKS + 1)}
