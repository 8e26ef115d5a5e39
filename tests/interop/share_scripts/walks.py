"""Sequences that dice make: three members that fetch, acknowledge as they like, fall asleep, hang up and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

from share_lab import ACCEPT, REJECT, RELEASE

if TYPE_CHECKING:
    from share_lab import Reader, ShareLab

SEEDS, STEPS = (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 16), 60
ACTIONS = ["fetch"] * 6 + ["produce"] * 3 + ["acknowledge"] * 8 + ["offsets"] * 2 + ["nap", "hang up", "close"]


def _walk(seed: int) -> Callable[[ShareLab], Awaitable[None]]:
    async def walk(lab: ShareLab) -> None:
        """Dice choose what three members do."""
        dice = Random(seed)
        configs = {"share.auto.offset.reset": "earliest"}
        if seed % 3 == 1:
            configs["share.delivery.count.limit"] = dice.choice(("2", "3", "7"))
        await lab.set_configs(configs)
        readers = [lab.reader(name) for name in "abc"]
        for one in readers:
            await lab.join(one)
        for one in readers:
            await lab.fetch(one, 0, 1)
        for _ in range(STEPS):
            await _step(lab, dice, dice.choice(readers), seed)
        await lab.offsets(0, 1)

    walk.__name__ = f"walk_{seed:02}"
    return walk


async def _step(lab: ShareLab, dice: Random, one: Reader, seed: int) -> None:
    partition = dice.randrange(2)
    match dice.choice(ACTIONS):
        case "fetch":
            again = () if one.session else (0, 1)
            acks = _acks(dice, one) if one.session and dice.random() < 0.4 else None
            mode = dice.randrange(2) if seed % 2 else 0
            most, pieces = dice.choice((1, 2, 5, 500)), dice.choice((1, 4, 500))
            await lab.fetch(one, *again, acks=acks, most=most, pieces=pieces, mode=mode, wait=dice.choice((0, 50)))
        case "produce":
            await lab.produce(*(dice.randint(1, 5) for _ in range(dice.randint(1, 3))), partition=partition)
        case "acknowledge":
            acks = _acks(dice, one)
            if acks and one.session:
                await lab.acknowledge(one, acks)
        case "offsets":
            await lab.offsets(0, 1)
        case "nap":
            await asyncio.sleep(dice.choice((0.3, 1.1, 2.3)))
        case "hang up":
            await lab.hang_up(one.client) if one.client in lab.clients else None
            one.session, one.held = 0, {}
        case _:
            if one.session:
                await lab.fetch(one, epoch=-1)
            one.session, one.held = 0, {}


def _acks(dice: Random, one: Reader) -> dict[int, list[tuple[int, int, int | list[int]]]]:
    """Some of what the member was given last, of one partition or of both, now and then twice."""
    acks = {}
    for partition, held in one.held.items():
        offsets = sorted(set(held))
        if not offsets or dice.random() < 0.3:
            continue
        first = dice.choice(offsets)
        last = first
        while last + 1 in offsets and dice.random() < 0.7:
            last += 1
        kinds = (ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT)
        each = dice.random() < 0.4
        acks[partition] = [
            (first, last, [dice.choice(kinds) for _ in range(last - first + 1)] if each else dice.choice(kinds))
        ]
        if dice.random() < 0.9:
            one.held[partition] = [offset for offset in offsets if not first <= offset <= last]
    return acks


SCRIPTS = {f"share-walk-{seed:02}": _walk(seed) for seed in SEEDS}
