"""Random requests of up to four members of a streams group, in two processes, from a seed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streams_lab import StreamsLab

SEEDS = range(8)
STEPS = 30


def _walk(seed: int) -> Callable[[StreamsLab], Awaitable[None]]:
    async def walk(lab: StreamsLab) -> None:
        dice = Random(seed)
        if seed % 2:
            await lab.set_configs({"streams.num.standby.replicas": "1"})
        parts = lab.stateful() if seed % 4 > 1 else [lab.part("0", "t"), lab.part("1", "u")]
        workers = [lab.worker(name, dice.choice("pq")) for name in "abcd"]
        await lab.beat(workers[0], 0, Parts=parts)
        await asyncio.sleep(1.2)
        for _ in range(STEPS):
            one = dice.choice(workers)
            what = dice.choices(("own", "join", "leave", "silent", "look", "nap"), (12, 2, 2, 2, 2, 1))[0]
            if what in ("own", "silent") and one.epoch > 0:
                await (lab.own(one) if what == "own" else lab.beat(one))
            elif what == "leave" and one.epoch > 0:
                await lab.beat(one, -1)
                one.epoch = 0
            elif what == "look":
                await lab.look()
            elif what == "nap":
                await asyncio.sleep(dice.choice((0.7, 1.7)))
            else:
                await lab.beat(one, 0, Parts=parts)
        await lab.look()

    walk.__doc__ = __doc__
    return walk


SCRIPTS = {f"streams-walk-{seed:02}": _walk(seed) for seed in SEEDS}
